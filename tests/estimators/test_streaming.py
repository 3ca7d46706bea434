"""Fitting from blocks of rows equals fitting from all of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from kernull import FisherProblem, LpBall, fit_stream, solve
from kernull.balls import MixedBall
from kernull.calibration import leave_one_out
from kernull.errors import MemoryLimitError, MissingCapabilityError
from kernull.models import streaming as _streaming
from kernull.stacks import KernelSet, KernelStack, LowRankStack, choose_landmarks
from kernull.stacks.features import FeatureGram, Features
from kernull.stacks.sources import ArraySource, open_source, sample_rows
from tests.plain import plain_fisher

VIEWS = {"a": np.arange(3), "b": np.arange(3, 6)}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(900, 4))
    X = np.hstack([np.tanh(latent @ rng.normal(size=(4, 3))) for _ in range(2)])
    return X + 0.3 * rng.normal(size=X.shape)


@pytest.fixture(scope="module")
def model(rows):
    return fit_stream(plain_fisher(views=VIEWS, landmarks=60, tol=1e-10), rows)


def test_it_is_the_nystroem_model(rows, model):
    """The same landmarks by the subspace solver on the low-rank stack."""
    bank = KernelSet.fit(rows, VIEWS, widths=model.widths)
    low = LowRankStack.from_kernel_set(bank, choose_landmarks(bank, 60))
    problem = FisherProblem(low, model.delta * 900)
    result = solve(problem, LpBall(model.p), "subspace", tol=1e-10)
    np.testing.assert_allclose(model.weights_, result.weights, atol=1e-5)
    projection = result.weights @ low.products(result.coef)
    np.testing.assert_allclose(model.score_samples(rows), projection, atol=1e-5)
    K = KernelStack(low.rows(slice(None)))
    exact = leave_one_out(FisherProblem(K, problem.ridge), result.weights, result.coef)
    # Every calibration score is that of some row, and there are 500 of them.
    nearest = np.abs(model.calibration_.scores[:, None] - exact[None, :]).min(axis=1)
    assert nearest.max() < 1e-5
    assert model.calibration_.total == 500


def test_the_reduced_problem_is_exact(rows):
    bank = KernelSet.fit(rows[:80], VIEWS)
    landmarks = bank.take(np.arange(0, 80, 4))
    gram = FeatureGram(Features(landmarks)).add([rows[:30], rows[30:80]])
    stack, target = gram.reduce()
    low = LowRankStack.from_kernel_set(bank, np.arange(0, 80, 4))
    b = np.array([0.3, 0.9])
    full = KernelStack(low.rows(slice(None)))
    assert FisherProblem(stack, 0.8, target).evaluate(b).value == pytest.approx(
        FisherProblem(full, 0.8).evaluate(b).value, rel=1e-8
    )
    A = full.combine(b) + 0.8 * np.eye(80)
    inverse, a = gram.inverse_entries(rows[:80], b, 0.8)
    np.testing.assert_allclose(inverse, np.diag(np.linalg.inv(A)), rtol=1e-7)
    np.testing.assert_allclose(a, np.linalg.solve(A, np.ones(80)), atol=1e-8)


def test_every_kind_of_source_gives_the_same_model(rows, model, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.memmap(tmp_path / "rows.dat", mode="w+", shape=rows.shape, dtype=float)
    mapped[:] = rows
    sources = [mapped, tmp_path / "rows.npy", ArraySource(rows, block=77)]
    try:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table({f"c{i}": rows[:, i] for i in range(6)})
        parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
        sources.append(tmp_path / "rows.parquet")
    except ImportError:
        pass
    try:
        import zarr

        sources.append(zarr.array(rows, chunks=(100, 6)))
    except ImportError:
        pass
    for source in sources:
        other = fit_stream(plain_fisher(views=VIEWS, landmarks=60, tol=1e-10), source)
        np.testing.assert_allclose(
            other.score_samples(rows), model.score_samples(rows), atol=1e-7, err_msg=str(source)
        )
        assert other.threshold_ == pytest.approx(model.threshold_, abs=1e-7)


def test_a_sample_is_without_replacement_and_whole_when_small(rows):
    source = ArraySource(rows, block=100)
    np.testing.assert_array_equal(sample_rows(source, 10_000), rows)
    some = sample_rows(source, 50)
    assert len(np.unique(some, axis=0)) == 50


def test_a_source_must_be_a_table():
    with pytest.raises(ValueError, match=r"X: got an array of shape \(3,\)"):
        open_source(np.ones(3))


def test_mixed_norms_and_the_solver_are_those_of_the_model(rows):
    options = {"views": VIEWS, "widths": [0.25, 1.0], "landmarks": 40, "tol": 1e-10}
    groups = ["x", "y", "y", "x"]
    mixed = {"p": 2.0, "r": 1.0, "kernel_groups": groups, "solver": "frank-wolfe"}
    model = fit_stream(plain_fisher(**options, **mixed, max_iter=500), rows[:300])
    assert model.solver_ == "frank-wolfe"
    bank = KernelSet.fit(rows[:300], VIEWS, widths=[0.25, 1.0])
    low = LowRankStack.from_kernel_set(bank, choose_landmarks(bank, 40))
    problem = FisherProblem(low, model.delta * 300)
    result = solve(problem, MixedBall(2.0, 1.0, groups), "subspace", tol=1e-8)
    np.testing.assert_allclose(model.weights_, result.weights, atol=1e-4)
    plain = fit_stream(plain_fisher(**options), rows[:300])
    assert np.abs(model.weights_ - plain.weights_).max() > 0.05


def test_coefficients_are_exact_whatever_the_solver(rows):
    options = {"views": VIEWS, "landmarks": 60, "tol": 1e-2, "delta": 1e-2}
    model = fit_stream(plain_fisher(**options, solver="subspace"), rows)
    gram = FeatureGram(Features(model.bank_)).add([rows])
    _, a = gram.inverse_entries(rows, model.weights_, 1e-2 * len(rows))
    # On training rows the projection is 1 - ridge a.
    np.testing.assert_allclose(model.score_samples(rows), 1 - 1e-2 * len(rows) * a, atol=1e-9)


WRONG = {
    "calibration": ({"calibration": "split"}, MissingCapabilityError, "calibration: got 'split'"),
    "folds": ({"calibration": "folds"}, MissingCapabilityError, "calibration: got 'folds'"),
    "no calibration": ({"calibration": "no"}, ValueError, "calibration: got 'no'"),
    "score": ({"score_type": "depth"}, ValueError, "score_type: got 'depth'"),
    "storage": ({"storage": "tiled"}, MissingCapabilityError, "storage: got 'tiled'"),
    "kernels": ({"kernels": "precomputed"}, MissingCapabilityError, "kernels: got 'precomputed'"),
    "groups": ({"kernel_groups": [0, 1]}, ValueError, "kernel_groups"),
    "solver": ({"solver": "best"}, ValueError, "solver: got 'best'"),
    "delta": ({"delta": -1.0}, ValueError, "delta: got -1.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_get_a_clear_error_and_change_nothing(rows, case):
    options, error, message = WRONG[case]
    model = plain_fisher(landmarks=20).fit(rows[:50]).set_params(**options)
    before = pickle.dumps(vars(model))
    with pytest.raises(error, match=message):
        fit_stream(model, rows)
    assert pickle.dumps(vars(model)) == before


def test_features_that_do_not_fit_are_refused_before_they_are_allocated(rows, monkeypatch):
    monkeypatch.setattr(_streaming, "FeatureGram", None)  # would fail if it came so far
    size = 1 + 2 * 60
    need = 5 * size * size * 8
    model = plain_fisher(views=VIEWS, landmarks=60, memory_limit=need - 1)
    with pytest.raises(MemoryLimitError, match=r"need 586 kB, .* Use at most 59 landmarks"):
        fit_stream(model, rows)
    with pytest.raises(MemoryLimitError, match=r"limit is 100 B\. Use fewer kernels"):
        fit_stream(model.set_params(memory_limit=100), rows)
    monkeypatch.undo()
    fit_stream(model.set_params(memory_limit=need), rows)


def test_nothing_of_an_earlier_fit_is_left(rows):
    pd = pytest.importorskip("pandas")
    weight = np.r_[np.zeros(5), np.ones(95)]
    table = pd.DataFrame(rows[:100], columns=list("abcdef"))
    model = plain_fisher(views=VIEWS, landmarks=30).fit(table, sample_weight=weight)
    model.partial_fit(table[:3])
    fresh = fit_stream(plain_fisher(views=VIEWS, landmarks=30), rows)
    again = fit_stream(model, rows)
    assert again is model
    assert set(vars(again)) == set(vars(fresh))
    np.testing.assert_array_equal(again.score_samples(rows), fresh.score_samples(rows))
    assert not hasattr(again, "calibration_contributions_")
    assert not hasattr(again, "explain")

"""Samples of left-out rows: against the whole inverse, and against refits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull import MultiKernelFisherNull
from kernull.balls import LpBall
from kernull.calibration.left_out_kernels import left_out_kernel_rows
from kernull.calibration.left_out_sample import drawn_sample, sampled_contributions
from kernull.calibration.left_out_scores import left_out_contributions
from kernull.errors import CalibrationWarning
from kernull.models.fisher import FisherFit
from kernull.problems import FisherProblem
from kernull.solvers import solve
from kernull.solvers.subspace import Basis
from kernull.stacks import KernelSet


def problem_of(X, weight=None, delta=1e-2):
    views = {"a": np.arange(2), "b": np.arange(2, X.shape[1])}
    kernels = KernelSet.fit(X, views, widths=(0.5, 1.0), scaling=("standard", "whiten"))
    return kernels, FisherProblem(kernels.stack(), delta * len(X), row_weight=weight)


def inverse_of(problem, b):
    weight = np.ones(problem.n) if problem.row_scale is None else problem.row_scale**2
    A = problem.stack.combine(b)
    A.flat[:: problem.n + 1] += problem.ridge / weight
    inverse = np.linalg.inv(A)
    return inverse, inverse @ np.ones(problem.n)


@given(st.integers(8, 30), st.booleans(), st.integers(0, 100))
@settings(max_examples=25)
def test_with_a_basis_of_all_directions_it_is_the_whole_inverse(n, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    kernels, problem = problem_of(X, weight)
    b = rng.uniform(0.1, 1.0, kernels.J)
    inverse, coef = inverse_of(problem, b)
    rows, values = (
        np.sort(rng.choice(n, n // 2, replace=False)),
        left_out_kernel_rows(kernels, X, weight),
    )
    expected = left_out_contributions(values, b, inverse, coef)[rows]
    basis = Basis(problem, np.eye(n))
    found = sampled_contributions(
        problem, b, coef, basis, rows, np.diagonal(inverse)[rows], values, b
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_plain_kernel_is_left_out_exactly_whatever_the_basis():
    """Where the scaling sees no row, sums are 1 - a_i / G_ii with a basis of a single column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    kernels = KernelSet.fit(X, {"a": np.arange(5)}, widths=(0.5, 2.0), scaling="none")
    problem = FisherProblem(kernels.stack(), 0.4)
    b = np.array([0.3, 0.6])
    inverse, coef = inverse_of(problem, b)
    rows, basis = np.arange(0, 40, 3), Basis(problem, np.ones(40))
    found = sampled_contributions(
        problem,
        b,
        coef,
        basis,
        rows,
        np.diagonal(inverse)[rows],
        left_out_kernel_rows(kernels, X),
        b,
    )
    expected = 1.0 - coef[rows] / np.diagonal(inverse)[rows]
    np.testing.assert_allclose(found.sum(axis=1), expected, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_factor_in_another_order_gives_the_same_coefficients(weighted):
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, 50) if weighted else None
    kernels, problem = problem_of(rng.normal(size=(50, 5)), weight)
    b, order = rng.uniform(size=kernels.J), rng.permutation(50)
    factor = problem.factorise(b, order)
    plain = problem.coefficients(problem.factorise(b))
    np.testing.assert_allclose(problem.coefficients(factor, order), plain, atol=1e-12)
    one = np.eye(kernels.J)[0]  # a single kernel is combined by another path
    np.testing.assert_allclose(
        np.triu(problem.stack.combine(one, upper=True, order=order)),
        np.triu(problem.stack.combine(one)[np.ix_(order, order)]),
    )


def table(kind, n, rng):
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 12)) + 0.5 * rng.normal(size=(n, 12))
    if kind == "heavy tails":
        return rng.standard_t(1.5, size=(n, 12))
    return np.exp(X / 2) if kind == "lognormal" else X


@pytest.mark.parametrize("kind", ["factors", "lognormal", "heavy tails"])
def test_scores_of_a_sample_are_near_refits_of_everything(kind):
    """Scaling, widths and coefficients refitted without the row, at the same weights."""
    rng = np.random.default_rng(3)
    X = table(kind, 1100, rng)
    views = {"a": np.arange(12)}
    kernels = KernelSet.fit(X, views, widths="auto", scaling="auto")
    problem = FisherProblem(kernels.stack(), 1e-2 * 1100)
    result = solve(problem, LpBall(4 / 3), "subspace")
    b = result.weights
    inverse, coef = inverse_of(problem, b)
    spread = np.std(1.0 - problem.ridge * coef)
    rows = rng.choice(1100, 12, replace=False)
    rows = np.unique(np.append(rows, np.argsort(1.0 - coef / np.diagonal(inverse))[:4]))
    found = sampled_contributions(
        problem, b, coef, result.basis, rows, np.diagonal(inverse)[rows],
        left_out_kernel_rows(kernels, X), b,
    ).sum(axis=1)  # fmt: skip
    for i, score in zip(rows, found, strict=True):
        others = np.arange(1100) != i
        refit = KernelSet.fit(X[others], views, widths="auto", scaling="auto")
        A = refit.combine(b) + problem.ridge * np.eye(1099)
        truth = (refit.combine(b, X[[i]]) @ np.linalg.solve(A, np.ones(1099)))[0]
        assert abs(score - truth) <= 0.12 * spread


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_far_off_in_one_view_keeps_what_it_has_of_the_other(weighted, monkeypatch):
    """Its kernel values of one view vanish without it; its neighbours in the other view do not."""
    rng, fits, plain = np.random.default_rng(2), [], FisherFit.leave_one_out
    monkeypatch.setattr(FisherFit, "leave_one_out", lambda fit: fits.append(fit) or plain(fit))
    X = rng.standard_t(1.5, size=(1100, 8))
    views, weight = {"a": slice(0, 3), "b": slice(3, 8)}, rng.uniform(0.2, 3.0, 1100)
    model = MultiKernelFisherNull(decision="sum", views=views)
    model.fit(X, sample_weight=weight if weighted else None)
    near, whole = plain(fits[0]), plain(replace(fits[0], every=True))
    off = np.abs(near.scores - whole.scores[drawn_sample(1100)]) / whole.scores.std()
    assert 0.0 < off.max() <= 0.25


def test_a_plain_fit_of_many_rows_leaves_out_a_sample_and_judges_all(monkeypatch):
    rng = np.random.default_rng(0)
    both = table("factors", 4000, np.random.default_rng(5))
    X, new = both[:1400], both[1400:]
    fits = []
    plain = FisherFit.leave_one_out
    monkeypatch.setattr(
        FisherFit, "leave_one_out", lambda fit, **more: fits.append(fit) or plain(fit, **more)
    )
    model = MultiKernelFisherNull(decision="sum").fit(X, sample_weight=rng.uniform(0.5, 2, 1400))
    assert model.calibration_.scores.shape == (750,)
    assert model.calibration_contributions_.shape == (750, len(model.weights_))
    assert len(fits) == 1  # nobody asked for the other rows
    sample, whole = drawn_sample(1400), plain(replace(fits[0], every=True))
    near, exact = plain(fits[0]), whole.scores[sample]
    np.testing.assert_allclose(near.of_all(), whole.scores)
    off = near.scores - exact
    assert np.abs(off).max() <= 0.1 * exact.std()
    assert np.sqrt(np.mean(off**2)) <= 0.01 * exact.std()
    assert np.abs(near.contributions - whole.contributions[sample]).max() <= 0.1 * exact.std()
    flagged = MultiKernelFisherNull(decision="sum").fit_predict(X)
    assert flagged.shape == (1400,)
    assert abs(np.mean(flagged == -1) - 0.05) <= 0.02
    assert (
        abs(np.mean(MultiKernelFisherNull(decision="sum").fit(X).predict(new) == -1) - 0.05) <= 0.02
    )


def test_suspects_are_sought_among_all_rows():
    X = table("factors", 1200, np.random.default_rng(0))
    X[::100] += 30.0
    model = MultiKernelFisherNull(contamination=0.02).fit(X)
    assert set(range(0, 1200, 100)) <= set(model.suspects_.tolist())
    assert len(model.calibration_contributions_) == len(model.calibration_.scores) > 1000


def test_kernels_that_are_not_stored_leave_rows_out_of_their_scaling_too():
    """Whitened by ten rows a column, sums of tiled kernels flagged 15% where 5% were asked for."""
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(6, 70))
    X, new = (
        rng.normal(size=(n, 6)) @ loadings + 0.5 * rng.normal(size=(n, 70)) for n in (700, 3000)
    )
    thresholds = {}
    for storage in ("dense", "tiled"):
        model = MultiKernelFisherNull(decision="sum", storage=storage).fit(X)
        thresholds[storage] = model.threshold_
        assert np.mean(model.predict(new) == -1) <= 0.08
    assert abs(thresholds["dense"] - thresholds["tiled"]) <= 0.05
    scores = MultiKernelFisherNull(decision="sum", storage="tiled").fit_predict(X)
    assert 0.02 <= np.mean(scores == -1) <= 0.08


def test_few_rows_for_each_of_many_columns_are_warned_of_where_scalings_keep_them():
    X = table("factors", 700, np.random.default_rng(0)) @ np.random.default_rng(1).normal(
        size=(12, 60)
    )
    with pytest.warns(CalibrationWarning, match="60 columns was whitened by the 700 rows"):
        MultiKernelFisherNull(
            decision="sum", storage="nystroem", landmarks=50, scaling="whiten"
        ).fit(X)


@pytest.mark.parametrize("decision", ["sum", "evidence"])
@pytest.mark.parametrize("n", [60, 900])
def test_weights_too_small_for_an_inverse_are_as_those_that_are_not(n, decision):
    X = table("factors", n, np.random.default_rng(0))
    thresholds = []
    for least in (1e-60, 5e-324):
        weight = np.where(np.arange(n) < 3, least, 1.0)
        model = MultiKernelFisherNull(decision=decision).fit(X, sample_weight=weight)
        assert np.isfinite(model.calibration_.scores).all()
        thresholds.append(model.threshold_)
    assert thresholds[0] == pytest.approx(thresholds[1], abs=0.1)  # ranks go on as a logarithm does

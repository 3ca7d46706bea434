"""One estimator, many storages: the same model, tensors in and out, lazy scores."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone

from kernull import Solver, Storage
from tests.plain import plain_fisher

VIEWS = {"a": slice(0, 3), "b": slice(3, 6)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(760, 3))
    X = np.hstack([np.tanh(latent @ rng.normal(size=(3, 3))) for _ in range(2)])
    X += 0.3 * rng.normal(size=X.shape)
    return X[:700], X[700:]


@pytest.fixture(scope="module")
def dense(data):
    return plain_fisher(views=VIEWS, storage="dense", solver=Solver(tol=1e-8)).fit(data[0])


def test_tiled_is_the_same_model(data, dense):
    train, new = data
    tiled = clone(dense).set_params(storage="tiled").fit(train)
    np.testing.assert_allclose(tiled.weights_, dense.weights_, atol=1e-4)
    np.testing.assert_allclose(tiled.score_samples(new), dense.score_samples(new), atol=1e-4)
    np.testing.assert_allclose(tiled.contributions(new), dense.contributions(new), atol=1e-4)
    assert tiled.threshold_ == pytest.approx(dense.threshold_, abs=1e-4)
    assert tiled.predict(train).mean() > 0.8


def test_row_weights_are_the_same_too(data):
    train, new = data
    w = np.random.default_rng(1).integers(0, 3, size=len(train)).astype(float)
    models = [
        plain_fisher(views=VIEWS, storage=s, solver=Solver(tol=1e-8)).fit(train, sample_weight=w)
        for s in ("dense", "tiled")
    ]
    np.testing.assert_allclose(*(m.score_samples(new) for m in models), atol=1e-4)
    np.testing.assert_array_equal(*(m.fit_predict(train, sample_weight=w).shape for m in models))


def test_nystroem_with_all_rows_is_exact_and_with_some_is_near(data, dense):
    train, new = data
    exact = clone(dense).set_params(storage=Storage("nystroem", landmarks=len(train))).fit(train)
    np.testing.assert_allclose(exact.score_samples(new), dense.score_samples(new), atol=1e-4)
    near = clone(dense).set_params(storage=Storage("nystroem", landmarks=200)).fit(train)
    assert near.coef_.shape == (2, 200)
    assert near.kernel_set_.n == 200
    assert near.gap_ <= 1e-8
    off = near.score_samples(new) - dense.score_samples(new)
    assert np.abs(off).max() < 0.05
    np.testing.assert_allclose(near.contributions(new).sum(axis=1), near.score_samples(new))


def test_float32_and_float64_agree(data, dense):
    train, new = data
    single = (
        clone(dense)
        .set_params(storage=Storage("tiled", dtype="float32"), solver=Solver(tol=1e-6))
        .fit(train)
    )
    np.testing.assert_allclose(single.score_samples(new), dense.score_samples(new), atol=2e-3)


@pytest.mark.torch
def test_tensors_in_tensors_out(data, dense):
    import torch

    train, new = (torch.as_tensor(x) for x in data)
    model = clone(dense).fit(train)
    parts = model.contributions(new)
    for values in (
        model.weights_,
        model.coef_,
        model.score_samples(new),
        model.predict(new),
        parts,
    ):
        assert isinstance(values, torch.Tensor)
        assert values.device == train.device
    np.testing.assert_allclose(parts.sum(axis=1), model.score_samples(new), atol=1e-12)
    np.testing.assert_allclose(model.score_samples(new), dense.score_samples(data[1]), atol=1e-12)
    np.testing.assert_array_equal(model.predict(new), dense.predict(data[1]))
    # A model of tensors still scores arrays, and the other way round.
    assert isinstance(model.score_samples(data[1]), np.ndarray)
    assert isinstance(dense.score_samples(new), torch.Tensor)


@pytest.mark.parametrize("storage", ["dense", "tiled", "nystroem"])
@pytest.mark.cuda
def test_tensors_on_a_gpu_stay_there(data, dense, storage):
    import torch

    train, new = (torch.as_tensor(x, device="cuda") for x in data)
    model = clone(dense).set_params(storage=Storage(storage, landmarks=700)).fit(train)
    scores = model.score_samples(new)
    assert scores.device == train.device == model.weights_.device
    np.testing.assert_allclose(scores.cpu(), dense.score_samples(data[1]), atol=1e-4)


def test_dask_arrays_are_scored_lazily(data, dense):
    da = pytest.importorskip("dask.array")
    new = data[1]
    lazy = da.from_array(new, chunks=(17, 4))
    scores = dense.score_samples(lazy)
    assert isinstance(scores, da.Array)
    assert scores.shape == (60,)
    np.testing.assert_allclose(scores.compute(), dense.score_samples(new), atol=1e-12)
    np.testing.assert_array_equal(dense.predict(lazy).compute(), dense.predict(new))
    np.testing.assert_allclose(
        dense.decision_function(lazy).compute(), dense.decision_function(new), atol=1e-12
    )


def test_dask_dataframes_are_scored_lazily(data):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    train, new = (pd.DataFrame(x, columns=[f"c{i}" for i in range(6)]) for x in data)
    model = plain_fisher(views={"a": ["c0", "c1"], "b": "c5"}).fit(train)
    lazy = model.score_samples(dd.from_pandas(new, npartitions=3))
    assert isinstance(lazy, dd.Series)
    done = lazy.compute()
    np.testing.assert_array_equal(done.index, new.index)
    np.testing.assert_allclose(done, model.score_samples(new), atol=1e-12)


PEAK = """
    import re, sys
    from pathlib import Path
    import numpy as np
    from kernull import MultiKernelFisherNull, Solver, Storage
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((int(sys.argv[1]), 6))
    X = np.hstack([np.tanh(latent @ rng.standard_normal((6, 20))) for _ in range(4)])
    X += 0.3 * rng.standard_normal(X.shape)
    views = {f"v{i}": slice(20 * i, 20 * i + 20) for i in range(4)}
    model = MultiKernelFisherNull(
        views=views, scaling="standard", widths=0.5, p=2.0, delta=1e-2,
        solver=Solver(tol=1e-4), storage=Storage(memory_limit=sys.argv[2]),
    ).fit(X)
    assert model.gap_ <= 1e-4, model.gap_
    assert model.solver_ == "subspace"
    # Not ru_maxrss: before exec, a child counts the memory of the process that started it.
    status = Path("/proc/self/status").read_text()
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("rows", "limit", "peak"),
    [(8_000, "300MB", 0.6e9), pytest.param(20_000, "1GB", 2e9, marks=pytest.mark.slow)],
)
def test_many_rows_fit_in_less_than_their_kernels_would_take(rows, limit, peak):
    """Dense kernels would take 2 GB and 12.8 GB. The whole process is counted."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PEAK), str(rows), limit],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < peak

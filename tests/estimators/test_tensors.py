"""Tensors on a GPU, given to any estimator.

Where there is no GPU the estimators are told that the tensor's device is one: the same stacks are
then made, on the CPU.
"""

import numpy as np
import pytest

from kernull import (
    FisherNull,
    GaussianProcessOneClass,
    KernelPCANovelty,
    MultiKernelFisherNull,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
)
from kernull.errors import ConstantViewWarning
from kernull.estimators import _base

torch = pytest.importorskip("torch", reason="torch is not installed")

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(40, 3)), RNG.normal(size=(7, 3))
MODELS = [
    FisherNull,
    GaussianProcessOneClass,
    KernelPCANovelty,
    MultiKernelFisherNull,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
]


@pytest.fixture
def on_device(monkeypatch):
    if torch.cuda.is_available():
        return lambda values: torch.as_tensor(values, device="cuda")
    monkeypatch.setattr(_base, "cuda_device_of", lambda X: X.device if torch.is_tensor(X) else None)
    return torch.as_tensor


@pytest.mark.parametrize("cls", MODELS)
def test_tables(cls, on_device):
    expected = cls().fit(X).score_samples(NEW)
    model = cls().fit(on_device(X))
    scores = model.score_samples(on_device(NEW))
    assert isinstance(scores, torch.Tensor)
    assert scores.device == on_device(NEW).device
    # Both models are within their tolerance of the best one, no nearer.
    close = {"rtol": 1e-3, "atol": 1e-3 * np.ptp(expected)}
    np.testing.assert_allclose(scores.cpu().numpy(), expected, **close)


@pytest.mark.parametrize("cls", MODELS)
def test_kernels(cls, on_device):
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))[None]
    cross = np.exp(-((NEW[:, None] - X) ** 2).sum(axis=2))[None]
    expected = cls("precomputed").fit(K).score_samples(cross)
    scores = cls("precomputed").fit(on_device(K)).score_samples(on_device(cross))
    np.testing.assert_array_equal(scores.cpu().numpy(), expected)


VIEWS = {"left": [0, 1], "right": [2]}


def refuse(*args, **kwargs):
    raise AssertionError("scaling and widths were fitted on the host")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"scaling": "none"},
        {"widths": [0.5, 1.0]},
        {"calibration": "split"},
        {"storage": "tiled"},
        {"storage": "nystroem", "landmarks": 20},
    ],
)
def test_scaling_and_widths_are_fitted_on_the_device(params, dtype, on_device, monkeypatch):
    params = {"views": VIEWS, "dtype": dtype, **params}
    here = MultiKernelFisherNull(**params).fit(X)
    monkeypatch.setattr(_base.KernelBank, "fit", refuse)
    there = MultiKernelFisherNull(**params).fit(on_device(X))
    close = {"rtol": 1e-12} if dtype == "float64" else {"rtol": 1e-6, "atol": 1e-6}
    for a, b in zip(here.bank_.views, there.bank_.views, strict=True):
        assert (a.name, a.scaler.kind) == (b.name, b.scaler.kind)
        np.testing.assert_array_equal(a.columns, b.columns)
        widths = [[kernel.width for kernel in view.kernels] for view in (a, b)]
        np.testing.assert_allclose(*widths, rtol=1e-12 if dtype == "float64" else 1e-6)
        np.testing.assert_allclose(a.train, b.train, atol=1e-12 if dtype == "float64" else 1e-6)
        if a.scaler.kind == "standard":
            np.testing.assert_allclose(a.scaler.mean, b.scaler.mean, atol=1e-14)
            np.testing.assert_allclose(a.scaler.scale, b.scaler.scale, **close)
    assert list(here.kernel_names_) == list(there.kernel_names_)
    np.testing.assert_allclose(there.weights_.cpu().numpy(), here.weights_, atol=2e-3)
    assert there.coef_.device == on_device(X).device
    np.testing.assert_allclose(
        there.score_samples(on_device(NEW)).cpu().numpy(), here.score_samples(NEW), rtol=2e-3
    )


@pytest.mark.parametrize(
    ("params", "weight"),
    [
        ({"scaling": "whiten"}, None),
        ({"kernels": "laplacian"}, None),
        ({"kernels": ["rbf", "linear"]}, None),
        ({}, np.linspace(0.5, 2.0, len(X))),
    ],
)
def test_what_a_device_cannot_fit_is_fitted_on_the_host(params, weight, on_device):
    here = MultiKernelFisherNull(**params).fit(X, sample_weight=weight)
    there = MultiKernelFisherNull(**params).fit(on_device(X), sample_weight=weight)
    np.testing.assert_allclose(
        there.score_samples(on_device(NEW)).cpu().numpy(), here.score_samples(NEW), rtol=2e-3
    )


def test_rows_of_weight_zero_take_no_part(on_device):
    weight = np.ones(len(X))
    weight[5:9] = 0.0
    spoiled = X.copy()
    spoiled[5:9] = 1e3
    model = MultiKernelFisherNull().fit(on_device(spoiled), sample_weight=weight)
    expected = MultiKernelFisherNull().fit(np.delete(X, np.arange(5, 9), axis=0))
    np.testing.assert_allclose(
        model.score_samples(on_device(NEW)).cpu().numpy(), expected.score_samples(NEW), rtol=2e-3
    )


def test_a_constant_view_is_dropped_on_the_device(on_device):
    table = np.column_stack([X, np.full(len(X), 3.7)])
    model = MultiKernelFisherNull(views={"all": [0, 1, 2], "flat": [3]})
    with pytest.warns(ConstantViewWarning, match="'flat'"):
        model.fit(on_device(table))
    assert list(model.kernel_names_) == ["all"]
    with pytest.raises(ValueError, match="every view is constant"):
        model.fit(on_device(np.ones((10, 4))))


def test_whole_numbers_and_bad_values_are_answered_as_on_the_host(on_device):
    table = np.arange(30).reshape(10, 3) % 7
    here, there = MultiKernelFisherNull().fit(table), MultiKernelFisherNull().fit(on_device(table))
    np.testing.assert_allclose(there.coef_.cpu().numpy(), here.coef_, rtol=2e-3)
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MultiKernelFisherNull().fit(on_device(broken))
    with pytest.raises(ValueError, match="widths: got -1"):
        MultiKernelFisherNull(widths=-1).fit(on_device(X))
    with pytest.raises(ValueError, match="scaling: got 'odd'"):
        MultiKernelFisherNull(scaling="odd").fit(on_device(X))

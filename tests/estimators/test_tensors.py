"""Tensors on a GPU, given to any estimator.

Where there is no GPU the estimators are told that the tensor's device is one: the same stacks are
then made, on the CPU.
"""

from dataclasses import replace

import numpy as np
import pytest

from kernull import JointMultiKernelFisherNull, MultiKernelFisherNull, Solver, Storage
from kernull.errors import ConstantViewWarning
from kernull.estimators import base as base_module
from kernull.paper import (
    FisherNull,
    GaussianProcessOneClass,
    KernelPCANovelty,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
)
from kernull.views import KernelSet
from tests.needs import NO_TORCH
from tests.plain import plain_fisher

torch = pytest.importorskip("torch", reason=NO_TORCH)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning"),
]

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

    def device_of(X):
        X = next(iter(X.values())) if isinstance(X, dict) else X
        return X.device if isinstance(X, torch.Tensor) else None

    monkeypatch.setattr(base_module, "cuda_device_of", device_of)
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


GROUPS = np.repeat([0, 1, 2], [18, 9, 13])


@pytest.mark.filterwarnings("ignore::kernull.errors.DominantViewWarning")  # of two views
@pytest.mark.parametrize("weighted", [False, True])
def test_joint_tables(on_device, weighted):
    """Tasks are solved on the host; scores are where the rows are."""
    weight = RNG.uniform(0.5, 2.0, 40) if weighted else None
    options = {"views": {"a": [0, 1], "b": [2]}, "solver": Solver(tol=1e-10)}
    expected = JointMultiKernelFisherNull(**options).fit(X, groups=GROUPS, sample_weight=weight)
    model = JointMultiKernelFisherNull(**options)
    model.fit(on_device(X), groups=on_device(GROUPS), sample_weight=weight)
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=1e-8)
    for one in (model, expected):
        one.enroll(on_device(NEW) if one is model else NEW, 3)
    for task in range(4):
        np.testing.assert_allclose(model.task(task).coef_, expected.task(task).coef_, atol=1e-8)
        assert model.task(task).threshold_ == pytest.approx(
            expected.task(task).threshold_, abs=1e-8
        )
    scores = model.score_samples(on_device(NEW), groups=3)
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(
        scores.cpu().numpy(), expected.score_samples(NEW, groups=3), atol=1e-8
    )


def test_joint_kernels(on_device):
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))[None]
    tasks = {"a": K[:, :20, :20], "b": K[:, 20:, 20:]}
    expected = JointMultiKernelFisherNull("precomputed").fit(tasks)
    model = JointMultiKernelFisherNull("precomputed")
    model.fit({name: on_device(part) for name, part in tasks.items()})
    for name, part in tasks.items():
        np.testing.assert_allclose(model.task(name).coef_, expected.task(name).coef_, atol=1e-8)
        scores = model.score_samples({name: on_device(part)})[name]
        np.testing.assert_allclose(scores, expected.score_samples({name: part})[name], atol=1e-8)
    model.enroll(on_device(K[:, 5:15, 5:15]), "c")
    assert model.task("c").coef_.shape == (10,)


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
        {"storage": Storage("tiled")},
        {"storage": Storage("nystroem", landmarks=20)},
    ],
)
def test_scaling_and_widths_are_fitted_on_the_device(params, dtype, on_device, monkeypatch):
    storage = replace(params.get("storage", Storage()), dtype=dtype)
    params = {"views": VIEWS, **params, "storage": storage}
    here = plain_fisher(**params).fit(X)
    monkeypatch.setattr(KernelSet, "fit", refuse)
    there = plain_fisher(**params).fit(on_device(X))
    close = {"rtol": 1e-12} if dtype == "float64" else {"rtol": 1e-6, "atol": 1e-6}
    for a, b in zip(here.kernel_set_.views, there.kernel_set_.views, strict=True):
        assert (a.name, a.scaling) == (b.name, b.scaling)
        np.testing.assert_array_equal(a.columns, b.columns)
        widths = [[kernel.width for kernel in view.kernels] for view in (a, b)]
        np.testing.assert_allclose(*widths, rtol=1e-12 if dtype == "float64" else 1e-6)
        np.testing.assert_allclose(a.train, b.train, atol=1e-12 if dtype == "float64" else 1e-6)
        if a.scaling == "standard":
            np.testing.assert_allclose(a.scaler.mean_, b.scaler.mean_, atol=1e-14)
            np.testing.assert_allclose(a.scaler.scale_, b.scaler.scale_, **close)
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
    here = plain_fisher(**params).fit(X, sample_weight=weight)
    there = plain_fisher(**params).fit(on_device(X), sample_weight=weight)
    np.testing.assert_allclose(
        there.score_samples(on_device(NEW)).cpu().numpy(), here.score_samples(NEW), rtol=2e-3
    )


def test_rows_of_weight_zero_take_no_part(on_device):
    weight = np.ones(len(X))
    weight[5:9] = 0.0
    spoiled = X.copy()
    spoiled[5:9] = 1e3
    model = plain_fisher().fit(on_device(spoiled), sample_weight=weight)
    expected = plain_fisher().fit(np.delete(X, np.arange(5, 9), axis=0))
    np.testing.assert_allclose(
        model.score_samples(on_device(NEW)).cpu().numpy(), expected.score_samples(NEW), rtol=2e-3
    )


def test_a_constant_view_is_dropped_on_the_device(on_device):
    table = np.column_stack([X, np.full(len(X), 3.7)])
    model = plain_fisher(views={"all": [0, 1, 2], "flat": [3]})
    with pytest.warns(ConstantViewWarning, match="'flat'"):
        model.fit(on_device(table))
    assert list(model.kernel_names_) == ["all"]
    with pytest.raises(ValueError, match="every view is constant"):
        model.fit(on_device(np.ones((10, 4))))


def test_whole_numbers_and_bad_values_are_answered_as_on_the_host(on_device):
    table = np.arange(30).reshape(10, 3) % 7
    here, there = plain_fisher().fit(table), plain_fisher().fit(on_device(table))
    np.testing.assert_allclose(there.coef_.cpu().numpy(), here.coef_, rtol=2e-3)
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        plain_fisher().fit(on_device(broken))
    with pytest.raises(ValueError, match="widths: got -1"):
        plain_fisher(widths=-1).fit(on_device(X))
    with pytest.raises(ValueError, match="scaling: got 'odd'"):
        plain_fisher(scaling="odd").fit(on_device(X))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("storage", "params"),
    [
        ("dense", {}),
        ("tiled", {}),
        ("dense", {"calibration": "split"}),
        ("tiled", {"calibration": "split"}),
        ("tiled", {"kernels": "laplacian"}),
    ],
)
@pytest.mark.filterwarnings("ignore::kernull.errors.DominantViewWarning")  # of two views
def test_evidence_of_tensors_is_that_of_arrays(params, dtype, storage, on_device):
    """With rows left out by folds or held out."""
    rng = np.random.default_rng(3)
    table, new = rng.normal(size=(60, 4)) + 5.0, 2.0 * rng.normal(size=(9, 4)) + 5.0
    # Weights of both are as good as the gap says, and float32 has a rounding of its own.
    tol, close = (1e-10, 1e-4) if dtype == "float64" else (1e-6, 5e-3)
    params = {"views": {"a": [0, 1], "b": [2, 3]}, **params}
    params |= {"storage": Storage(storage, dtype=dtype), "solver": Solver(tol=tol)}
    here = MultiKernelFisherNull(**params).fit(table)
    there = MultiKernelFisherNull(**params).fit(on_device(table))
    for call in ("score_samples", "evidence", "p_values", "contributions"):
        found = getattr(there, call)(on_device(new))
        assert isinstance(found, torch.Tensor)
        expected = getattr(here, call)(new)
        np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=close, atol=close)
    assert there.threshold_ == pytest.approx(here.threshold_, rel=close)
    # Scores before any weight enters are the same to rounding.
    ours, theirs = (m.model_.rule.left_out for m in (here, there))
    np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(there.fit_predict(on_device(table)), here.fit_predict(table))
    assert len(there.explain(on_device(new[:2])).words(0)) > 0

"""Tensors on a GPU, given to any estimator.

Where there is no GPU the estimators are told that the tensor's device is one: the same stacks are
then made, on the CPU.
"""

import numpy as np
import pytest

from kernull import (
    FisherNull,
    GaussianProcessOneClass,
    JointMultiKernelFisherNull,
    KernelPCANovelty,
    MultiKernelFisherNull,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
)
from kernull.estimators import _base, _enrolment, _task_scores
from kernull.estimators import joint as joint_module

torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")

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

    for module in (_base, _enrolment, _task_scores, joint_module):
        monkeypatch.setattr(module, "cuda_device_of", device_of)
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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_joint_tables(on_device, pooled, weighted):
    """Tasks solved in batches on the device are those of the host."""
    weight = RNG.uniform(0.5, 2.0, 40) if weighted else None
    options = {"views": {"a": [0, 1], "b": [2]}, "pooled": pooled, "tol": 1e-10}
    expected = JointMultiKernelFisherNull(**options).fit(X, groups=GROUPS, sample_weight=weight)
    model = JointMultiKernelFisherNull(**options)
    model.fit(on_device(X), groups=on_device(GROUPS), sample_weight=weight)
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=1e-8)
    for one in (model, expected):
        one.enroll(on_device(NEW) if one is model else NEW, 3)
    for task in range(4):
        np.testing.assert_allclose(model.coef_[task], expected.coef_[task], atol=1e-8)
        assert model.threshold_[task] == pytest.approx(expected.threshold_[task], abs=1e-8)
    scores = model.score_samples(on_device(NEW), groups=3)
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(
        scores.cpu().numpy(), expected.score_samples(NEW, groups=3), atol=1e-8
    )
    model.refit_weights()
    assert model.gap_ <= 1e-10


def test_joint_tasks_are_solved_in_batches(on_device, monkeypatch):
    calls = []
    original = torch.linalg.cholesky_ex
    monkeypatch.setattr(
        torch.linalg, "cholesky_ex", lambda A: (calls.append(A.shape[0]), original(A))[1]
    )
    JointMultiKernelFisherNull().fit(on_device(X), groups=np.repeat(np.arange(5), 8))
    assert set(calls) == {5}


def test_joint_kernels(on_device):
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))[None]
    tasks = {"a": K[:, :20, :20], "b": K[:, 20:, 20:]}
    expected = JointMultiKernelFisherNull("precomputed").fit(tasks)
    model = JointMultiKernelFisherNull("precomputed")
    model.fit({name: on_device(part) for name, part in tasks.items()})
    for name, part in tasks.items():
        np.testing.assert_allclose(model.coef_[name], expected.coef_[name], atol=1e-8)
        scores = model.score_samples({name: on_device(part)})[name]
        np.testing.assert_allclose(scores, expected.score_samples({name: part})[name], atol=1e-8)
    model.enroll(on_device(K[:, 5:15, 5:15]), "c")
    assert model.coef_["c"].shape == (10,)

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
    monkeypatch.setattr(_base, "cuda_device_of", lambda X: getattr(X, "device", None))
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

"""The weighted sum of a set of kernels."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel

from kernull import kernels as module
from kernull.operators import DenseStack
from kernull.views import KernelSet

VIEWS = {"a": np.arange(3), "b": np.arange(3, 5), "c": np.arange(5, 6)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kernels", "widths"),
    [
        ("rbf", 0.5),
        ("rbf", [0.25, 1.0]),
        (["rbf", "laplacian", "linear", linear_kernel], 0.5),
        (["rbf", "rbf"], 0.5),
    ],
)
@pytest.mark.parametrize("scaling", ["standard", ("none", "whiten"), "auto"])
def test_combine_is_the_weighted_sum(kernels, widths, scaling, weighted, monkeypatch):
    monkeypatch.setattr(module, "BAND_CELLS", 400)
    rng = np.random.default_rng(0)
    X = 50 + rng.normal(size=(45, 6))
    weight = rng.integers(1, 4, 45).astype(float) if weighted else None
    kernel_set = KernelSet.fit(
        X, VIEWS, kernels=kernels, widths=widths, scaling=scaling, sample_weight=weight
    )
    b = rng.uniform(size=kernel_set.J)
    b[1] = 0.0
    expected = np.tensordot(b, DenseStack.of(kernel_set).kernels, 1)
    np.testing.assert_allclose(kernel_set.combine(b), expected, rtol=1e-12, atol=1e-12)

"""A kernel_set's weighted sums and its changes of training rows; widths by blocks."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from kernull.kernels import mean_distance
from kernull.operators import CrossKernels, DenseStack
from kernull.views import KernelSet, resolve_views

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)) + 3.0
NEW = RNG.normal(size=(9, 7)) + 3.0
VIEWS = resolve_views({"a": slice(0, 3), "b": slice(3, 7)}, 7)


def kernel_set(**options):
    kernels = ["rbf", "laplacian", "linear", "polynomial", "cosine"]
    return KernelSet.fit(X, VIEWS, kernels=kernels, widths=[0.5, 1.0], **options)


def test_weighted_sum_of_training_kernels():
    fitted = kernel_set()
    b = np.random.default_rng(1).random(fitted.J)
    b[::3] = 0.0
    combined = fitted.combine(b)
    np.testing.assert_allclose(combined, DenseStack.of(fitted).combine(b), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(combined, combined.T, rtol=0, atol=1e-13)


def test_weighted_sum_against_new_rows():
    fitted = kernel_set()
    b, scale = np.random.default_rng(1).random((2, fitted.J))
    dense = DenseStack(np.stack([K for _, K in fitted.matrices(NEW)]), scale)
    cross = CrossKernels(fitted, NEW, scale)
    np.testing.assert_allclose(cross.combine(b), dense.combine(b), rtol=1e-12)
    np.testing.assert_allclose(fitted.combine(b, NEW), cross.combine(b / scale), rtol=1e-10)


def test_a_callable_kernels_own_array_is_left_alone():
    values = np.ones((60, 60))
    fitted = KernelSet.fit(X, VIEWS, kernels=lambda A, B: values[: len(A), : len(B)])
    assert fitted.combine(np.array([0.5, 0.25]))[0, 0] == pytest.approx(0.75)
    assert (values == 1.0).all()


def test_other_training_rows_under_the_same_scaling_and_widths():
    fitted = kernel_set(scaling="whiten")
    both = np.vstack([X, NEW])
    cross = np.stack([K for _, K in fitted.matrices(both)])  # between all rows and the first 60
    moved = fitted.with_rows(both)
    square = np.stack([K for _, K in moved.matrices()])
    np.testing.assert_allclose(square[:, :, :60], cross, rtol=1e-9, atol=1e-9)
    rows = np.array([3, 61, 0])
    taken = np.stack([K for _, K in moved.take(rows).matrices()])
    np.testing.assert_allclose(taken, square[:, rows][:, :, rows], rtol=1e-9, atol=1e-9)
    assert fitted.n == 60  # and the kernel_set itself is as it was


@pytest.mark.parametrize("n", [2, 5, 129, 1500])
@pytest.mark.parametrize(
    ("metric", "name"), [("euclidean", "euclidean"), ("manhattan", "cityblock")]
)
def test_mean_distance_is_the_mean_over_pairs(n, metric, name):
    rng = np.random.default_rng(n)
    rows, copies = rng.normal(size=(n, 4)) + 100.0, rng.integers(1, 4, size=n)
    assert mean_distance(rows, metric) == pytest.approx(pdist(rows, name).mean(), rel=1e-9)
    repeated = pdist(np.repeat(rows, copies, axis=0), name).mean()
    assert mean_distance(rows, metric, copies.astype(float)) == pytest.approx(repeated, rel=1e-9)

"""Kernel functions and widths against scikit-learn and double loops."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import pairwise

from kernull import kernels
from kernull.kernels import (
    KERNELS,
    Laplacian,
    Polynomial,
    Rbf,
    mean_distance,
    parse_kernels,
)


@pytest.fixture
def X(rng):
    return rng.normal(size=(11, 3)) * [1, 2, 0.5] + 3


@pytest.fixture
def Y(rng):
    return np.random.default_rng(1).normal(size=(5, 3))


def loop_mean(X, metric):
    total, count = 0.0, 0
    for i in range(len(X)):
        for k in range(len(X)):
            if i != k:
                d = X[i] - X[k]
                total += np.sqrt(d @ d) if metric == "euclidean" else np.abs(d).sum()
                count += 1
    return total / count


def expected(kind, X, Y, width):
    """scikit-learn's kernels with our parameters."""
    if kind == "rbf":
        return pairwise.rbf_kernel(X, Y, gamma=1 / (2 * width**2))
    if kind == "laplacian":
        return pairwise.laplacian_kernel(X, Y, gamma=1 / width)
    if kind == "polynomial":
        return pairwise.polynomial_kernel(X, Y, degree=3, gamma=1 / X.shape[1], coef0=1)
    return {"linear": pairwise.linear_kernel, "cosine": pairwise.cosine_similarity}[kind](X, Y)


@pytest.mark.parametrize("kind", sorted(KERNELS))
@pytest.mark.parametrize("factor", [0.25, 1.0, 3.0])
def test_named_kernels_equal_scikit_learn(kind, factor, X, Y):
    (kernel,) = parse_kernels(kind)[0].fit(X, [factor])
    metric = {"rbf": "euclidean", "laplacian": "manhattan"}.get(kind)
    width = None if metric is None else factor * loop_mean(X, metric)
    if width is not None:
        assert kernel.width == pytest.approx(width, rel=1e-10)
    np.testing.assert_allclose(kernel(X), expected(kind, X, X, width), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel(Y, X), expected(kind, Y, X, width), rtol=1e-9, atol=1e-12)
    diagonal = np.diag(expected(kind, Y, Y, width))
    np.testing.assert_allclose(kernel.diagonal(Y), diagonal, rtol=1e-9)


def test_the_formulas_themselves(X):
    """Independent of scikit-learn: entry (2, 5) written out."""
    x, y = X[2], X[5]
    rbf, laplacian, polynomial = (
        parse_kernels(kind)[0].fit(X, [0.5])[0] for kind in ("rbf", "laplacian", "polynomial")
    )
    s = 0.5 * loop_mean(X, "euclidean")
    assert rbf(X)[2, 5] == pytest.approx(np.exp(-((x - y) ** 2).sum() / (2 * s**2)))
    s = 0.5 * loop_mean(X, "manhattan")
    assert laplacian(X)[2, 5] == pytest.approx(np.exp(-np.abs(x - y).sum() / s))
    assert polynomial(X)[2, 5] == pytest.approx((x @ y / 3 + 1) ** 3)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_mean_distance_equals_a_double_loop(X, metric):
    assert mean_distance(X, metric) == pytest.approx(loop_mean(X, metric), rel=1e-12)


def test_copies_are_at_no_distance(rng):
    """Sums of squares less products leave them the square root of a rounding apart."""
    x = rng.normal(size=(2, 5)) + 3.0
    X = x[[0] * 17 + [1]]
    expected = np.linalg.norm(x[0] - x[1]) * 2 * 17 / (18 * 17)
    assert mean_distance(X) == pytest.approx(expected, rel=1e-14)


def test_half_of_the_weight_does_not_depend_on_rounding(rng):
    values, weights = np.arange(6.0), np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    for _ in range(20):
        order = rng.permutation(6)
        assert kernels._weighted_median(values[order], weights[order]) == 2.5


def test_mean_distance_far_from_the_origin(X):
    near = mean_distance(X)
    assert mean_distance(X + 1e7) == pytest.approx(near, rel=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_weights_count_as_copies(X, metric):
    copies = np.array([1, 2, 1, 3, 1, 1, 5, 1, 1, 1, 2])
    weighted = mean_distance(X, metric, copies)
    assert weighted == pytest.approx(loop_mean(np.repeat(X, copies, axis=0), metric), rel=1e-12)


@pytest.mark.parametrize("w", [1e-6, 0.05, 0.1, 0.5, 0.9, 1.0])
def test_small_equal_weights_leave_the_width(X, w):
    assert mean_distance(X, sample_weight=np.full(11, w)) == pytest.approx(
        loop_mean(X, "euclidean")
    )


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(1e-3, 20.0), min_size=6, max_size=6))
def test_a_width_stays_among_the_distances(weights):
    X = np.random.default_rng(0).normal(size=(6, 2))
    mean = mean_distance(X, sample_weight=np.array(weights))
    assert 0 < mean <= np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1)).max()


def test_subsample_beyond_the_exact_rows(monkeypatch, rng):
    X = rng.normal(size=(3000, 2))
    exact = mean_distance(X)
    monkeypatch.setattr(kernels, "EXACT_ROWS", 1000)
    sampled = mean_distance(X)
    assert sampled == mean_distance(X)
    assert sampled != exact
    assert sampled == pytest.approx(exact, rel=0.03)


def test_coinciding_rows_have_distance_zero():
    assert mean_distance(np.ones((4, 2))) == 0.0


def test_several_widths_share_one_mean(X):
    kernels = parse_kernels("rbf")[0].fit(X, (0.25, 0.5, 1.0))
    assert [k.factor for k in kernels] == [0.25, 0.5, 1.0]
    np.testing.assert_allclose(
        [k.width for k in kernels], loop_mean(X, "euclidean") * np.array([0.25, 0.5, 1.0])
    )


@pytest.mark.parametrize("kind", ["linear", "polynomial", "cosine"])
def test_kernels_without_a_width_come_once(kind, X):
    assert len(parse_kernels(kind)[0].fit(X, (0.25, 0.5, 1.0))) == 1


def minus_abs(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).max(-1))


def test_callables(X, Y):
    (spec,) = parse_kernels(minus_abs)
    (kernel,) = spec.fit(X, (0.5, 1.0))  # a function has no width of ours
    assert kernel.label == "minus_abs"
    np.testing.assert_array_equal(kernel(X), minus_abs(X, X))
    np.testing.assert_array_equal(kernel(Y, X), minus_abs(Y, X))
    np.testing.assert_allclose(kernel.diagonal(Y), np.ones(5))
    (spec,) = parse_kernels(RBF(2.0))  # any object that can be called
    (kernel,) = spec.fit(X)
    np.testing.assert_allclose(kernel(Y, X), pairwise.rbf_kernel(Y, X, gamma=1 / 8))
    assert kernel.label == "RBF"


def test_a_mix_keeps_its_order(X):
    kernels = [spec.fit(X)[0] for spec in parse_kernels(["linear", minus_abs, "rbf"])]
    assert [kernel.label for kernel in kernels] == ["linear", "minus_abs", "rbf"]
    assert [kernel.metric for kernel in kernels] == [None, None, "euclidean"]
    assert parse_kernels(("rbf",)) == parse_kernels("rbf")


@pytest.mark.parametrize("bad", ["rb", "", 3, None, ["rbf", "precomputed"], [None], RBF, {"a": 1}])
def test_unknown_kernels(bad):
    with pytest.raises(ValueError, match=r"^kernels: got"):
        parse_kernels(bad)


def test_no_kernel():
    with pytest.raises(ValueError, match="kernels: got an empty list"):
        parse_kernels([])


def test_kernel_objects_are_taken_as_they_are(X, Y):
    square = Polynomial(degree=2, coef0=0.5, gamma=0.1)
    assert parse_kernels([square, "rbf"]) == [square, Rbf()]
    expected = pairwise.polynomial_kernel(Y, X, degree=2, coef0=0.5, gamma=0.1)
    np.testing.assert_allclose(square.fit(X)[0](Y, X), expected)
    (kernel,) = Laplacian(width=2.0).fit(X, (0.5, 1.0))  # a width that is given stays
    np.testing.assert_allclose(kernel(Y, X), pairwise.laplacian_kernel(Y, X, gamma=0.5))


class Scaled:
    """A kernel whose length scale comes from fit."""

    def fit(self, X, sample_weight=None):
        self.gamma = 1.0 / X.var(axis=0).mean()
        self.weighted = sample_weight is not None
        return self

    def __call__(self, X, Y):
        return pairwise.rbf_kernel(X, Y, gamma=self.gamma)

    def diagonal(self, X):
        return np.ones(len(X))


def test_an_object_is_copied_and_fitted_to_each_view(X, Y):
    given = Scaled()
    (one,), (other,) = (parse_kernels(given)[0].fit(rows) for rows in (X, 2 * X))
    assert not hasattr(given, "gamma")
    assert one.label == "Scaled"
    np.testing.assert_allclose(one(Y, X), pairwise.rbf_kernel(Y, X, gamma=1 / X.var(axis=0).mean()))
    np.testing.assert_allclose(other(2 * Y, 2 * X), one(Y, X))
    np.testing.assert_array_equal(one.diagonal(Y), np.ones(5))
    assert not one.function.weighted
    assert parse_kernels(given)[0].fit(X, sample_weight=np.ones(len(X)))[0].function.weighted


def test_a_diagonal_of_the_wrong_shape(X):
    kernel = Scaled()
    kernel.diagonal = lambda X: np.ones((len(X), 1))
    with pytest.raises(ValueError, match=r"kernels: the diagonal of .* has shape \(11, 1\)"):
        parse_kernels(kernel)[0].diagonal(X)


def test_a_callable_of_the_wrong_shape(X):
    (kernel,) = parse_kernels(lambda A, B: (A @ B.T)[:, :2])[0].fit(X)
    with pytest.raises(ValueError, match=r"kernels: the callable .*shape \(11, 2\).*\(11, 11\)"):
        kernel(X)


def test_a_callable_with_nan(X):
    (kernel,) = parse_kernels(lambda A, B: np.full((len(A), len(B)), np.nan))[0].fit(X)
    with pytest.raises(ValueError, match="returned NaN"):
        kernel(X)


def test_fitted_kernels_pickle(X, Y):
    for kind in KERNELS:
        (kernel,) = parse_kernels(kind)[0].fit(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(Y, X), kernel(Y, X))

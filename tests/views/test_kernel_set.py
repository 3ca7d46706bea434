"""The kernel_set: which kernels a model has, and what they are called."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernull.errors import ConstantViewWarning, InvalidKernelError
from kernull.operators import DenseStack
from kernull.views import KernelSet, Whiten

VIEWS = {"a": np.array([0, 1]), "b": np.array([2])}


def fit(X, views=VIEWS, **options):
    return KernelSet.fit(X, views, **{"scaling": "none", **options})


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 3))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["a", "b"]),
        ({"widths": (0.25, 1.0)}, ["a 0.25D", "a 1D", "b 0.25D", "b 1D"]),
        ({"kernels": ["rbf", "linear"]}, ["a rbf", "a linear", "b rbf", "b linear"]),
        (
            {"kernels": ["rbf", "linear"], "widths": (0.5, 1)},
            ["a rbf 0.5D", "a rbf 1D", "a linear", "b rbf 0.5D", "b rbf 1D", "b linear"],
        ),
    ],
)
def test_names_say_as_much_as_needed(X, options, names):
    kernel_set = fit(X, **options)
    assert list(kernel_set.kernel_names) == names
    assert len(names) == kernel_set.J
    assert [name.split()[0] for name in names] == list(kernel_set.kernel_views)


def test_each_view_is_scaled_and_measured_by_itself(X):
    kernel_set = fit(X * [1, 1, 1000] + 5, widths=0.5, scaling="standard")
    for view, columns, K in zip(
        kernel_set.views, VIEWS.values(), DenseStack.of(kernel_set).kernels, strict=True
    ):
        Z = (X[:, columns] - X[:, columns].mean(0)) / X[:, columns].std(0)
        np.testing.assert_allclose(view.train, Z, rtol=1e-9, atol=1e-9)
        d = np.sqrt(((Z[:, None] - Z[None]) ** 2).sum(-1))
        width = 0.5 * d.sum() / (12 * 11)
        np.testing.assert_allclose(K, rbf_kernel(Z, gamma=1 / (2 * width**2)), rtol=1e-9)


def test_constant_views_are_dropped_with_a_warning_that_names_them(X):
    views = {**VIEWS, "flat": np.array([3]), "flat too": np.array([3, 4])}
    table = np.column_stack([X, np.full(12, 7.0), np.full(12, -1e9)])
    with pytest.warns(ConstantViewWarning, match="'flat', 'flat too'"):
        kernel_set = fit(table, views)
    assert list(kernel_set.kernel_names) == ["a", "b"]
    np.testing.assert_array_equal(
        DenseStack.of(kernel_set).kernels, DenseStack.of(fit(X, VIEWS)).kernels
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = fit(table, views, drop_constant=False)
    np.testing.assert_array_equal(DenseStack.of(kept).kernels[2], np.ones((12, 12)))


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_view_that_is_constant_up_to_rounding_is_constant(X, size):
    """0.1 + 0.2 is not 0.3 in floating point, and says nothing about normality either."""
    flat = np.where(np.arange(12) % 2, 0.1 + 0.2, 0.3) * size
    with pytest.warns(ConstantViewWarning, match="'c'"):
        fit(np.column_stack([X, flat]), {**VIEWS, "c": np.array([3])})


def test_small_variation_on_a_large_offset_is_no_constant(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel_set = fit(1e6 + 1e-6 * X, scaling="standard")
    assert kernel_set.J == 2


def test_a_constant_column_inside_a_view_does_no_harm(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scaling in ("standard", "whiten", "none"):
            one = fit(
                np.column_stack([X[:, :2], np.ones(12)]), {"v": np.arange(3)}, scaling=scaling
            )
            two = fit(X[:, :2], {"v": np.arange(2)}, scaling=scaling)
            if scaling != "whiten":  # shrinkage counts columns
                np.testing.assert_allclose(
                    DenseStack.of(one).kernels, DenseStack.of(two).kernels, rtol=1e-9
                )
            assert np.isfinite(DenseStack.of(one).kernels).all()


def test_everything_constant():
    with pytest.raises(ValueError, match="X: every view is constant"):
        fit(np.ones((5, 3)))


def test_select_keeps_order_and_values(X):
    kernel_set = fit(X, kernels=["rbf", "linear"], widths=(0.5, 1))
    mask = np.array([False, True, False, False, False, True])
    part = kernel_set.select(mask)
    assert part.kernel_names == ("a rbf 1D", "b linear")
    np.testing.assert_array_equal(
        DenseStack.of(part).kernels, DenseStack.of(kernel_set).kernels[mask]
    )
    only_b = kernel_set.select(np.array([False] * 3 + [True] * 3))
    assert [view.name for view in only_b.views] == ["b"]


def test_zero_weights_take_no_part(X):
    weight = np.ones(12)
    weight[[2, 5]] = 0
    one = fit(X, scaling="standard", sample_weight=weight)
    two = fit(X[weight > 0], scaling="standard")
    assert one.n == 10
    np.testing.assert_allclose(DenseStack.of(one).kernels, DenseStack.of(two).kernels, rtol=1e-12)


@pytest.mark.parametrize("widths", [0, -1, np.nan, np.inf, [], [1.0, 0.0], "wide", None])
def test_bad_widths(X, widths):
    with pytest.raises(ValueError, match=r"^widths: got"):
        fit(X, widths=widths)


def test_a_callable_that_is_no_kernel_is_found_out(X):
    def lopsided(A, B):
        return A @ np.array([[1.0, 0.5], [0.0, 1.0]]) @ B.T

    def negative(A, B):
        return -A @ B.T

    view = {"a": np.array([0, 1])}
    with pytest.raises(InvalidKernelError, match="kernel 0 is not symmetric"):
        DenseStack.of(fit(X, view, kernels=lopsided))
    with pytest.raises(InvalidKernelError, match="kernel 1 is not positive semidefinite"):
        DenseStack.of(fit(X, view, kernels=["rbf", negative]))


def test_new_rows_are_scaled_by_training_statistics(X, rng):
    new = rng.normal(size=(4, 3)) * 3 + 1
    kernel_set = fit(X, scaling="whiten", widths=0.5)
    for (_, K), view in zip(kernel_set.matrices(new), kernel_set.views, strict=True):
        scaler = Whiten().fit(X[:, view.columns])
        rows = scaler.transform(new[:, view.columns])
        gamma = 1 / (2 * view.kernels[0].width ** 2)
        np.testing.assert_allclose(K, rbf_kernel(rows, view.train, gamma=gamma), rtol=1e-9)

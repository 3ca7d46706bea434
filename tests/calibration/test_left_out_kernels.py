"""Left-out kernels of a kernel set, and scores of models refitted from the beginning."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.calibration.left_out_kernels import leaves_scaling_out, left_out_kernel_rows
from kernull.calibration.left_out_scores import left_out_contributions, lower_ties
from kernull.kernels.left_out_widths import left_out_widths
from kernull.mkl import RidgeInverse
from kernull.stacks.kernel_set import KernelSet
from kernull.views import ViewScaler
from tests.calibration.left_out_tables import tables

VIEWS = {"a": np.arange(3), "b": np.arange(2, 5)}


def kernel_set(X, weight=None, **options):
    return KernelSet.fit(X, VIEWS, sample_weight=weight, **options)


@pytest.mark.parametrize("scaling", ["none", "standard", "whiten", "quantile"])
@pytest.mark.parametrize("widths", ["auto", [0.25, 1.0]])
def test_rows_are_the_kernels_of_refitted_scalings(scaling, widths):
    """Under widths that grow as distances of the others do; whitening and quantiles are near."""
    X = tables(30, 5)["factors"]
    kernels = kernel_set(X, scaling=scaling, widths=widths)
    index = np.array([4, 17])
    found = left_out_kernel_rows(kernels, X)(index)
    found = np.stack(list(found))
    for r, i in enumerate(index):
        others, j = np.arange(30) != i, 0
        for view in kernels.views:
            columns = np.asarray(view.columns)
            scaler = ViewScaler.fit(view.scaler.kind, X[others][:, columns])
            Z = scaler.transform(X[:, columns])
            squared = ((Z[others] - Z[i]) ** 2).sum(axis=1)
            for kernel in view.kernels:
                c = 1.0
                if scaling != "none":
                    c = left_out_widths(view.train, [1.0])[i, 0]
                truth = np.exp(-squared / (2.0 * (c * kernel.width) ** 2))
                limit = {"none": 1e-9, "standard": 1e-9, "quantile": 0.15}.get(scaling, 1e-3)
                np.testing.assert_allclose(found[j, r, others], truth, atol=limit)
                j += 1
        assert (found[:, r, i] == 0.0).all()


def test_groups_do_not_see_each_other():
    X, groups = tables(24, 5)["gauss"], np.arange(24) // 2
    rows = left_out_kernel_rows(kernel_set(X), X, groups=groups)
    found = np.stack(list(rows(np.arange(24))))
    same = groups[:, None] == groups
    assert (found[:, same] == 0.0).all()
    assert (found[:, ~same] > 0.0).any()


@pytest.mark.parametrize("kind", ["linear", "cosine", "polynomial", "laplacian"])
def test_other_kernels_are_left_out_at_the_scaling_of_all_rows(kind, rng):
    X = rng.normal(size=(20, 5)) + 3.0
    kernels = kernel_set(X, kernels=[kind, "rbf"], scaling="standard")
    assert not leaves_scaling_out(kernels)
    assert leaves_scaling_out(kernel_set(X, kernels=[kind, "rbf"], scaling="none"))
    assert leaves_scaling_out(kernel_set(X, scaling="whiten"))
    found = np.stack(list(left_out_kernel_rows(kernels, X)(np.array([3]))))
    plain = kernels.stack().kernels[:, 3].copy()
    plain[:, 3] = 0.0
    np.testing.assert_allclose(found[[0, 2], 0], plain[[0, 2]], rtol=1e-12)


@pytest.mark.parametrize("name", ["gauss", "factors", "lognormal", "integers"])
def test_scores_follow_refits_of_everything(name):
    """The inverse keeps the plain kernel, so scores are near: what matters is their order."""
    X = tables(40, 5)[name]
    delta, b = 1e-2, np.array([0.5, 0.3, 0.4, 0.6])
    options = {"scaling": ("standard", "whiten"), "widths": "auto"}
    kernels = kernel_set(X, **options)
    inverse = RidgeInverse.of(kernels.combine(b), delta * 40)
    rows = left_out_kernel_rows(kernels, X)
    found = left_out_contributions(rows, b, inverse.inverse, inverse.coef()).sum(axis=1)
    truth = []
    for i in range(40):
        others = np.arange(40) != i
        refit = kernel_set(X[others], **options)
        a = np.linalg.solve(refit.combine(b) + delta * 40 * np.eye(39), np.ones(39))
        truth.append((refit.combine(b, X[i : i + 1]) @ a)[0])
    assert np.corrcoef(found, truth)[0, 1] > 0.995
    assert np.abs(found - truth).max() < (0.15 if name == "lognormal" else 0.06)


def test_only_scores_that_tie_are_lowered(rng):
    scores = rng.normal(size=100)
    np.testing.assert_array_equal(lower_ties(scores), scores)
    scores[10:20] = scores[10]
    found = lower_ties(scores)
    rest = np.r_[:10, 20:100]
    np.testing.assert_array_equal(found[rest], scores[rest])
    assert (found[10:20] < scores[10:20]).all()
    assert (found[10:20] > scores[10:20] - 0.2).all()
    assert np.ptp(found[10:20]) == 0.0
    np.testing.assert_array_equal(
        lower_ties(np.column_stack([scores, scores])), np.column_stack([found, found])
    )
    assert not np.isnan(lower_ties(np.array([-np.inf, -np.inf, 1.0, 2.0]))).any()

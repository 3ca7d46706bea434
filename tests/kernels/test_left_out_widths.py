"""Widths without a row, and near copies."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.kernels import mean_distance
from kernull.kernels.functions import auto_factor
from kernull.kernels.left_out_copies import near_copy_share
from kernull.kernels.left_out_widths import left_out_widths
from kernull.views import ViewScaler


def refitted(Z, factor, metric="euclidean", weight=None, groups=None):
    groups = np.arange(len(Z)) if groups is None else groups
    out = []
    for i in range(len(Z)):
        others = groups != groups[i]
        w = None if weight is None else weight[others] / weight[others].mean()
        D = mean_distance(Z[others], metric, w)
        out.append(D * (auto_factor(Z[others], D, metric, w) if factor == "auto" else factor))
    return np.array(out)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("factor", ["auto", 0.5])
@pytest.mark.parametrize("how", ["plain", "weighted", "grouped"])
def test_widths_of_the_others(metric, factor, how, rng):
    """Exact where the scaling knows no rows; copies included."""
    Z = np.vstack([rng.standard_t(3, size=(28, 3)), np.zeros((4, 3))])
    weight = rng.uniform(0.5, 2.0, 32) if how == "weighted" else None
    groups = np.arange(32) // 3 if how == "grouped" else None
    found = left_out_widths(
        Z, [factor], metric=metric, sample_weight=weight, groups=groups, rescale=False
    )
    truth = refitted(Z, factor, metric, weight, groups)
    np.testing.assert_allclose(found[:, 0], truth, rtol=1e-7)


@pytest.mark.parametrize("kind", ["standard", "whiten"])
@pytest.mark.parametrize("table", ["gauss", "lognormal"])
def test_widths_of_refitted_scalings_are_near(kind, table, rng):
    X = rng.normal(size=(50, 5)) if table == "gauss" else rng.lognormal(0.0, 1.5, (50, 5))
    found = left_out_widths(ViewScaler.fit(kind, X).transform(X), ["auto", 0.5])
    for f, factor in enumerate(["auto", 0.5]):
        truth = []
        for i in range(50):
            rest = np.delete(X, i, axis=0)
            Z = ViewScaler.fit(kind, rest).transform(rest)
            D = mean_distance(Z)
            truth.append(D * (auto_factor(Z, D) if factor == "auto" else factor))
        limit = 0.05 if table == "gauss" else 0.25  # one row may set the unit of a column
        assert np.abs(found[:, f] / truth - 1).max() < limit
        assert np.median(np.abs(found[:, f] / truth - 1)) < 0.01


def test_many_rows_share_one_width(rng, monkeypatch):
    Z = rng.normal(size=(60, 3))
    monkeypatch.setattr("kernull.kernels.left_out_widths.FEW_ROWS", 50)
    found = left_out_widths(Z, ["auto"])
    assert np.ptp(found) == 0.0
    D = mean_distance(Z)
    assert found[0, 0] == pytest.approx(D * auto_factor(Z, D), rel=1e-9)


def test_rows_that_are_all_equal():
    np.testing.assert_array_equal(left_out_widths(np.ones((5, 2)), [0.5]), np.full((5, 1), 0.5))


@pytest.mark.parametrize("d", [1, 2, 10, 100])
@pytest.mark.parametrize("table", ["gauss", "uniform", "clusters", "lognormal", "integers"])
def test_independent_rows_are_no_near_copies(d, table, rng):
    Z = {
        "gauss": rng.normal(size=(400, d)),
        "uniform": rng.uniform(size=(400, d)),
        "clusters": rng.normal(size=(400, d)) + 30 * rng.integers(0, 3, (400, 1)),
        "lognormal": rng.lognormal(0, 1, (400, d)),
        "integers": rng.poisson(2.0, (400, d)).astype(float),
    }[table]
    assert near_copy_share(Z) < 0.05


@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.parametrize("d", [2, 8, 60])
def test_near_copies_are_found(times, d, rng):
    rows = np.repeat(rng.normal(size=(400 // times, d)), times, axis=0)
    assert near_copy_share(rows + 1e-4 * rng.normal(size=rows.shape)) > 0.8
    assert near_copy_share(rows) < 0.05  # exact copies are another matter
    assert near_copy_share(rows[:10]) == 0.0

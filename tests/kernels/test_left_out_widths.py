"""Widths without a row, and near copies."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.kernels import mean_distance
from kernull.kernels.left_out_copies import copy_shares
from kernull.kernels.left_out_widths import left_out_widths
from kernull.views import ViewScaler


@pytest.mark.parametrize("how", ["plain", "weighted", "grouped"])
def test_widths_grow_as_the_mean_squared_distance_of_the_others_falls(how, rng):
    """By a loop over the others, in whichever unit and place the rows are."""
    Z = 3.0 + np.vstack([rng.standard_t(3, size=(28, 3)), np.zeros((4, 3))])
    w = rng.uniform(0.5, 2.0, 32) if how == "weighted" else np.ones(32)
    groups = np.arange(32) // 3 if how == "grouped" else np.arange(32)

    def mean_squared(rows):
        apart = ((Z[rows][:, None] - Z[rows][None]) ** 2).sum(axis=-1)
        return w[rows] @ apart @ w[rows] / w[rows].sum() ** 2

    found = left_out_widths(
        Z,
        [0.5, 2.0],
        sample_weight=None if how == "plain" else w,
        groups=groups if how == "grouped" else None,
    )
    whole = mean_squared(np.arange(32))
    for i in range(32):
        c = np.sqrt(whole / mean_squared(np.flatnonzero(groups != groups[i])))
        np.testing.assert_allclose(found[i], [0.5 * c, 2.0 * c], rtol=1e-10)


@pytest.mark.parametrize("kind", ["standard", "whiten", "quantile"])
def test_distances_of_the_others_grow_as_their_widths_do(kind, rng):
    """So that what the others are to each other stays as it is in the plain scaling."""
    X = rng.normal(size=(60, 5))
    X[0] = 4.0
    widths = left_out_widths(ViewScaler.fit(kind, X).transform(X), [1.0])[:, 0]
    for i in (0, 7):
        rest = np.delete(X, i, axis=0)
        plain = mean_distance(ViewScaler.fit(kind, X).transform(rest))
        refit = mean_distance(ViewScaler.fit(kind, rest).transform(rest))
        assert abs(widths[i] * plain / refit - 1) < 0.01


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
    exact, near = copy_shares(Z)
    assert exact == 0.0
    assert near < 0.05


@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.parametrize("d", [2, 8, 60])
def test_near_copies_are_found(times, d, rng):
    rows = np.repeat(rng.normal(size=(400 // times, d)), times, axis=0)
    exact, near = copy_shares(rows + 1e-4 * rng.normal(size=rows.shape))
    assert exact == 0.0
    assert near > 0.8
    exact, near = copy_shares(rows)
    assert exact == 1.0
    assert near < 0.05
    assert copy_shares(rows[:10]) == (0.0, 0.0)


TABLES_WITH_EQUAL_ROWS = {
    "one column of counts": lambda rng: rng.poisson(5, (300, 1)),
    "counts": lambda rng: rng.poisson(0.5, (300, 8)),
    "readings of two digits": lambda rng: rng.normal(size=(300, 2)).round(1),
    "whole money": lambda rng: rng.lognormal(3, 1, (1000, 2)).round(),
    "categories beside a reading": lambda rng: np.column_stack(
        [rng.normal(size=300).round(1), rng.integers(0, 3, (300, 3))]
    ),
    "things seen again and again": lambda rng: rng.normal(size=(60, 5))[rng.integers(0, 60, 300)],
    "machine at rest": lambda rng: (rng.random((300, 1)) < 0.7) * rng.normal(size=(300, 8)),
}


@pytest.mark.parametrize("table", TABLES_WITH_EQUAL_ROWS)
def test_equal_rows_of_few_values_are_no_copies(table, rng):
    Z = TABLES_WITH_EQUAL_ROWS[table](rng).astype(float)
    assert len(np.unique(Z, axis=0)) < len(Z)
    assert copy_shares((Z - Z.mean(axis=0)) / Z.std(axis=0))[0] == 0.0


def test_copies_of_some_rows_are_counted(rng):
    rows = rng.normal(size=(300, 8))
    assert copy_shares(np.vstack([rows, rows[:150]]))[0] == pytest.approx(2 / 3)
    assert copy_shares(np.vstack([rows, *[rows[:30]] * 19]))[0] == pytest.approx(600 / 870)


@pytest.mark.parametrize(("n", "d", "seeds"), [(100, 100, 50), (500, 2000, 2)])
def test_categories_are_no_near_copies(n, d, seeds):
    """Standardised, those of equal frequency are equally far from each other."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows = np.eye(d)[rng.integers(0, d, n)]
        rows = rows[:, rows.any(axis=0)]
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        assert copy_shares(rows)[1] < 0.05
    twice = np.repeat(rows, 2, axis=0)
    assert copy_shares(twice + 1e-4 * rng.normal(size=twice.shape))[1] > 0.8

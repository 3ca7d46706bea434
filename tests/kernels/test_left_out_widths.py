"""Widths without a row."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.kernels import mean_distance
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

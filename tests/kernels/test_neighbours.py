"""Neighbours as scikit-learn finds them, without its reset of the warning filters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from kernull.kernels.neighbours import nearest


@pytest.mark.parametrize(("n", "d", "k"), [(50, 3, 4), (50, 30, 4), (10, 2, 9), (200, 15, 1)])
def test_they_are_scikit_learns(rng, n, d, k):
    rows, query = rng.normal(size=(n, d)), rng.normal(size=(7, d))
    distance, index = NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(query)
    found = nearest(rows, query, k)
    np.testing.assert_array_equal(found[0], distance)
    np.testing.assert_array_equal(found[1], index)


@pytest.mark.parametrize("d", [3, 30])
def test_the_filters_of_the_process_are_not_reset(rng, d, monkeypatch):
    monkeypatch.setattr(warnings, "resetwarnings", lambda: pytest.fail("filters were reset"))
    nearest(rng.normal(size=(50, d)), rng.normal(size=(7, d)), 4)

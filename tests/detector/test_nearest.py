"""Distances to the nearest of all rows, against SciPy's."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial import cKDTree

from kernull.detector import nearest
from kernull.detector.nearest import nearest_distances


@pytest.mark.parametrize(("new", "rows"), [(1, 1), (3, 2049), (257, 4096), (600, 5000)])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_distances_are_those_of_a_tree(new, rows, shift):
    rng = np.random.default_rng(new)
    X, Y = shift + rng.normal(size=(new, 4)), shift + rng.normal(size=(rows, 4))
    expected = cKDTree(Y).query(X)[0]
    np.testing.assert_allclose(nearest_distances(X, Y, Y.mean(axis=0)), expected, rtol=1e-12)
    allowed = rng.random(rows) < 0.5
    allowed[-1] = True
    expected = cKDTree(Y[allowed]).query(X)[0]
    found = nearest_distances(X, Y, Y.mean(axis=0), allowed)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.torch
def test_torch_finds_the_same(monkeypatch):
    import torch

    monkeypatch.setattr(nearest, "BLOCK_ON_DEVICE", (30, 100))
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(70, 4)), rng.normal(size=(900, 4))
    for allowed in (None, rng.random(900) < 0.5):
        here, there = (
            nearest_distances(X, Y, Y.mean(axis=0), allowed, device)
            for device in (None, torch.device("cpu"))
        )
        np.testing.assert_allclose(there, here, rtol=1e-14)


def test_a_copy_is_at_distance_zero():
    rows = np.random.default_rng(0).normal(size=(5000, 30)) * 1e5
    assert not nearest_distances(rows[::7], rows, rows.mean(axis=0)).any()


def test_no_matrix_of_all_distances_is_kept():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2000, 5)), rng.normal(size=(50_000, 5))
    tracemalloc.start()
    nearest_distances(X, Y, Y.mean(axis=0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 8 * np.prod(nearest.BLOCK)

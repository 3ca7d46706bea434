"""Pseudo-outliers: rows drawn around the targets, to choose a model where no outliers are known."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from kernull._typing import Array


def pseudo_outliers(X: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows of three kinds in equal parts: columns permuted, rows jittered, pairs extrapolated.

    Jitter moves a row in a random direction by one to three times the distance to its fifth
    neighbour; extrapolation moves it away from another row by half to all of their distance.
    Distances are those of standardised columns.

    Parameters
    ----------
    X : array of shape (n, d)
        Targets.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (count, d)
        Rows in the units of X; constant columns keep their value.
    """
    centre, spread = X.mean(axis=0), X.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    Z = (X - centre) / unit
    n, d = Z.shape
    part = -(-count // 3)
    permuted = Z[rng.integers(n, size=(part, d)), np.arange(d)]
    k = min(5, n - 1)
    scale = NearestNeighbors(n_neighbors=k + 1).fit(Z).kneighbors(Z)[0][:, -1]
    start = rng.integers(n, size=part)
    noise = rng.standard_normal((part, d))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    jittered = Z[start] + (scale[start] * rng.uniform(1.0, 3.0, part))[:, None] * noise
    first, second = rng.integers(n, size=(2, part))
    far = Z[first] + rng.uniform(0.5, 1.0, (part, 1)) * (Z[first] - Z[second])
    rows = np.concatenate([permuted, jittered, far])[:count] * unit + centre
    rows[:, spread == 0] = centre[spread == 0]
    return np.asarray(rows)

"""The width of a kernel: a factor of the mean pairwise distance of its training view."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import euclidean_distances

from kernull._typing import Array

__all__ = ["BLOCK_ROWS", "mean_distance"]

#: Beyond this many rows the mean distance is taken over a fixed random subsample: its relative
#: standard error is then well below one percent, and a width needs no more.
EXACT_ROWS = 4000
BLOCK_ROWS = 256


def mean_distance(
    X: Array,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    random_state: int = 0,
    keep: list[Array] | None = None,
) -> float:
    r"""Mean distance over pairs of different rows.

    .. math::

       D = \frac{\sum_{i \neq k} w_i w_k \, d(x_i, x_k)}{\sum_i w_i (W - \min(w_i, 1))},
       \qquad W = \sum_i w_i

    With unit weights this is the plain mean over pairs. A weight counts as that many copies of
    its row, each of which meets all others, so a row of weight 2 and two equal rows give the same
    width. A row of weight below 1 has no copy to meet, so weights that are all small give the
    same width as weights that are all 1.

    Parameters
    ----------
    X : array of shape (n, d)
        One view of the training rows.
    metric : str
        Any metric of ``sklearn.metrics.pairwise_distances``.
    sample_weight : array of shape (n,), optional
        Number of copies that each row stands for.
    random_state : int
        Seed of the subsample taken beyond ``EXACT_ROWS`` rows.
    keep : list, optional
        Receives the distances that were computed, for whoever needs them next: block by block of
        ``BLOCK_ROWS`` rows against themselves and all later ones, squared where the metric is
        euclidean. Stays empty beyond ``EXACT_ROWS`` rows.

    Returns
    -------
    float
        The mean distance; 0.0 when all rows coincide.
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    if len(X) > EXACT_ROWS:
        pick = np.random.default_rng(random_state).choice(len(X), EXACT_ROWS, replace=False)
        X, weights, keep = X[pick], weights[pick], None
    pairs = float(weights @ (weights.sum() - np.minimum(weights, 1.0)))
    # Distances do not feel a shift; removing it keeps the expansion |x|^2 + |y|^2 - 2x'y accurate.
    X = X - X.mean(axis=0)
    weighted_sum = 0.0
    for start in range(0, len(X), BLOCK_ROWS):  # half of a symmetric matrix, in cached blocks
        rows, rest = slice(start, start + BLOCK_ROWS), slice(start, None)
        block = _block(X[rows], X[rest], metric)
        np.fill_diagonal(block, 0.0)
        if keep is not None:
            keep.append(block)
        if metric == "euclidean":
            block = np.sqrt(block, out=None if keep is not None else block)
        counts = 2.0 * weights[rest]
        counts[:BLOCK_ROWS] = weights[rows]  # both halves of the square on the diagonal are here
        weighted_sum += float(weights[rows] @ (block @ counts))
    return weighted_sum / pairs


def _block(X: Array, Y: Array, metric: str) -> Array:
    if metric == "euclidean":
        return np.asarray(euclidean_distances(X, Y, squared=True))
    return np.asarray(pairwise_distances(X, Y, metric=metric))

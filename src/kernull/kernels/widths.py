"""The width of a kernel: a factor of the mean pairwise distance of its training view."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import pairwise_distances

from kernull._typing import Array

__all__ = [
    "BLOCK_ROWS",
    "auto_factor",
    "mean_distance",
    "neighbour_distance",
    "squared_blocks",
    "weighted_median",
]

#: Beyond this many rows the mean distance is taken over a fixed random subsample: its relative
#: standard error is then well below one percent, and a width needs no more.
EXACT_ROWS = 4000
BLOCK_ROWS = 128
#: Rows whose neighbours are looked for (among all rows) to learn how far they usually are.
NEIGHBOUR_ROWS = 1000
#: Factors of the mean distance that the automatic width keeps within. In one or two dimensions
#: neighbours come as near as there are rows, long after a kernel has become too narrow.
AUTO_RANGE = (0.25, 2.0)


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
    block_of = squared_blocks(X) if metric == "euclidean" else _blocks(X, metric)
    weighted_sum = 0.0
    scratch = np.empty((min(BLOCK_ROWS, len(X)), len(X)))
    for start in range(0, len(X), BLOCK_ROWS):  # half of a symmetric matrix, in cached blocks
        rows, rest = slice(start, start + BLOCK_ROWS), slice(start, None)
        block = block_of(rows, rest)
        np.fill_diagonal(block, 0.0)
        if keep is not None:
            keep.append(block)
        if metric == "euclidean":
            block = np.sqrt(block, out=scratch[: block.shape[0], : block.shape[1]])
        counts = 2.0 * weights[rest]
        counts[:BLOCK_ROWS] = weights[rows]  # both halves of the square on the diagonal are here
        weighted_sum += float(weights[rows] @ (block @ counts))
    return weighted_sum / pairs


def _blocks(X: Array, metric: str) -> Callable[[slice, slice], Array]:
    """Distances between two ranges of rows."""
    return lambda rows, rest: np.asarray(pairwise_distances(X[rows], X[rest], metric=metric))


def squared_blocks(X: Array) -> Callable[..., Array]:
    """Squared euclidean distances between two ranges of centred rows, in ``out`` if it is given.

    |x|^2 + |y|^2 - 2x'y is one product of (-2x, |x|^2, 1) and (y, 1, |y|^2): adding the norms
    afterwards would take longer than the product.
    """
    squares, ones = np.einsum("ij,ij->i", X, X), np.ones(len(X))
    left = np.column_stack([-2.0 * X, squares, ones])
    right = np.column_stack([X, ones, squares])

    def block(rows: slice, rest: slice, out: Array | None = None) -> Array:
        out = np.matmul(left[rows], right[rest].T, out=out)
        return np.asarray(np.maximum(out, 0.0, out=out))

    return block


def neighbour_distance(
    X: Array,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    random_state: int = 0,
) -> float:
    r"""Median over rows of the distance to the nearest row that is not a copy of it.

    A weight counts as that many copies of its row, so a row of weight 2 and two equal rows give
    the same.

    Parameters
    ----------
    X, metric, sample_weight
        As in `mean_distance`.
    random_state : int
        Seed of the subsample of rows that is taken beyond ``NEIGHBOUR_ROWS``; their neighbours
        are looked for among all rows.

    Returns
    -------
    float
        0.0 when all rows coincide.

    Examples
    --------
    >>> import numpy as np
    >>> neighbour_distance(np.array([[0.0], [1.0], [3.0], [3.0]]))
    1.5
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    X = X - X.mean(axis=0)
    # Copies come out of |x|^2 + |y|^2 - 2x'y at the square root of its rounding.
    size = np.linalg.norm(X, axis=1) if metric == "euclidean" else np.abs(X).sum(axis=1)
    copy = 1e-7 * float(size.max(initial=0.0))
    pick = np.arange(len(X))
    if len(X) > NEIGHBOUR_ROWS:
        pick = np.random.default_rng(random_state).choice(len(X), NEIGHBOUR_ROWS, replace=False)
    nearest = np.empty(len(pick))
    for start in range(0, len(pick), BLOCK_ROWS):
        rows = pick[start : start + BLOCK_ROWS]
        block = pairwise_distances(X[rows], X, metric=metric)
        block[block <= copy] = np.inf
        nearest[start : start + BLOCK_ROWS] = block.min(axis=1)
    if not np.isfinite(nearest).all():  # all rows are copies of one
        return 0.0
    return weighted_median(nearest, weights[pick])


def weighted_median(values: Array, weights: Array) -> float:
    """The middle of a weighted sample: the mean of its two middle values where there are two."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order])
    low, high = (
        order[min(np.searchsorted(share, share[-1] / 2, side=side), len(order) - 1)]
        for side in ("left", "right")
    )
    return float((values[low] + values[high]) / 2)


def auto_factor(
    X: Array, mean: float, metric: str = "euclidean", sample_weight: Array | None = None
) -> float:
    r"""The width ``"auto"``, as a factor of the mean distance D.

    .. math:: s = \mathrm{median}_i \min_{x_k \ne x_i} d(x_i, x_k)

    the distance that one row usually has to the nearest other. A kernel should tell a row from its
    neighbours and still see some of them. In few dimensions neighbours are near (s is D/4 or
    less), in many dimensions all rows are nearly equally far from each other (s is close to D): no
    one factor of D serves both.

    Parameters
    ----------
    X : array of shape (n, d)
        One view of the training rows, scaled.
    mean : float
        Its mean distance D.
    metric, sample_weight
        As in `mean_distance`.

    Returns
    -------
    float
        s / D, no less than 1/4 and no more than 2.
    """
    nearest = neighbour_distance(X, metric, sample_weight)
    low, high = AUTO_RANGE
    return float(np.clip(nearest / mean, low, high))

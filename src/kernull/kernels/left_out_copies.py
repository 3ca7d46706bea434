r"""Near copies: rows with a neighbour far closer than the rest of the data explains.

A sensor that is read too often, or rows written twice with a little noise, gives rows that predict
each other and nothing else: left out one by one, each still has its twin, and thresholds promise
what no new row can keep. For rows that are drawn independently, with D the dimension that the data
fill locally, the distance :math:`r_1` to the nearest and :math:`r_k` to the k-th neighbour have

.. math:: P\big( (r_1/r_k)^D \le t \big) = 1 - (1 - t)^{k-1}

so :math:`(r_1/r_k)^D` below `TOO_NEAR` / (k - 1) is as rare as `TOO_NEAR`, unless rows are near
copies.

Exact copies are what a new row may well be where values are few: among categories and counts
nothing is wrong with them. There, distances to the nearest other row are few too, or columns have
few values. Where hardly two rows share either, values are measured, and rows that are equal were
written twice, if most of them are there equally often: rows drawn from few things are not.
"""

from __future__ import annotations

import numpy as np

from kernull._threads import in_threads
from kernull._typing import Array, Indices
from kernull.kernels.functions import BLOCK_CELLS, squared_blocks

#: Share of independent rows that are called near copies.
TOO_NEAR = 1e-3
#: Neighbours that the nearest is compared with: groups up to this size are found.
NEIGHBOURS = 10
#: Rows this near in the table are next to each other.
NEXT = 2
#: Rows that are looked at, among all rows.
ROWS = 300
#: Relative difference of two distances that tie, up to rounding.
TIED = 1e-9
#: Fewest rows to say anything of near copies, and of exact ones.
FEWEST, FEWEST_EXACT = 30, 10
#: Exact copies are of so many different rows and of this share of them, else they are values that a
#: machine at rest has; and at most this share of rows is as far from its nearest as two others.
COPIED, COPIED_SHARE, SHARED = 5, 0.05, 0.1
#: At least this share of the rows that are there several times is there equally often.
EQUALLY_OFTEN = 0.6


def copy_shares(Z: Array) -> tuple[float, float]:
    """Shares of scaled rows that are exact copies of another row, and of rows that are near ones.

    Near copies are counted among different rows; of more than `ROWS` of these a random draw stands
    for all. 0 where too few rows differ to say, or distances tie, as in a table of categories.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 8))
    >>> twice = np.repeat(rows, 2, axis=0)
    >>> copy_shares(rows), copy_shares(twice)
    ((0.0, 0.0), (1.0, 0.0))
    >>> copy_shares(twice + 1e-3 * rng.normal(size=(400, 8)))
    (0.0, 1.0)
    """
    rows, counts = Z[np.argsort(Z[:, 0], kind="stable")], np.ones(len(Z), dtype=int)
    if (np.diff(rows[:, 0]) == 0).any():  # else no two rows are equal, and they are in order
        rows, counts = np.unique(Z, axis=0, return_counts=True)
    n = len(rows)
    if n < FEWEST_EXACT:
        return 0.0, 0.0
    pick = np.arange(n)
    if n > ROWS:
        pick = np.random.default_rng(0).choice(n, ROWS, replace=False)
    far = min(2 * NEIGHBOURS, n // 3)
    found = _nearest(rows, pick, far)
    near = _near_share(found, Z.shape[1]) if n >= FEWEST else 0.0
    copied = counts > 1
    if (
        np.count_nonzero(copied) < max(COPIED, COPIED_SHARE * n)
        or np.bincount(counts[copied]).max() < EQUALLY_OFTEN * np.count_nonzero(copied)
        or _shared(found[:, 1]) > SHARED
        or max(len(np.unique(column)) for column in rows.T) < n / 2
    ):
        return 0.0, near
    return float(counts[copied].sum() / len(Z)), near


def _nearest(rows: Array, pick: Indices, far: int) -> Array:
    """Distances of some rows to themselves and their nearest ones, in order."""
    # The trees of scikit-learn reset the warning filters of the process.
    block_of = squared_blocks(rows - rows.mean(axis=0))

    def work(some: Indices) -> Array:
        squared = block_of(some, slice(None))
        squared.partition(far, axis=1)
        return np.sqrt(np.sort(squared[:, : far + 1], axis=1))

    # Where rows are many, few distances at a time.
    parts = np.array_split(pick, max(1, len(pick) * len(rows) // BLOCK_CELLS))
    return np.concatenate(in_threads(work, parts))


def _near_share(found: Array, columns: int) -> float:
    """Share of rows whose nearest is too near for its place among their distances."""
    far = found.shape[1] - 1
    near = far // 2
    first, middle, last = found[:, 1], found[:, near], found[:, far]
    # Between neighbours number k and 2k the mean of log(r_2k / r_k) is (H_2k-1 - H_k-1) / D.
    steps = np.log(np.maximum(last, 1e-300) / np.maximum(middle, 1e-300))
    step, harmonic = float(np.median(steps)), float(np.sum(1.0 / np.arange(near, far)))
    if step <= TIED:  # categories, equally far from each other, fill no dimension
        return 0.0
    dimension = np.clip(harmonic / step, 1.0, columns)
    ratio = np.log(np.maximum(first, 1e-300) / np.maximum(middle, 1e-300)) * dimension
    return float(np.mean(ratio < np.log(TOO_NEAR / (near - 1))))


def _shared(nearest: Array) -> float:
    """Share of distances that tie with two others; two rows may be nearest to each other."""
    d = np.sort(nearest)
    run = np.cumsum(np.r_[0, np.diff(d) > 1e-6 * np.maximum(d[1:], 1e-300)])
    return float(np.mean(np.bincount(run)[run] > 2))


def next_is_nearest_share(Z: Array) -> tuple[float, float]:
    """Share of rows whose nearest one is at most two rows away in the table, and by chance.

    Rows that have one as near elsewhere, as categories have, do not count. Of more than `ROWS` rows
    a random draw stands for all.

    Examples
    --------
    >>> import numpy as np
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=(200, 8)), axis=0)
    >>> share, chance = next_is_nearest_share(walk)
    >>> share > 0.9, round(chance, 2)
    (True, 0.02)
    """
    n = len(Z)
    pick = np.arange(n)
    if n > ROWS:
        pick = np.random.default_rng(0).choice(n, ROWS, replace=False)
    squared = squared_blocks(Z - Z.mean(axis=0))(pick, slice(None))
    squared[np.arange(len(pick)), pick] = np.inf
    beside = np.abs(np.arange(n) - pick[:, None]) <= NEXT
    elsewhere = np.where(beside, np.inf, squared).min(axis=1)
    nearest = np.where(beside, squared, np.inf).min(axis=1)
    return float(np.mean(nearest < (1.0 - TIED) * elsewhere)), min(2.0 * NEXT / (n - 1), 1.0)

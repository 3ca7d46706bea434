"""Cross-fitting: whatever is learned from rows is learned again without the rows that it judges."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from kernull._runtime import in_threads
from kernull._typing import Array, Indices, Mask

Model = TypeVar("Model")

#: Rows of a fold, at least, whose median decides whether the fold is out of line.
FEWEST_ALIGNED = 5
#: Copies of a row, and their share of all rows, above which it is common.
COMMON, COMMON_SHARE = 10, 0.02


def assign_folds(X: Any, n_folds: int, groups: Any = None, random_state: Any = 0) -> Indices:
    """Draw the fold of each row from its content, as `Calibrated` does.

    Kernel models draw by the ranks of the cells in their columns (`TableRows.keys`). Permuting the
    rows permutes their folds. Copies of a row go to different folds, in order of occurrence, so
    that a row that is left out meets its copies as a new row does.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
        The rows.
    n_folds : int
        Number of folds. Where rows (or groups) are fewer, each is a fold.
    groups : array of shape (n,), optional
        Group of each row; rows of a group share a fold.
    random_state : int, RandomState instance or None, default=0
        Seed of the hash of the rows that orders them.

    Returns
    -------
    fold : integer array of shape (n,)
        From 0 to the number of folds less one. Numbers of rows (or groups) in the folds differ by
        at most one.

    Examples
    --------
    >>> assign_folds([[1.0], [2.0], [1.0], [3.0]], 2).tolist()
    [0, 0, 1, 1]
    """
    return folds_of(row_keys(X, random_state), n_folds, groups)


def row_keys(X: Any, random_state: Any = 0) -> Array:
    """A pseudo-random whole number for each row, from its content: copies have the same.

    Parameters
    ----------
    X : array of shape (n, d)
    random_state : int

    Returns
    -------
    array of shape (n,)
    """
    seed = int(check_random_state(random_state).randint(2**31 - 1)).to_bytes(8, "little")
    digest = partial(blake2b, digest_size=8, key=seed)
    keys = b"".join(digest(content).digest() for content in _contents(X))
    return np.frombuffer(keys, dtype="<u8").astype(np.uint64)


def folds_of(keys: Array, n_folds: int, groups: Indices | None = None) -> Indices:
    """The fold of each row by the rank of its key, or of the sum of the keys of its group.

    Parameters
    ----------
    keys : array of shape (n,)
        Key of each row.
    n_folds : int
        Number of folds, at most.
    groups : integer array of shape (n,), optional
        Rows of a group share a fold.

    Returns
    -------
    integer array of shape (n,)
    """
    if groups is None:
        member = np.arange(len(keys))
    else:
        member = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
        group_keys = np.zeros(member.max(initial=-1) + 1, dtype=np.uint64)
        np.add.at(group_keys, member, keys)  # a sum does not depend on the order of the rows
        keys = group_keys
    place = np.empty(len(keys), dtype=np.intp)
    place[np.argsort(keys, kind="stable")] = np.arange(len(keys))  # copies are neighbours
    return np.asarray(place[member] % min(n_folds, len(keys)))


def sampling_order(keys: Array) -> Indices:
    """Rows in an order of which every beginning is a random sample, whatever order they came in.

    By a second hash of each row's key and of how many copies of the row come before it.

    Parameters
    ----------
    keys : array of shape (n,)
        Key of each row.

    Returns
    -------
    integer array of shape (n,)
    """
    order = np.argsort(keys, kind="stable")
    place = np.arange(len(keys))
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[order][1:] != keys[order][:-1]
    copies_before = (place - np.maximum.accumulate(np.where(first, place, 0))).astype(np.uint64)
    mixed = keys[order] + (copies_before + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(order[np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")])


def dense_ranks(X: Array) -> Array:
    """Each value by its rank among the different values of its column, whatever its unit.

    Columns of one value are left out: all rows are alike there.

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    array of shape (n, c)
        Ranks in the c columns that vary.
    """
    ranks = in_threads(lambda x: np.unique(x, return_inverse=True)[1].ravel(), [*X.T])
    return np.array([rank for rank in ranks if rank.any()]).reshape(-1, len(X)).T


def common(keys: Array) -> Mask:
    """Rows with more than ten copies, and more than 2% of the rows.

    Models of their folds score them a little differently from the model of all rows, and from each
    other: a category with a fifth of the rows is flagged as a whole where new ones rank below most
    of these. So they get the scores of new rows. Of fewer copies this would hide that a left-out
    row has a copy less than a new one.

    Parameters
    ----------
    keys : array of shape (n,)
        Key of each row; copies have the same.

    Returns
    -------
    mask of shape (n,)

    Examples
    --------
    >>> int(common(np.repeat([3, 5], [10, 11])).sum())
    11
    """
    _, kind, count = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(count[kind.ravel()] > max(COMMON, COMMON_SHARE * len(keys)))


def has_copies(keys: Array, fold: Indices) -> Mask:
    """Rows of which another fold holds a copy: a row with the same key.

    Parameters
    ----------
    keys : array of shape (n,)
        Key of each row; copies have the same.
    fold : integer array of shape (n,)

    Returns
    -------
    mask of shape (n,)

    Examples
    --------
    >>> has_copies(np.array([5, 5, 5, 7, 7]), np.array([0, 1, 1, 0, 0]))
    array([ True,  True,  True, False, False])
    """
    kind = np.unique(keys, return_inverse=True)[1].ravel()
    here = kind * (fold.max(initial=0) + 1) + fold
    return np.asarray(np.bincount(kind)[kind] > np.bincount(here)[here])


def aligned(scores: Array, fold: Indices) -> Array:
    """Left-out scores (n, C), of which those of folds out of line are moved into line.

    A row that is 10,000 deviations off changes the scaling of every model that learns from it. The
    other rows of its fold, which is judged without it, then look odd all together, and hide what is
    odd: 5% of the rows are enough. A fold is out of line where its median lies outside the central
    98% of the scores of the others; it gets their median and interquartile range.

    Parameters
    ----------
    scores : array of shape (n, C)
    fold : integer array of shape (n,)

    Returns
    -------
    array of shape (n, C)
    """
    out = scores.copy()
    for k in range(fold.max() + 1):
        inside, others = scores[fold == k], scores[fold != k]
        if len(inside) < FEWEST_ALIGNED:
            continue
        low, first, middle, third, high = np.quantile(others, [0.01, 0.25, 0.5, 0.75, 0.99], axis=0)
        lower, centre, upper = np.quantile(inside, [0.25, 0.5, 0.75], axis=0)
        out_of_line = ((centre < low) | (centre > high)) & (upper > lower)
        for c in np.flatnonzero(out_of_line):
            stretch = (third[c] - first[c]) / (upper[c] - lower[c])
            out[fold == k, c] = middle[c] + (inside[:, c] - centre[c]) * stretch
    return out


def _contents(X: Any) -> list[bytes]:
    """The bytes of each row: of its numbers, or of its values as text."""
    if sparse.issparse(X):
        stored = sparse.csr_array(X, copy=True)
        stored.sum_duplicates()
        stored.eliminate_zeros()
        columns = stored.indices.astype(np.int64)
        return [
            columns[start:end].tobytes() + stored.data[start:end].tobytes()
            for start, end in pairwise(stored.indptr)
        ]
    rows = np.asarray(X)
    if rows.dtype.kind in "biuf":
        rows = np.ascontiguousarray(rows, dtype=float) + 0.0  # one zero
        return [row.tobytes() for row in rows]
    return [repr(tuple(row) if np.ndim(row) else row).encode() for row in rows]


def cross_fit(
    fit: Callable[[Indices], Model],
    score: Callable[[Model, Indices], Array],
    fold: Indices,
    threads: int | None = None,
    judged: Mask | None = None,
) -> Array:
    """For each fold, fit a model to the rows of the other folds, and score the fold's rows with it.

    Parameters
    ----------
    fit : callable
        ``fit(rows)`` gives a model fitted to the rows of these indices alone.
    score : callable
        ``score(model, rows)`` gives the scores of rows, of shape (rows,) or (rows, k).
    fold : integer array of shape (n,)
        Fold of each row, from 0; -1 of rows that every model is fitted to.
    threads : int, optional
        Number of folds worked on at the same time; as many as BLAS would take by default. With
        more than one, each has one BLAS thread.
    judged : boolean array of shape (n,), optional
        Rows that are scored; those with a fold by default.

    Returns
    -------
    left_out : array of shape (n,) or (n, k)
        Score of each row by the model that was fitted without its fold; of rows that are not
        scored, NaN.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 6.0])
    >>> cross_fit(
    ...     lambda rows: x[rows].mean(), lambda mean, rows: -abs(x[rows] - mean), np.arange(3)
    ... )
    array([-3. , -1.5, -4.5])
    """
    judged = fold >= 0 if judged is None else judged

    def work(k: int) -> Array:
        model = fit(np.flatnonzero(fold != k))
        return np.asarray(score(model, np.flatnonzero((fold == k) & judged)), dtype=float)

    scores = in_threads(work, range(fold.max() + 1), threads)
    left_out = np.full((len(fold), *scores[0].shape[1:]), np.nan)
    for k, of_fold in enumerate(scores):
        left_out[(fold == k) & judged] = of_fold
    return left_out

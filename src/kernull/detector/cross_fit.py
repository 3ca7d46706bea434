"""Cross-fitting: whatever is learned from rows is learned again without the rows that it judges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.utils import check_random_state

from kernull._threads import one_blas_thread
from kernull._typing import Array, Indices

Model = TypeVar("Model")


def assign_folds(X: Any, n_folds: int, groups: Any = None, random_state: Any = 0) -> Indices:
    """Draw the fold of each row from its content.

    Permuting the rows permutes their folds. Copies of a row go to different folds, in order of
    occurrence, so that a row that is left out meets its copies as a new row does.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
        The rows.
    n_folds : int
        Number of folds. Where rows (or groups) are fewer, each is a fold of its own.
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
    seed = int(check_random_state(random_state).randint(2**31 - 1)).to_bytes(8, "little")
    keys = np.array([_digest(seed, row) for row in _contents(X)], dtype=np.uint64)
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


def _digest(seed: bytes, content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8, key=seed).digest(), "little")


def cross_fit(
    fit: Callable[[Indices], Model],
    score: Callable[[Model, Indices], Array],
    fold: Indices,
    n_jobs: int | None = None,
) -> tuple[list[Model], Array]:
    """For each fold, fit a model to the rows of the other folds, and score the fold's rows with it.

    Parameters
    ----------
    fit : callable
        ``fit(rows)`` gives a model fitted to the rows of these indices alone.
    score : callable
        ``score(model, rows)`` gives the scores of rows, of shape (rows,) or (rows, k).
    fold : integer array of shape (n,)
        Fold of each row, from 0.
    n_jobs : int, optional
        Number of folds fitted at the same time, in threads; as in joblib. With more than one, each
        has one BLAS thread.

    Returns
    -------
    models : list
        The model of each fold, fitted without its rows.
    left_out : array of shape (n,) or (n, k)
        Score of each row by the model of its fold.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 6.0])
    >>> models, left_out = cross_fit(
    ...     lambda rows: x[rows].mean(), lambda mean, rows: -abs(x[rows] - mean), np.arange(3)
    ... )
    >>> left_out
    array([-3. , -1.5, -4.5])
    """

    def one(k: int) -> tuple[Model, Array]:
        model = fit(np.flatnonzero(fold != k))
        return model, np.asarray(score(model, np.flatnonzero(fold == k)), dtype=float)

    parallel = Parallel(n_jobs=n_jobs, require="sharedmem")
    with one_blas_thread() if effective_n_jobs(n_jobs) > 1 else nullcontext():
        fitted = parallel(delayed(one)(k) for k in range(fold.max() + 1))
    left_out = np.empty((len(fold), *fitted[0][1].shape[1:]))
    for k, (_, scores) in enumerate(fitted):
        left_out[fold == k] = scores
    return [model for model, _ in fitted], left_out

"""Calibration by models of other folds, where leaving one row out has no closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array, Indices
from kernull.stacks import KernelSet

#: Folds: more lie closer to the final model, which matters where rows are few.
FOLDS, FOLDS_OF_MANY, MANY_ROWS = 10, 5, 1000
#: Different rows below which a fold would learn from a single one.
FEWEST = 3


def check_folds(folds: Any) -> int:
    """A number of folds, or an error that names the parameter."""
    is_integer = isinstance(folds, int | np.integer) and not isinstance(folds, bool)
    if not is_integer or folds < 2:
        raise ValueError(
            f"calibration_folds: got {folds!r}; expected an integer of at least 2. More folds "
            "cost more and calibrate with models closer to the final one."
        )
    return int(folds)


def cross_scores(n: int, folds: int, score: Callable[[Indices, Indices], Array]) -> Array:
    """Score each of n rows by a model that saw only the other folds.

    Row i is in fold i mod K, K = min(folds, n): no randomness, and rows recorded in some order are
    spread over all folds. Each model sees a share 1 - 1/K of the rows, so its scores are a little
    lower than the final model's: thresholds err on the side of fewer alarms. ``score`` takes rows
    to learn from and rows to score; it must put scores on the final model's scale (its offset), or
    they cannot be compared at all.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([1.0, 2.0, 3.0, 6.0])
    >>> cross_scores(4, 2, lambda seen, held: values[held] - values[seen].mean())
    array([-3., 0., -1., 4.])
    """
    out = np.empty(n)
    rows = np.arange(n)
    fold = rows % min(folds, n)
    for k in range(min(folds, n)):
        out[fold == k] = score(rows[fold != k], rows[fold == k])
    return out


def refit_by_fold(
    table: Array,
    weights: Array,
    delta: float,
    fit_bank: Callable[[Array, Array | None], KernelSet],
    row_weight: Array | None = None,
    groups: Indices | None = None,
) -> Array | None:
    r"""Contributions (n, J) of each kernel to each row's projection, by models of the other folds.

    .. math:: y_j(x_i) = b_j k_j^{(f)}(x_i)' a^{(f)}, \qquad f \text{ the fold of } i

    Copies of a row (equal in all columns) lie in folds that follow each other, for a new row like
    them would find the others there too, and share the mean of what these say. With ``groups``, all
    rows of a group are in one fold. The kernel weights stay; ``fit_bank`` makes kernels from rows
    and their weights. None where there are fewer than `FEWEST` different rows, or groups.
    """
    used, b = np.flatnonzero(weights > 0), weights[weights > 0]
    folds = FOLDS if len(table) <= MANY_ROWS else FOLDS_OF_MANY
    rows, same, counts, held_shares = _kinds(table, groups, folds)
    if len(np.unique(same if groups is None else groups)) < FEWEST:
        return None
    total = counts if row_weight is None else np.bincount(same, row_weight)
    contributions = np.zeros((len(rows), len(weights)))
    for share in held_shares:
        held, seen = np.flatnonzero(share > 0), np.flatnonzero(share < 1)
        rest = (total * (1.0 - share))[seen]
        if row_weight is not None:  # of mean one among the rows that are left
            rest = rest * float((counts * (1.0 - share)).sum()) / rest.sum()
        bank = fit_bank(rows[seen], None if (rest == 1.0).all() else rest).select(weights > 0)
        A = bank.combine(b)
        A[np.diag_indices(len(seen))] += delta * rest.sum() / rest
        coef = cho_solve(cho_factor(A, overwrite_a=True), np.ones(len(seen)))
        for j, K in bank.matrices(rows[held]):
            contributions[held, used[j]] += share[held] * b[j] * (K @ coef)
    return contributions[same]


def _kinds(table: Array, groups: Indices | None, folds: int) -> tuple[Array, Indices, Array, Array]:
    """Different rows, which of them each row is, copies of each, and shares that folds hold out."""
    if groups is not None:
        n, folds = len(table), min(folds, int(groups.max()) + 1)
        shares = (groups % folds == np.arange(folds)[:, None]).astype(float)
        return table, np.arange(n), np.ones(n), shares
    rows, same = np.unique(table, axis=0, return_inverse=True)
    same = np.ravel(same)
    counts = np.bincount(same).astype(float)
    return rows, same, counts, _held_by_fold(counts, folds) / counts


def _held_by_fold(counts: Array, folds: int) -> Array:
    """How many copies of each row each fold holds out, of shape (folds, rows).

    Copies go to one fold after the other.
    """
    folds = min(folds, len(counts))
    rounds, left = np.divmod(counts, folds)
    out = np.tile(rounds, (folds, 1))
    for copy in range(folds):
        there = np.flatnonzero(left > copy)
        out[(there + copy) % folds, there] += 1.0
    return out

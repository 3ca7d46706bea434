"""Scores of each row by models whose scaling, widths and coefficients come from other rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array, Indices
from kernull.stacks import KernelBank

__all__ = ["refit_by_fold"]

#: Folds: more lie closer to the final model, which matters where rows are few.
FOLDS, FOLDS_OF_MANY, MANY_ROWS = 10, 5, 1000


def refit_by_fold(
    table: Array,
    weights: Array,
    delta: float,
    fit_bank: Callable[[Array, Array | None], KernelBank],
    row_weight: Array | None = None,
) -> Array:
    r"""Contributions of each kernel to each row's projection, by models of the other folds.

    .. math:: y_j(x_i) = b_j k_j^{(f)}(x_i)' a^{(f)}, \qquad f \text{ the fold of } i

    Copies of a row share its fold, so a row of weight two stands for two of weight one.

    Parameters
    ----------
    table : array of shape (n, d)
        The training rows.
    weights : array of shape (J,)
        Kernel weights b, which stay.
    delta : float
        Ridge, relative to the number of rows.
    fit_bank : callable
        From rows and their weights to the bank of J kernels fitted to them.
    row_weight : array of shape (n,), optional
        Row weights.

    Returns
    -------
    array of shape (n, J)
    """
    used, b = np.flatnonzero(weights > 0), weights[weights > 0]
    counts = np.ones(len(table)) if row_weight is None else row_weight
    fold = _fold_of(table)
    contributions = np.zeros((len(table), len(weights)))
    for k in range(int(fold.max()) + 1):
        seen, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        bank = fit_bank(table[seen], None if row_weight is None else row_weight[seen])
        bank = bank.select(weights > 0)
        A = bank.combine(b)
        A[np.diag_indices(len(seen))] += delta * counts[seen].sum() / counts[seen]
        coef = cho_solve(cho_factor(A, overwrite_a=True), np.ones(len(seen)))
        for j, K in bank.matrices(table[held]):
            contributions[held, used[j]] = b[j] * (K @ coef)
    return contributions


def _fold_of(table: Array) -> Indices:
    """The fold of each row; equal rows share one."""
    same = np.ravel(np.unique(table, axis=0, return_inverse=True)[1])
    folds = FOLDS if len(table) <= MANY_ROWS else FOLDS_OF_MANY
    return np.asarray(same % min(folds, int(same.max()) + 1))

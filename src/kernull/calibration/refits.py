"""Scores of each row by models whose scaling, widths and coefficients come from other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array, Indices
from kernull.calibration.agreement import Witnesses, view_numbers, witness_rows
from kernull.stacks import KernelBank

__all__ = ["Refitted", "refit_by_fold"]

#: Folds: more lie closer to the final model, which matters where rows are few.
FOLDS, FOLDS_OF_MANY, MANY_ROWS = 10, 5, 1000


@dataclass(frozen=True, eq=False)
class Refitted:
    """What models of the other folds say of training rows, by kernel."""

    contributions: Array
    """To the projection of each row, of shape (n, J)."""
    agreement: Array | None
    """Of some rows' views, of shape (w, J) (`kernull.calibration.agreement`); None for one view."""


def refit_by_fold(
    table: Array,
    weights: Array,
    delta: float,
    fit_bank: Callable[[Array, Array | None], KernelBank],
    row_weight: Array | None = None,
) -> Refitted:
    r"""Contributions to each row's projection, and agreement of its views, by the other folds.

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
    Refitted
    """
    used, b = np.flatnonzero(weights > 0), weights[weights > 0]
    counts = np.ones(len(table)) if row_weight is None else row_weight
    fold = _fold_of(table)
    judged = witness_rows(len(table))
    contributions, agreement = np.zeros((2, len(table), len(weights)))
    several = False
    for k in range(int(fold.max()) + 1):
        seen, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        bank = fit_bank(table[seen], None if row_weight is None else row_weight[seen])
        bank, ridge = bank.select(weights > 0), delta * counts[seen].sum()
        pick, some = witness_rows(len(seen)), np.flatnonzero(np.isin(held, judged))
        kernels = np.stack([K for _, K in bank.take(pick).matrices()])
        # All rows are witnesses where there are few: their kernels are there already.
        A = np.tensordot(b, kernels, 1) if len(pick) == len(seen) else bank.combine(b)
        A[np.diag_indices(len(seen))] += ridge / counts[seen]
        coef = cho_solve(cho_factor(A, overwrite_a=True), np.ones(len(seen)))
        cross = np.empty((len(used), len(some), len(pick)))
        for j, K in bank.matrices(table[held]):
            contributions[held, used[j]] = b[j] * (K @ coef)
            cross[j] = K[np.ix_(some, pick)]
        numbers = view_numbers(bank)
        several = bool(numbers.max() > 0)
        if several:
            witnesses = Witnesses.of(kernels, b, numbers, ridge * len(pick) / len(seen))
            agreement[np.ix_(held[some], used)] = witnesses.agreement(cross)
    return Refitted(contributions, agreement[judged] if several else None)


def _fold_of(table: Array) -> Indices:
    """The fold of each row; equal rows share one."""
    same = np.ravel(np.unique(table, axis=0, return_inverse=True)[1])
    folds = FOLDS if len(table) <= MANY_ROWS else FOLDS_OF_MANY
    return np.asarray(same % min(folds, int(same.max()) + 1))

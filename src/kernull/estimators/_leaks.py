"""When leave-one-out scores do not leave enough out, and what takes their place.

Leaving a row out of the fit does not leave it out of the scaling. Means and standard deviations
hardly notice a row while there are more rows than columns; a covariance of many columns fits itself
to each row, so that training rows look far more normal than new ones ever will. Cross-scores with
scaling and widths fitted anew do not have that fault.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array
from kernull.errors import CalibrationWarning
from kernull.stacks import KernelBank

__all__ = ["leaking_view", "refitted_contributions", "warn_of_leak"]

#: Rows a column from which whitening hardly follows a single row: on correlated Gaussian columns, 6
#: to 9% of new rows are then flagged where 5% were asked for. With five rows a column it is 10 to
#: 17%, with as many columns as rows nearly all.
ROWS_A_COLUMN = 10
#: Folds of the cross-scores: more lie closer to the final model, and matter where rows are few.
FOLDS, FOLDS_OF_MANY, MANY_ROWS = 10, 5, 1000


def leaking_view(bank: Any, rows: int) -> Any:
    """The widest view whose scaling follows single rows too closely, or None."""
    if bank is None:
        return None

    def leaks(view: Any) -> bool:
        columns = len(view.columns)
        if view.scaler.kind.startswith("whiten"):
            return columns > 1 and rows < ROWS_A_COLUMN * columns
        return bool(view.scaler.kind == "standard" and rows < columns)

    found = [view for view in bank.views if leaks(view)]
    # A whitened view is the worse of two.
    return max(
        found, key=lambda v: (v.scaler.kind.startswith("whiten"), len(v.columns)), default=None
    )


def warn_of_leak(view: Any, rows: int) -> None:
    """Say that a threshold by leave-one-out will not hold."""
    done = "whitened" if view.scaler.kind.startswith("whiten") else "standardised"
    warnings.warn(
        f"scaling: the view {view.name!r} of {len(view.columns)} columns was {done} by the {rows} "
        "rows that also set the threshold, so more normal rows will be flagged than "
        "false_alarm_rate says. Use calibration='split' (or 'folds', where it is offered), "
        "another scaling, or more rows.",
        CalibrationWarning,
        stacklevel=2,
    )


def refitted_contributions(model: Any, table: Array, row_weight: Array | None) -> Array:
    """Contributions (n, J) to each row's score by a model of the other folds.

    Scaling, widths and coefficients are those of the other folds; the kernel weights are the
    model's. Copies of a row share its fold, so a row of weight two stands for two of weight one.
    """
    weights = np.asarray(model.weights_, dtype=float)
    if model._kernel_factors is not None:
        weights = weights * model._kernel_factors
    used = weights > 0
    views = {view.name: view.columns for view in model.bank_.views}
    _, same = np.unique(table, axis=0, return_inverse=True)
    same = np.ravel(same)
    folds = FOLDS if len(table) <= MANY_ROWS else FOLDS_OF_MANY
    fold = same % min(folds, int(same.max()) + 1)
    counts = np.ones(len(table)) if row_weight is None else row_weight
    out = np.zeros((len(table), len(weights)))
    for k in range(int(fold.max()) + 1):
        seen, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        bank = KernelBank.fit(
            table[seen],
            views,
            kernels=model.kernels,
            widths=model.widths,
            scaling=model.scaling,
            sample_weight=None if row_weight is None else row_weight[seen],
            drop_constant=False,  # the kernels must be those of the model
        ).select(used)
        A = bank.combine(weights[used])
        A[np.diag_indices(len(seen))] += model.delta_ * counts[seen].sum() / counts[seen]
        coef = cho_solve(cho_factor(A, overwrite_a=True), np.ones(len(seen)))
        for j, K in zip(np.flatnonzero(used), bank.matrices(table[held]), strict=True):
            out[held, j] = weights[j] * (K[1] @ coef)
    return out

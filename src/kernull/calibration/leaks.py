"""When leave-one-out scores do not leave enough out.

Leaving a row out of the fit does not leave it out of the scaling. Means and standard deviations
hardly notice a row while there are more rows than columns; a covariance of many columns fits itself
to each row, so that training rows look far more normal than new ones ever will.
`kernull.calibration.refit_by_fold` does not have that fault.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from kernull.errors import CalibrationWarning

__all__ = ["Leak", "leaking_view", "warn_of_leak"]

#: Rows a column from which whitening hardly follows a single row: on correlated Gaussian columns, 6
#: to 9% of new rows are then flagged where 5% were asked for. With five rows a column it is 10 to
#: 17%, with as many columns as rows nearly all.
ROWS_A_COLUMN = 10


class Leak(NamedTuple):
    """A view, and the number of rows that its scaling was learned from."""

    view: Any
    rows: int


def leaking_view(kernels: Any, rows: int) -> Leak | None:
    """The widest view of a `KernelSet` whose scaling follows single rows too closely, or None."""
    if kernels is None:
        return None

    def leaks(view: Any) -> bool:
        columns = len(view.columns)
        if view.scaler.kind.startswith("whiten"):
            return columns > 1 and rows < ROWS_A_COLUMN * columns
        return bool(view.scaler.kind == "standard" and rows < columns)

    found = [view for view in kernels.views if leaks(view)]
    if not found:
        return None
    # A whitened view is the worse of two.
    widest = max(found, key=lambda v: (v.scaler.kind.startswith("whiten"), len(v.columns)))
    return Leak(widest, rows)


def warn_of_leak(leak: Leak | None) -> None:
    """Say that a threshold by leave-one-out will not hold, where there is a leak."""
    if leak is None:
        return
    view, rows = leak
    done = "whitened" if view.scaler.kind.startswith("whiten") else "standardised"
    warnings.warn(
        f"scaling: the view {view.name!r} of {len(view.columns)} columns was {done} by the {rows} "
        "rows that also set the threshold, so more normal rows will be flagged than "
        "false_alarm_rate says. Use calibration='split' (or 'folds', where it is offered), "
        "another scaling, or more rows.",
        CalibrationWarning,
        stacklevel=3,
    )

"""When leave-one-out scores do not leave enough out."""

from __future__ import annotations

import warnings
from typing import Any

from kernull.errors import CalibrationWarning

__all__ = ["warn_of_whitening"]

#: Rows a column from which whitening hardly follows a single row: on correlated Gaussian columns, 6
#: to 9% of new rows are then flagged where 5% were asked for. With five rows a column it is 10 to
#: 17%, with as many columns as rows nearly all.
ROWS_A_COLUMN = 10


def warn_of_whitening(bank: Any) -> None:
    """Warn where views were whitened by few rows, all of which calibrate the threshold.

    Leaving a row out of the fit does not leave it out of the scaling. Means and standard deviations
    hardly notice a row; a covariance of many columns fits itself to each, so that training rows
    look far more normal than new ones ever will.
    """
    if bank is None:
        return
    whitened = [view for view in bank.views if view.scaler.kind.startswith("whiten")]
    if not whitened:
        return
    widest = max(whitened, key=lambda view: len(view.columns))
    columns = len(widest.columns)
    if columns > 1 and bank.n < ROWS_A_COLUMN * columns:
        warnings.warn(
            f"scaling={widest.scaler.kind!r} with calibration='loo': the view {widest.name!r} of "
            f"{columns} columns was whitened by the {bank.n} rows that also set the threshold, so "
            "more normal rows will be flagged than false_alarm_rate says. Use calibration='split', "
            "or at least ten rows a column.",
            CalibrationWarning,
            stacklevel=2,
        )

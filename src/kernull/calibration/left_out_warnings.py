"""What is said where a threshold is not what it seems: copies, and rows that cannot be flagged."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.calibration.conformal import Calibration
from kernull.errors import CannotFlagWarning, NearCopiesWarning, TrainingRowsWarning
from kernull.kernels.left_out_copies import near_copy_share, next_is_nearest_share
from kernull.stacks.kernel_set import KernelSet

#: Share of near copies from which a threshold is no longer to be trusted. Discrete tables have
#: neighbours at a few distances only, of which some are far nearer than others.
MANY = 0.5
#: Correlation from one row to the next, and share of rows whose nearest is next to them, from which
#: rows are taken for readings in time; the share is also this many times what chance gives.
SERIAL, NEXT, TIMES_CHANCE = 0.6, 0.1, 3.0
#: Fewest rows to look for that.
FEWEST = 10


def warn_of_near_copies(kernels: KernelSet) -> None:
    """Warn where most rows have a neighbour far closer than the rest of the data explains.

    Where they have none, that neighbour may still be the row before or after.
    """
    first = {view.name: view.train for view in reversed(kernels.views)}
    Z = np.hstack(list(first.values()))
    share = near_copy_share(Z)
    if share > MANY:
        warnings.warn(
            f"X: {share:.0%} of the rows are near copies of another row. Left out one by one, each "
            "still has its twin, so more new rows will be flagged than false_alarm_rate says. Pass "
            "groups= to fit (one label for rows that belong together), or keep one row of each.",
            NearCopiesWarning,
            stacklevel=4,
        )
    elif len(Z) >= FEWEST:
        _warn_of_readings(Z)


def _warn_of_readings(Z: Array) -> None:
    """Warn where rows follow each other as readings in time do. Z are the scaled rows.

    A column that never turns back is what the rows were sorted by, or a clock: it says nothing.
    """
    steps = np.diff(Z, axis=0)
    Z = Z[:, (steps > 0).any(axis=0) & (steps < 0).any(axis=0)]
    if Z.shape[1] == 0:
        return
    n, centred = len(Z), Z - Z.mean(axis=0)
    products = np.einsum("nd,nd->d", centred[1:], centred[:-1])
    serial = float(np.median(products / np.einsum("nd,nd->d", centred, centred)))
    if serial < SERIAL:
        return
    share, chance = next_is_nearest_share(Z)
    if share < max(NEXT, TIMES_CHANCE * chance):
        return
    stretch = min(10 * int(np.ceil(0.5 / (1.0 - min(serial, 0.99)))), n // 5)
    warnings.warn(
        f"X: rows next to each other are alike (correlation {serial:.2f} from one to the next), as "
        "readings in time are. Left out one by one, each still has its neighbours in time, so more "
        "new rows will be flagged than false_alarm_rate says. Pass groups= to fit, one label for "
        f"each stretch of time: np.arange({n}) // {stretch}, say; on the command line --stretch "
        f"{stretch}. If the rows were merely sorted, shuffle them.",
        NearCopiesWarning,
        stacklevel=4,
    )


def warn_where_nothing_is_flagged(
    kernels: KernelSet, rule: Any, calibration: Calibration, rate: float
) -> None:
    """Warn where even a row that no kernel finds alike any other would not be flagged.

    Kernels of a distance are zero far away, so that the projection of such a row is zero.
    """
    distant = ("rbf", "laplacian")
    bounded = all(kernel.kind in distant for view in kernels.views for kernel in view.kernels)
    if not bounded or not hasattr(rule, "projection_to_score"):
        return
    far = np.asarray(rule.projection_to_score(np.zeros(1)))
    if calibration.p_values(far)[0] > rate * (1 + 1e-9):
        warnings.warn(
            "this model cannot flag any row: too many training rows, left out, score as low as a "
            "row infinitely far away does. Use decision='evidence', wider kernels (widths), or "
            "scaling='quantile' for columns with heavy tails.",
            CannotFlagWarning,
            stacklevel=4,
        )


def warn_of_training_rows(kernels: KernelSet, table: Array) -> None:
    """Warn where rows to judge, as many as were learned from, are these in their order."""
    view = kernels.views[0]
    if not np.allclose(view.transform(table), view.train, rtol=1e-9, atol=1e-9):
        return
    warnings.warn(
        "X: these are the rows that the model learned from. Each vouches for itself, so none of "
        "them is flagged. fit_predict(X) judges every row by a model that did not see it; "
        "contamination= is for training rows of which some may not be normal.",
        TrainingRowsWarning,
        stacklevel=3,
    )

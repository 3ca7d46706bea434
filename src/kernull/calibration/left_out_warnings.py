"""What a fit says when its threshold cannot be what it seems: near copies, and nothing to flag."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kernull.calibration.conformal import Calibration
from kernull.errors import CannotFlagWarning, NearCopiesWarning
from kernull.kernels.left_out_copies import near_copy_share
from kernull.stacks.kernel_set import KernelSet

#: Share of near copies from which a threshold is no longer to be trusted. Discrete tables have
#: neighbours at a few distances only, of which some are far nearer than others.
MANY = 0.5


def warn_of_near_copies(kernels: KernelSet) -> None:
    """Warn where most rows have a neighbour far closer than the rest of the data explains."""
    first = {view.name: view.train for view in reversed(kernels.views)}
    share = near_copy_share(np.hstack(list(first.values())))
    if share > MANY:
        warnings.warn(
            f"X: {share:.0%} of the rows are near copies of another row. Left out one by one, each "
            "still has its twin, so more new rows will be flagged than false_alarm_rate says. Pass "
            "groups= to fit (one label for rows that belong together), or keep one row of each.",
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

"""Calibration: thresholds and p-values from scores of rows the model did not see."""

from kernull.calibration.adapters import to_monitor, to_nonconform
from kernull.calibration.conformal import Calibration, discoveries, lowered
from kernull.calibration.folds import check_folds, cross_scores
from kernull.calibration.loo import (
    leave_one_out,
    leave_one_out_contributions,
    left_out_projections,
    loo_sample,
)
from kernull.calibration.split import hold_out

__all__ = [
    "Calibration",
    "check_folds",
    "cross_scores",
    "discoveries",
    "hold_out",
    "leave_one_out",
    "leave_one_out_contributions",
    "left_out_projections",
    "loo_sample",
    "lowered",
    "to_monitor",
    "to_nonconform",
]

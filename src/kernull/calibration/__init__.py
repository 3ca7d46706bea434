"""Calibration: thresholds and p-values from scores of rows the model did not see."""

from kernull.calibration.conformal import Calibration
from kernull.calibration.folds import check_folds, cross_scores
from kernull.calibration.loo import leave_one_out, left_out_projections

__all__ = [
    "Calibration",
    "check_folds",
    "cross_scores",
    "leave_one_out",
    "left_out_projections",
]

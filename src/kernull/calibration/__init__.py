"""Calibration: thresholds and p-values from scores of rows the model did not see."""

from kernull.calibration.conformal import Calibration
from kernull.calibration.folds import check_folds, cross_scores
from kernull.calibration.left_out import LeftOut, left_out
from kernull.calibration.loo import leave_one_out, left_out_projections
from kernull.calibration.sampled import SampledProjections, sampled_leave_one_out

__all__ = [
    "Calibration",
    "LeftOut",
    "SampledProjections",
    "check_folds",
    "cross_scores",
    "leave_one_out",
    "left_out",
    "left_out_projections",
    "sampled_leave_one_out",
]

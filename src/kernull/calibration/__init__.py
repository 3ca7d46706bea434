"""Calibration: thresholds and p-values from scores of rows the model did not see."""

from kernull.calibration.calibrators import (
    Calibrator,
    LeaveOneOut,
    LeftOut,
    check_seed,
    hold_out,
    leaking_view,
    leave_one_out,
    left_out_projections,
    read_calibration,
    warn_of_leak,
)
from kernull.calibration.conformal import Calibration, discoveries, minus_rounding
from kernull.calibration.folds import check_folds, cross_scores, refit_by_fold
from kernull.calibration.parts import attributed_contributions, leave_one_out_contributions
from kernull.calibration.sampled import SampledProjections, sampled_leave_one_out

__all__ = [
    "Calibration",
    "Calibrator",
    "LeaveOneOut",
    "LeftOut",
    "SampledProjections",
    "attributed_contributions",
    "check_folds",
    "check_seed",
    "cross_scores",
    "discoveries",
    "hold_out",
    "leaking_view",
    "leave_one_out",
    "leave_one_out_contributions",
    "left_out_projections",
    "minus_rounding",
    "read_calibration",
    "refit_by_fold",
    "sampled_leave_one_out",
    "warn_of_leak",
]

"""Calibration: thresholds and p-values from scores of rows the model did not see."""

from kernull.calibration.conformal import Calibration
from kernull.calibration.loo import leave_one_out
from kernull.calibration.sampled import SampledProjections, sampled_leave_one_out

__all__ = ["Calibration", "SampledProjections", "leave_one_out", "sampled_leave_one_out"]

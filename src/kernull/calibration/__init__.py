"""Calibration: thresholds and p-values from scores of rows the model did not see."""

from kernull.calibration.calibrators import (
    Cross,
    LeftOut,
    Split,
    check_seed,
    hold_out,
    read_calibration,
)
from kernull.calibration.conformal import Calibration, discoveries, minus_rounding
from kernull.calibration.rows import rank_weights, read_groups, trust, trusted

__all__ = [
    "Calibration",
    "Cross",
    "LeftOut",
    "Split",
    "check_seed",
    "discoveries",
    "hold_out",
    "minus_rounding",
    "rank_weights",
    "read_calibration",
    "read_groups",
    "trust",
    "trusted",
]

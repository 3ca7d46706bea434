"""From scores of rows that a model did not see to p-values, flags and rarity."""

from kernull.detector.calibrated import Calibrated
from kernull.detector.cross_fit import assign_folds, cross_fit
from kernull.detector.ranks import LeftOutRanks

__all__ = ["Calibrated", "LeftOutRanks", "assign_folds", "cross_fit"]

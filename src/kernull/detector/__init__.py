"""Whatever is learned from rows is learned again without the rows that it judges."""

from kernull.detector.cross_fit import assign_folds, cross_fit

__all__ = ["assign_folds", "cross_fit"]

"""Selection: p, delta and widths, with labelled outliers and without."""

from kernull.paths import PAPER_DELTAS, PAPER_GRID, PAPER_PS, PAPER_WIDTHS, Path, Progress, path
from kernull.selection.criteria import TARGETS_ONLY
from kernull.selection.display import SelectionDisplay
from kernull.selection.search import MultiKernelFisherNullCV
from kernull.selection.splitters import (
    OneClassKFold,
    OneClassShuffleSplit,
    TargetsOnly,
    make_pseudo_scorer,
)

__all__ = [
    "PAPER_DELTAS", "PAPER_GRID", "PAPER_PS", "PAPER_WIDTHS", "TARGETS_ONLY",
    "MultiKernelFisherNullCV", "OneClassKFold", "OneClassShuffleSplit", "Path", "Progress",
    "SelectionDisplay", "TargetsOnly", "make_pseudo_scorer", "path",
]  # fmt: skip

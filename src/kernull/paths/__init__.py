"""Paths: every model of a (p, delta) grid from one shared subspace."""

from kernull.paths.grids import PAPER_DELTAS, PAPER_GRID, PAPER_PS, PAPER_WIDTHS
from kernull.paths.shared import Path, Progress, shared_path

__all__ = [
    "PAPER_DELTAS",
    "PAPER_GRID",
    "PAPER_PS",
    "PAPER_WIDTHS",
    "Path",
    "Progress",
    "shared_path",
]

"""Paths: every model of a (p, delta) grid from one shared subspace."""

from kernull.paths.grids import PAPER_DELTAS, PAPER_GRID, PAPER_PS, PAPER_WIDTHS
from kernull.paths.shared import Path, Progress, path, shared_path

__all__ = [
    "PAPER_DELTAS", "PAPER_GRID", "PAPER_PS", "PAPER_WIDTHS", "Path", "Progress", "path",
    "shared_path",
]  # fmt: skip

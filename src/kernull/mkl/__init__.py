"""Multiple-kernel learning: a grid of (p, delta) from one subspace, and updated inverses."""

from kernull.mkl.path import PAPER_DELTAS, PAPER_PS, PAPER_WIDTHS, Path, path
from kernull.mkl.ridge_inverse import RidgeInverse
from kernull.mkl.solvers import Solver

__all__ = [
    "PAPER_DELTAS", "PAPER_PS", "PAPER_WIDTHS", "Path", "RidgeInverse", "Solver", "path",
]  # fmt: skip

"""Solvers: a problem and a ball give weights, coefficients and a certificate.

Each solver is a pure function in a module of its own; `solve` is the front door.
"""

from kernull.solvers.base import Record, Result
from kernull.solvers.registry import SOLVERS, solve

__all__ = ["SOLVERS", "Record", "Result", "solve"]

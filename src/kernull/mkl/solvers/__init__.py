"""Solvers: a problem and a ball give weights, coefficients and a certificate.

Each solver is a pure function in a module of its own; `solve` is the front door.
"""

from kernull.mkl.solvers.base import SOLVERS, Record, Result, solve

__all__ = ["SOLVERS", "Record", "Result", "solve"]

"""Solvers: a problem and a ball give weights, coefficients and a certificate.

Each solver is a pure function of a `Run`; `solve` is the front door.
"""

from kernull.mkl.solvers.base import SOLVERS, Record, Result, Run, Solver, solve

__all__ = ["SOLVERS", "Record", "Result", "Run", "Solver", "solve"]

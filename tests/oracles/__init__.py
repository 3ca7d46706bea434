"""Slow and obvious versions of what the library computes, and random problems to try it on.

Nothing here imports kernull: these are the independent side of every comparison.

`fisher`
    Weights and coefficients by general solvers.
`evidence`
    From rows to p-values, in plain loops.
"""

from tests.oracles.evidence import interpolated
from tests.oracles.fisher import (
    certificate_gap,
    cvxpy_dual,
    dual_norm,
    fisher_coef,
    fisher_gap,
    fisher_value,
    random_kernels,
    random_problem,
)

__all__ = [
    "certificate_gap",
    "cvxpy_dual",
    "dual_norm",
    "fisher_coef",
    "fisher_gap",
    "fisher_value",
    "interpolated",
    "random_kernels",
    "random_problem",
]

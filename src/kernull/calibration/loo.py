"""Leave-one-out projections in closed form."""

from __future__ import annotations

import numpy as np

from kernull._typing import Array
from kernull.problems import FisherProblem

__all__ = ["leave_one_out", "projections_without"]


def leave_one_out(
    problem: FisherProblem,
    weights: Array,
    coef: Array,
    target: Array | None = None,
    row_weight: Array | None = None,
) -> Array:
    r"""Projection of each training row by the model fitted without it, at fixed kernel weights.

    .. math:: y_i^{-i} = t_i - a_i / [(\rho I + K_b)^{-1}]_{ii}

    A row of weight w stands for w copies, of which one is left out: with m = max(w - 1, 0) copies
    kept and G the diagonal of the inverse,
    :math:`t_i - y_i^{-i} = \rho a_i / (m + \rho (1 - m/w) G_{ii})`, which is the formula above
    for w = 1.

    Parameters
    ----------
    problem : FisherProblem
        The problem that was solved.
    weights : array of shape (J,)
        Kernel weights b, kept fixed.
    coef : array of shape (n,)
        The coefficients a at b.
    target : array of shape (n,), optional
        Right-hand side of the problem; ones by default.
    row_weight : array of shape (n,), optional
        The row weights of the problem.

    Returns
    -------
    array of shape (n,)
    """
    inverse = problem.inverse_diagonal(weights)
    return projections_without(problem.ridge, coef, inverse, target, row_weight)


def projections_without(
    ridge: float,
    coef: Array,
    inverse: Array,
    target: Array | None = None,
    row_weight: Array | None = None,
) -> Array:
    """The formula of `leave_one_out` for any rows, given their entries of the inverse diagonal."""
    w = np.ones(len(coef)) if row_weight is None else np.asarray(row_weight, dtype=float)
    inverse = w * inverse  # from the scaled coordinates of the problem to those of the rows
    kept = np.maximum(w - 1.0, 0.0)
    residual = ridge * coef / (kept + ridge * (1.0 - kept / w) * inverse)
    return np.asarray((1.0 if target is None else target) - residual)

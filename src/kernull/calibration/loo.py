"""Leave-one-out projections in closed form."""

from __future__ import annotations

import numpy as np

from kernull._typing import Array
from kernull.problems import FisherProblem

__all__ = ["leave_one_out", "left_out_projections"]


def leave_one_out(
    problem: FisherProblem,
    weights: Array,
    coef: Array,
    target: Array | None = None,
    row_weight: Array | None = None,
    inverse_diagonal: Array | None = None,
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
        The coefficients a at b; exact ones, for errors in them are not damped here.
    target : array of shape (n,), optional
        Right-hand side of the problem; ones by default.
    row_weight : array of shape (n,), optional
        The row weights of the problem.
    inverse_diagonal : array of shape (n,), optional
        What ``problem.inverse_diagonal(weights)`` gives, where it is already known.

    Returns
    -------
    array of shape (n,)
    """
    inverse = problem.inverse_diagonal(weights) if inverse_diagonal is None else inverse_diagonal
    if row_weight is not None:  # from the scaled coordinates of the problem to those of the rows
        inverse = np.asarray(row_weight, dtype=float) * inverse
    return left_out_projections(inverse, coef, problem.ridge, target, row_weight)


def left_out_projections(
    inverse_diagonal: Array,
    coef: Array,
    ridge: float,
    target: Array | None = None,
    row_weight: Array | None = None,
) -> Array:
    """What `leave_one_out` returns, from the diagonal of (rho W^-1 + K_b)^-1, W the row weights."""
    w = np.ones(len(coef)) if row_weight is None else np.asarray(row_weight, dtype=float)
    kept = np.maximum(w - 1.0, 0.0)
    residual = ridge * coef / (kept + ridge * (1.0 - kept / w) * inverse_diagonal)
    return np.asarray((1.0 if target is None else target) - residual)

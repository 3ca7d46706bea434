r"""Leave-one-out in closed form, whole and kernel by kernel.

Let A = \rho W^{-1} + K_b be the matrix of the fit (W holds the row weights), G its inverse and
a = Gt. Removing row i turns the coefficients into

.. math:: a^{-i} = a - \kappa_i\, G e_i, \qquad \kappa_i = a_i / G_{ii}

(its i-th entry is zero, as it must be), so the contribution of kernel j to the projection of row
i by the model that never saw it is

.. math:: c_{ij}^{-i} = b_j \left[ (K_j a)_i - \kappa_i (K_j G)_{ii} \right].

The diagonal of K_j G is a row-by-row dot product of two symmetric matrices: all J n^2 values
together cost no more than one product K_j v a kernel. Their sum over j is
:math:`t_i - a_i / G_{ii}`, the textbook formula.

A row of weight w stands for w copies, of which one is left out: with m = max(w - 1, 0) copies kept
and :math:`c = \rho (1 - m/w)`, :math:`\kappa_i = c\, a_i / (m + c\, G_{ii})`.
"""

from __future__ import annotations

import numpy as np

from kernull._typing import Array, Indices
from kernull.problems import FisherProblem

__all__ = ["leave_one_out", "leave_one_out_contributions", "left_out_projections", "loo_sample"]

#: Rows of a matrix-free fit that are left out, each by an exact solve.
SAMPLE_ROWS = 500
#: Bytes of kernel rows held at once.
CHUNK_BYTES = 64 * 2**20
#: Relative residual of the block solves of a matrix-free fit.
SOLVE_TOL = 1e-10


def leave_one_out(
    problem: FisherProblem,
    weights: Array,
    coef: Array,
    target: Array | None = None,
    row_weight: Array | None = None,
) -> Array:
    r"""Projection of each training row by the model fitted without it, at fixed kernel weights.

    .. math:: y_i^{-i} = t_i - a_i / [(\rho I + K_b)^{-1}]_{ii}

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


def leave_one_out_contributions(
    problem: FisherProblem,
    weights: Array,
    row_weight: Array | None = None,
    rows: Indices | None = None,
) -> Array:
    r"""Contribution of each kernel to each training row's leave-one-out projection.

    .. math:: c_{ij}^{-i} = b_j \left[ (K_j a)_i - \kappa_i (K_j G)_{ii} \right]

    exact at fixed kernel weights. Where the kernels are never formed (a stack without
    ``combine``), the columns of G come from conjugate gradients, a block of rows at a time.

    Parameters
    ----------
    problem : FisherProblem
        The problem that was solved.
    weights : array of shape (J,)
        Kernel weights b, kept fixed.
    row_weight : array of shape (n,), optional
        The row weights of the problem.
    rows : integer array of shape (m,), optional
        Rows to leave out, one at a time; all of them by default.

    Returns
    -------
    array of shape (m, J)
        Rows add up to the leave-one-out projections.
    """
    weights = np.asarray(weights, dtype=float)
    stack, ridge, n = problem.stack, problem.ridge, problem.n
    rows = np.arange(n) if rows is None else rows
    w = np.ones(n) if row_weight is None else np.asarray(row_weight, dtype=float)
    scale = np.ones(n) if problem.row_scale is None else problem.row_scale
    dense = problem.inverse(weights) if hasattr(stack, "combine") else None
    coef = _coefficients(problem, weights, dense)  # in the problem's scaled coordinates
    Ka = stack.products(scale * coef)  # (J, n)
    a = scale * coef
    out = np.empty((len(rows), problem.J))
    step = max(1, CHUNK_BYTES // (8 * n * (problem.J + 1)))
    for start in range(0, len(rows), step):
        pick = rows[start : start + step]
        if dense is not None:
            G = dense[pick]
        else:
            unit = np.zeros((n, len(pick)))
            unit[pick, np.arange(len(pick))] = 1.0
            G = conjugate_gradients(problem, weights, unit).T
        G = scale[pick, None] * G * scale  # rows of G in the coordinates of the rows
        gain = G[np.arange(len(pick)), pick]
        kept = np.maximum(w[pick] - 1.0, 0.0)
        freed = ridge * (1.0 - kept / w[pick])
        kappa = freed * a[pick] / (kept + freed * gain)
        KG = np.einsum("jik,ik->ij", stack.rows(pick), G)
        out[start : start + step] = weights * (Ka[:, pick].T - kappa[:, None] * KG)
    return out


def loo_sample(problem: FisherProblem, random_state: int = 0) -> Indices:
    """Rows that leave-one-out is computed for: all, or a random sample of a matrix-free fit."""
    n = problem.n
    if hasattr(problem.stack, "combine") or n <= SAMPLE_ROWS:
        return np.arange(n)
    picked = np.random.default_rng(random_state).choice(n, SAMPLE_ROWS, replace=False)
    return np.sort(picked)


def _coefficients(problem: FisherProblem, weights: Array, inverse: Array | None) -> Array:
    """A^{-1} t exactly, whatever tolerance the weights were found to."""
    target = problem.target
    if inverse is None:
        return conjugate_gradients(problem, weights, target[:, None])[:, 0]
    a = inverse @ target
    # One step of refinement undoes the rounding of the explicit inverse.
    residual = target - problem.ridge * a - weights @ problem.products(a)
    return np.asarray(a + inverse @ residual)


def conjugate_gradients(
    problem: FisherProblem, weights: Array, B: Array, tol: float = SOLVE_TOL
) -> Array:
    """Solve (rho I + K_b) Z = B column by column at once: one pass over the kernels a step."""
    Z = np.zeros_like(B)
    R, P = B.copy(), B.copy()
    squared = np.einsum("ik,ik->k", R, R)
    goal = tol**2 * np.maximum(squared, np.finfo(float).tiny)
    for _ in range(10 * problem.n + 100):
        if (squared <= goal).all():
            break
        image = problem.ridge * P + np.tensordot(weights, problem.products(P), axes=1)
        curve = np.einsum("ik,ik->k", P, image)
        step = np.divide(squared, curve, out=np.zeros_like(squared), where=curve > 0)
        Z += step * P
        R -= step * image
        new = np.einsum("ik,ik->k", R, R)
        P = R + np.divide(new, squared, out=np.zeros_like(new), where=squared > 0) * P
        squared = new
    return Z

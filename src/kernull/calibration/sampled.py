r"""Leave-one-out without any n x n matrix: exact, with a certificate, on a sample of rows.

What `leave_one_out` needs of row i is :math:`G_{ii} = e_i'A^{-1}e_i`, :math:`A = \rho I + K_b`.
For any x with residual r = e_i - Ax,

.. math:: g(x) = x_i + x'r \;\le\; G_{ii} \;\le\; g(x) + r'r / \rho

The best x in the span of the solver's basis and e_i costs no pass, only the rows of the kernels
in the sample. It is mostly good enough: with a ridge of delta n, :math:`\rho G_{ii}` differs from
1 by at most :math:`k_{ii} / \rho`. Where it is not, conjugate gradients go on from there, all rows
of the sample in one pass an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array, Indices
from kernull.calibration.loo import left_out_projections
from kernull.problems import FisherProblem
from kernull.solvers.subspace import Basis

__all__ = ["SampledProjections", "sampled_leave_one_out"]

#: Rows in the sample: the threshold's rate is then known to within a percent or so.
SAMPLE_ROWS = 500
#: Relative accuracy of each 1 - y_i, far below what 500 rows can tell apart.
TOLERANCE = 1e-3
#: Bytes of the blocks in work.
WORK_BYTES = 2**28


@dataclass(frozen=True)
class SampledProjections:
    """Leave-one-out projections, certified on a sample."""

    projections: Array
    """Of every row, of shape (n,): certified in the sample, estimated elsewhere."""
    index: Indices
    """The rows of the sample, increasing."""
    error: Array
    """Certified relative error of 1 - projection for each row of the sample."""


def sampled_leave_one_out(
    problem: FisherProblem,
    weights: Array,
    coef: Array,
    basis: Basis | None = None,
    *,
    row_weight: Array | None = None,
    rows: int = SAMPLE_ROWS,
    tol: float = TOLERANCE,
    max_iter: int = 200,
    random_state: int = 0,
) -> SampledProjections:
    """Projection of each row by the model fitted without it, at fixed kernel weights.

    Parameters
    ----------
    problem : FisherProblem
        The problem that was solved.
    weights : array of shape (J,)
        Kernel weights b, kept fixed.
    coef : array of shape (n,)
        The coefficients a at b.
    basis : Basis, optional
        The subspace of the solver's result, where it built one.
    row_weight : array of shape (n,), optional
        The row weights of the problem.
    rows : int
        Rows to sample (all, if there are fewer).
    tol : float
        Relative accuracy of each 1 - y_i to certify.
    max_iter : int
        Limit of conjugate-gradient steps.
    random_state : int

    Returns
    -------
    SampledProjections
    """
    n = problem.n
    basis = Basis(problem, np.stack([problem.target, coef])) if basis is None else basis
    span = _Span(problem, weights, basis)
    index = np.sort(np.random.default_rng(random_state).choice(n, min(rows, n), replace=False))
    inverse = span.estimate()
    error = np.empty(len(index))
    step = max(1, int(WORK_BYTES // (8 * n * (problem.J + 6))))
    for start in range(0, len(index), step):
        part = index[start : start + step]
        found, slack = _inverse_entries(span, part, tol, max_iter)
        inverse[part] = found
        error[start : start + step] = slack / found
    if row_weight is not None:  # from the scaled coordinates of the problem to those of the rows
        inverse *= row_weight
    projections = left_out_projections(inverse, coef, problem.ridge, row_weight=row_weight)
    return SampledProjections(projections, index, error)


class _Span:
    """The basis seen from fixed weights."""

    def __init__(self, problem: FisherProblem, weights: Array, basis: Basis) -> None:
        self.problem = problem
        self.weights = weights
        self.Q = basis.Q
        self.AQ = problem.ridge * basis.Q + np.tensordot(weights, basis.KQ, axes=1)
        self.factor = cho_factor(
            problem.ridge * np.eye(basis.m) + np.tensordot(weights, basis.T, axes=1)
        )

    def estimate(self) -> Array:
        """G_ii of every row from below, by the best point of span{Q, e_i}: no pass."""
        problem = self.problem
        # A low-rank stack would have to work for its diagonal; its kernel's own bounds it.
        diagonal = getattr(problem.stack, "diagonal_bound", problem.stack.diagonal)()
        corner = self.weights @ diagonal
        if problem.row_scale is not None:
            corner = corner * problem.row_scale**2
        return self.best(slice(None), problem.ridge + corner)[0]

    def best(self, index: Any, corner: Array) -> tuple[Array, Array, Array]:
        """The best point Qy + s e_i for each row, by the Schur complement of Q.

        ``corner`` is A_ii. Returns the bounds g, of shape (k,), the y, (m, k), and the s, (k,).
        """
        q, w = self.Q[:, index], self.AQ[:, index]
        solved_q, solved_w = cho_solve(self.factor, q), cho_solve(self.factor, w)
        short = 1.0 - np.einsum("mi,mi->i", w, solved_q)
        share = short / (corner - np.einsum("mi,mi->i", w, solved_w))
        return (
            np.einsum("mi,mi->i", q, solved_q) + short * share,
            solved_q - solved_w * share,
            share,
        )

    def unit_images(self, index: Indices) -> Array:
        """A e_i for the rows of the index, of shape (len(index), n)."""
        problem = self.problem
        out = np.tensordot(self.weights, problem.stack.rows(index), axes=1)
        if problem.row_scale is not None:
            out *= problem.row_scale
            out *= problem.row_scale[index][:, None]
        out[np.arange(len(index)), index] += problem.ridge
        return np.asarray(out)

    def images(self, X: Array) -> Array:
        """A x for every row x of X: one pass."""
        problem, scale = self.problem, self.problem.row_scale
        V = np.ascontiguousarray((X if scale is None else X * scale).T)
        combined = getattr(problem.stack, "combined_products", None)
        if combined is not None:
            KX = combined(self.weights, V).T
        else:
            KX = np.tensordot(self.weights, problem.stack.products(V), axes=1).T
        return np.asarray(problem.ridge * X + (KX if scale is None else KX * scale))


def _inverse_entries(span: _Span, index: Indices, tol: float, max_iter: int) -> tuple[Array, Array]:
    """Lower bounds of G_ii for some rows, and what they may fall short by."""
    ridge, c = span.problem.ridge, np.arange(len(index))
    units = span.unit_images(index)
    _, y, share = span.best(index, units[c, index])
    R = -(y.T @ span.AQ) - share[:, None] * units
    R[c, index] += 1.0
    X = y.T @ span.Q
    X[c, index] += share
    del units

    def bounds() -> tuple[Array, Array]:
        lower = X[c, index] + np.einsum("in,in->i", X, R)
        return lower, np.einsum("in,in->i", R, R) / ridge

    lower, slack = bounds()
    P = R.copy()
    for _ in range(max_iter):
        todo = slack > tol * lower
        if not todo.any():
            break
        # Rows that are done stand still: their steps are zero.
        rr = np.einsum("in,in->i", R, R)
        AP = np.zeros_like(P)
        AP[todo] = span.images(P[todo])
        alpha = np.divide(rr, np.einsum("in,in->i", P, AP), out=np.zeros(len(c)), where=todo)
        X += alpha[:, None] * P
        R -= alpha[:, None] * AP
        beta = np.divide(np.einsum("in,in->i", R, R), rr, out=np.zeros(len(c)), where=todo)
        P = np.where(todo[:, None], R + beta[:, None] * P, P)
        lower, slack = bounds()
    return lower, slack

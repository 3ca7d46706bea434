r"""Leave-one-out without any n x n matrix: bounded from both sides, on a sample of rows.

What `leave_one_out` needs of row i is :math:`G_{ii} = e_i'A^{-1}e_i`, :math:`A = \rho I + K_b`.
Two bounds cost no pass, only the rows C of K_b in the sample and the solver's basis Q:

- from below, the best x in the span of Q and e_i: :math:`2 x_i - x'Ax \le G_{ii}`;
- from above, the Nystroem kernel of the directions P = [Q, sample]: it lies below K_b, so its
  inverse lies above,
  :math:`G_{ii} \le (1 - c_i'(\rho P'K_bP + CC')^{-1} c_i) / \rho` with :math:`C = P'K_b`.
  It agrees with K_b on the row itself, so it is by far the closer one, and is what is returned.

With a ridge of delta n the two nearly meet: :math:`\rho G_{ii}` differs from 1 by at most
:math:`k_{ii} / \rho`. Where they do not, conjugate gradients go on from the lower one, all such
rows in one pass per iteration; for any x with residual r = e_i - Ax,

.. math:: x_i + x'r \;\le\; G_{ii} \;\le\; x_i + x'r + r'r / \rho
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernull._typing import Array, Indices
from kernull.calibration.calibrators import left_out_projections
from kernull.problems import FisherProblem
from kernull.solvers.subspace import Basis

#: Rows in the sample: the threshold's rate is then known to within a percent or so.
SAMPLE_ROWS = 500
#: Certified relative accuracy of each G_ii (the bounds' distance; the true one is far less), well
#: below what 500 rows can tell apart.
TOLERANCE = 1e-2
#: Bytes of the blocks in work.
WORK_BYTES = 2**28

Precondition = Callable[[Array], Array]


@dataclass(frozen=True)
class SampledProjections:
    """Leave-one-out projections, with bounds on a sample.

    The bounds are of G_ii. What is left out, 1 - y_i = a_i / G_ii, has the relative error of a_i
    too, as the solver's gap leaves it: little for low scores, which thresholds are made of, and up
    to most of it for high scores, whose a_i is near zero.
    """

    projections: Array
    """Of every row, of shape (n,): bounded in the sample, estimated elsewhere."""
    index: Indices
    """The rows of the sample, increasing."""
    error: Array
    """Certified relative error of G_ii for each row of the sample."""


def sampled_leave_one_out(
    problem: FisherProblem,
    weights: Array,
    coef: Array,
    basis: Basis | None = None,
    *,
    row_weight: Array | None = None,
    rows: int = SAMPLE_ROWS,
    targets: int | None = None,
    tol: float = TOLERANCE,
    max_iter: int = 200,
    random_state: int = 0,
) -> SampledProjections:
    """Projection of each row by the model fitted without it, at fixed kernel weights.

    ``coef`` are the coefficients at these weights, ``basis`` the subspace of the solver's result,
    where it built one. So many ``rows`` are sampled among the first ``targets`` (among all by
    default), each G_ii to a relative accuracy of ``tol`` by conjugate gradients.
    """
    n = problem.n
    basis = Basis(problem, np.stack([problem.target, coef])) if basis is None else basis
    span = _Span(problem, weights, basis)
    count = n if targets is None else targets
    index = np.sort(
        np.random.default_rng(random_state).choice(count, min(rows, count), replace=False)
    )
    inverse = span.estimate()
    error = np.empty(len(index))
    step = max(1, int(WORK_BYTES // (8 * n)))
    for start in range(0, len(index), step):
        part = index[start : start + step]
        found, slack = _inverse_entries(span, part, tol, max_iter)
        inverse[part] = found
        error[start : start + step] = slack / found
    if row_weight is not None:  # from the scaled coordinates of the problem to those of the rows
        inverse *= row_weight
    projections = left_out_projections(inverse, coef)
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
        rest = corner - np.einsum("mi,mi->i", w, solved_w)
        # A row whose e_i lies in the span has nothing beyond it: 0 / 0, up to rounding.
        share = np.divide(short, rest, out=np.zeros_like(short), where=rest > 1e-12 * corner)
        return (
            np.einsum("mi,mi->i", q, solved_q) + short * share,
            solved_q - solved_w * share,
            share,
        )

    def from_above(self, index: Indices, units: Array) -> tuple[Array, Precondition]:
        """Upper bounds of G_ii by the Nystroem kernel N of Q and the rows of the index.

        And the function that multiplies rows by rho (rho I + N)^-1, which is near rho A^-1.
        """
        ridge, m = self.problem.ridge, len(self.Q)
        C = np.concatenate([self.AQ - ridge * self.Q, units])
        C[m + np.arange(len(index)), index] -= ridge
        # P'K_bP by the rows of C, then rho P'K_bP + CC'; too large a core keeps the bound valid.
        core = np.concatenate([C @ self.Q.T, C[:, index]], axis=1) * ridge + C @ C.T
        core = (core + core.T) / 2
        c, size = C[:, index], float(np.trace(core))
        for jitter in (1e-14, 1e-12, 1e-10, 1e-8, 1e-6):  # kernels in float32 need the larger
            core.flat[:: len(core) + 1] += jitter * size
            try:
                factor = cho_factor(core)
            except LinAlgError:
                continue
            bound = (1.0 - np.einsum("pi,pi->i", c, cho_solve(factor, c))) / ridge
            if self.problem.n <= SAMPLE_ROWS:  # few rows need no help
                return bound, np.copy
            return bound, partial(_nystroem_inverse, factor, C)
        return np.full(len(index), 1.0 / ridge), np.copy

    def unit_images(self, index: Indices) -> Array:
        """A e_i for the rows of the index, of shape (len(index), n)."""
        problem = self.problem
        out = np.empty((len(index), problem.n))
        for start in range(0, len(index), 32):  # a few at a time: rows come for every kernel
            part = problem.stack.rows(index[start : start + 32])
            out[start : start + 32] = np.tensordot(self.weights, part, axes=1)
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


def _nystroem_inverse(factor: Any, C: Array, R: Array) -> Array:
    """R - R C'(CC' + rho P'K_bP)^-1 C, from the factor of what is inverted."""
    return np.asarray(R - cho_solve(factor, C @ R.T).T @ C)


def _inverse_entries(span: _Span, index: Indices, tol: float, max_iter: int) -> tuple[Array, Array]:
    """G_ii of some rows, and what they may be off by."""
    units = span.unit_images(index)
    lower, y, share = span.best(index, units[np.arange(len(index)), index])
    upper, precondition = span.from_above(index, units)
    value = np.maximum(upper, lower)
    slack = value - lower
    todo = np.flatnonzero(slack > tol * lower)
    # In pieces: conjugate gradients keep four blocks of the size of ``units``.
    for part in np.array_split(todo, max(1, -(-4 * len(todo) // len(index)))):
        if len(part):
            value[part], slack[part] = _refine(
                span, index[part], units[part], y[:, part], share[part], tol, max_iter, precondition
            )
    return value, slack


def _refine(
    span: _Span,
    index: Indices,
    units: Array,
    y: Array,
    share: Array,
    tol: float,
    max_iter: int,
    precondition: Precondition,
) -> tuple[Array, Array]:
    """Conjugate gradients from Qy + s e_i: lower bounds, and what they may fall short by."""
    ridge, c = span.problem.ridge, np.arange(len(index))
    R = -(y.T @ span.AQ) - share[:, None] * units
    R[c, index] += 1.0
    X = y.T @ span.Q
    X[c, index] += share
    P, rr = precondition(R), np.einsum("in,in->i", R, R)
    rz = np.einsum("in,in->i", R, P)
    for _ in range(max_iter):
        lower = X[c, index] + np.einsum("in,in->i", X, R)
        todo = rr > tol * ridge * lower
        if not todo.any():
            break
        # Rows that are done stand still.
        AP = span.images(P[todo])
        alpha = rz[todo] / np.einsum("in,in->i", P[todo], AP)
        X[todo] += alpha[:, None] * P[todo]
        R[todo] -= alpha[:, None] * AP
        rr[todo] = np.einsum("in,in->i", R[todo], R[todo])
        Z, before = precondition(R[todo]), rz[todo]
        rz[todo] = np.einsum("in,in->i", R[todo], Z)
        P[todo] = Z + (rz[todo] / before)[:, None] * P[todo]
    return X[c, index] + np.einsum("in,in->i", X, R), rr / ridge

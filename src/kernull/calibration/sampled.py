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
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
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
#: Bytes of the blocks in work, on the host and on a device.
WORK_BYTES, WORK_BYTES_THERE = 2**28, 2**29

#: Rows of the sample on either side that say what rows like them lack.
ALIKE = 12

Precondition = Callable[[Any], Any]


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
    diagonal: Array
    """G_ii of every row, of shape (n,)."""


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

    ``coef`` are the coefficients at these weights, ``basis`` the subspace of the solver's result,
    where it built one. So many ``rows`` are sampled, each G_ii to a relative accuracy of ``tol`` by
    conjugate gradients.
    """
    n = problem.n
    basis = Basis(problem, np.stack([problem.target, coef])) if basis is None else basis
    span = Span(problem, weights, basis)
    index = np.sort(np.random.default_rng(random_state).choice(n, min(rows, n), replace=False))
    inverse, error = span.estimate(), np.empty(len(index))
    seen = inverse.copy()
    step = max(1, int((WORK_BYTES_THERE if span.there else WORK_BYTES) // (8 * n)))
    for start in range(0, len(index), step):
        part = index[start : start + step]
        found, slack = _inverse_entries(span, part, tol, max_iter)
        inverse[part] = found
        error[start : start + step] = slack / found
    # Other rows lack as much as those of the sample of which the basis sees as much.
    order = index[np.argsort(seen[index])]
    lacking = np.pad(inverse[order] / seen[order], ALIKE, mode="edge")
    lacking = np.median(sliding_window_view(lacking, 2 * ALIKE + 1), axis=1)
    others = np.setdiff1d(np.arange(n), index)
    inverse[others] *= np.interp(seen[others], seen[order], lacking)
    if row_weight is not None:  # from the scaled coordinates of the problem to those of the rows
        inverse *= row_weight
    projections = left_out_projections(inverse, coef)
    return SampledProjections(projections, index, error, inverse)


class Span:
    """The basis seen from fixed weights.

    Blocks of rows of length n are tensors where the stack is one of a device: they never leave it.
    """

    xp: Any = np
    """NumPy or torch: what blocks are worked on with."""
    there = False

    def __init__(self, problem: FisherProblem, weights: Array, basis: Basis) -> None:
        self.problem = problem
        self.weights = weights
        self.Q = basis.Q
        self.AQ = problem.ridge * basis.Q + np.tensordot(weights, basis.KQ, axes=1)
        self.factor = cho_factor(
            problem.ridge * np.eye(basis.m) + np.tensordot(weights, basis.T, axes=1)
        )
        stack: Any = problem.stack
        if hasattr(stack, "combined_there"):
            import torch

            self.there, self.xp, self._device = True, torch, stack.device

    def put(self, values: Any) -> Any:
        """An array where the blocks are."""
        return self.xp.as_tensor(values, device=self._device) if self.there else values

    def get(self, values: Any) -> Array:
        """A result on the host."""
        return np.asarray(values.cpu().numpy() if self.there else values)

    def along(self, A: Any, B: Any) -> Array:
        """Products of the rows of two blocks, row by row."""
        return self.get(self.xp.einsum("in,in->i", A, B))

    @cached_property
    def blocks(self) -> tuple[Any, Any]:
        """Q and AQ where the blocks are."""
        return self.put(self.Q), self.put(self.AQ)

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

    def from_above(self, index: Indices, units: Any) -> tuple[Array, Precondition]:
        """Upper bounds of G_ii by the Nystroem kernel N of Q and the rows of the index.

        And the function that multiplies rows by rho (rho I + N)^-1, which is near rho A^-1.
        """
        ridge, (Q, AQ), xp = self.problem.ridge, self.blocks, self.xp
        C = xp.concatenate([AQ - ridge * Q, units])
        C[self.put(len(Q) + np.arange(len(index))), self.put(index)] -= ridge
        picked = C[:, self.put(index)]
        # P'K_bP by the rows of C, then rho P'K_bP + CC'; too large a core keeps the bound valid.
        core = self.get(xp.concatenate([C @ Q.T, picked], 1) * ridge + C @ C.T)
        core = (core + core.T) / 2
        c, size = self.get(picked), float(np.trace(core))
        for jitter in (1e-14, 1e-12, 1e-10, 1e-8, 1e-6):  # kernels in float32 need the larger
            core.flat[:: len(core) + 1] += jitter * size
            try:
                factor = cho_factor(core)
            except LinAlgError:
                continue
            bound = (1.0 - np.einsum("pi,pi->i", c, cho_solve(factor, c))) / ridge
            if self.problem.n <= SAMPLE_ROWS:  # few rows need no help
                return bound, _copy
            return bound, partial(self._nystroem_inverse, factor, C)
        return np.full(len(index), 1.0 / ridge), _copy

    def _nystroem_inverse(self, factor: Any, C: Any, R: Any) -> Any:
        """R - R C'(CC' + rho P'K_bP)^-1 C, from the factor of what is inverted."""
        return R - self.put(cho_solve(factor, self.get(C @ R.T)).T) @ C

    def unit_images(self, index: Indices) -> Any:
        """A e_i for the rows of the index, of shape (len(index), n)."""
        problem = self.problem
        out = self._kernel_rows(index)
        if problem.row_scale is not None:
            out *= self.put(problem.row_scale)
            out *= self.put(problem.row_scale[index][:, None])
        out[self.put(np.arange(len(index))), self.put(index)] += problem.ridge
        return out

    def _kernel_rows(self, index: Indices) -> Any:
        stack: Any = self.problem.stack
        if self.there:
            return stack.combined_rows_there(self.weights, index)
        out = np.empty((len(index), self.problem.n))
        for start in range(0, len(index), 32):  # a few at a time: rows come for every kernel
            part = stack.rows(index[start : start + 32])
            out[start : start + 32] = np.tensordot(self.weights, part, axes=1)
        return out

    def images(self, X: Any) -> Any:
        """A x for every row x of X: one pass."""
        problem = self.problem
        stack: Any = problem.stack
        scale = None if problem.row_scale is None else self.put(problem.row_scale)
        V = (X if scale is None else X * scale).T
        if self.there:
            KX = stack.combined_there(self.weights, V).T
        elif hasattr(stack, "combined_products"):
            KX = stack.combined_products(self.weights, np.ascontiguousarray(V)).T
        else:
            KX = np.tensordot(self.weights, stack.products(np.ascontiguousarray(V)), axes=1).T
        return problem.ridge * X + (KX if scale is None else KX * scale)


def _copy(R: Any) -> Any:
    return 1.0 * R


def _inverse_entries(span: Span, index: Indices, tol: float, max_iter: int) -> tuple[Array, Array]:
    """G_ii of some rows, and what they may be off by."""
    units = span.unit_images(index)
    place = span.put(np.arange(len(index))), span.put(index)
    lower, y, share = span.best(index, span.get(units[place]))
    upper, precondition = span.from_above(index, units)
    value = np.maximum(upper, lower)
    slack = value - lower
    todo = np.flatnonzero(slack > tol * lower)
    # In pieces: conjugate gradients keep four blocks of the size of ``units``. Not on a device,
    # where a pass takes nearly as long for few rows.
    pieces = 1 if span.there else max(1, -(-4 * len(todo) // len(index)))
    for part in np.array_split(todo, pieces):
        if len(part):
            some = units[span.put(part)]
            value[part], slack[part] = _refine(
                span, index[part], some, y[:, part], share[part], tol, max_iter, precondition
            )
    return value, slack


def _refine(
    span: Span,
    index: Indices,
    units: Any,
    y: Array,
    share: Array,
    tol: float,
    max_iter: int,
    precondition: Precondition,
) -> tuple[Array, Array]:
    """Conjugate gradients from Qy + s e_i: lower bounds, and what they may fall short by."""
    ridge, (Q, AQ), put, along = span.problem.ridge, span.blocks, span.put, span.along
    own = put(np.arange(len(index))), put(index)
    R = -(put(y.T) @ AQ) - put(share[:, None]) * units
    R[own] += 1.0
    X = put(y.T) @ Q
    X[own] += put(share)
    P, rr = precondition(R), along(R, R)
    rz = along(R, P)
    for _ in range(max_iter):
        lower = span.get(X[own]) + along(X, R)
        todo = np.flatnonzero(rr > tol * ridge * lower)
        if not len(todo):
            break
        # Rows that are done stand still.
        here = put(todo)
        AP = span.images(P[here])
        alpha = put((rz[todo] / along(P[here], AP))[:, None])
        X[here] += alpha * P[here]
        R[here] -= alpha * AP
        rr[todo] = along(R[here], R[here])
        Z, before = precondition(R[here]), rz[todo]
        rz[todo] = along(R[here], Z)
        P[here] = Z + put((rz[todo] / before)[:, None]) * P[here]
    return span.get(X[own]) + along(X, R), rr / ridge

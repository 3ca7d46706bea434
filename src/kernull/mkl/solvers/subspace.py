"""Solve in a growing subspace: one pass over the kernels per iteration, no n x n matrix.

Keep orthonormal columns Q, starting with t/||t||, and the products K_jQ. The problem restricted
to a = Qy is the same problem with the small matrices Q'K_jQ: Newton solves it, or Frank-Wolfe on
balls that cannot minimise a quadratic model. Its solution has a residual r outside the span, the
certificate of the full problem follows from what is stored, and r is the next column. Memory is
J n m for m columns; nothing n x n is ever formed.

When m reaches its limit, the basis is pressed into the part that matters (the solution, the
right-hand side, the leading eigenvectors of the reduced kernel) without any pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernull._typing import Array
from kernull.errors import InvalidKernelError, collected
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import newton
from kernull.mkl.solvers.base import SOLVERS, Result, Run
from kernull.mkl.solvers.first_order import frank_wolfe
from kernull.operators.planner import FEWEST_COLUMNS

#: On stacks that can be combined, a basis of more columns than this share of n costs more than
#: a few factorisations: Newton takes over from the weights found.
HANDOVER_SHARE = 0.08
#: Share of the columns that stays when the basis is pressed.
KEEP_SHARE = 0.4
#: The reduced problem is solved to this share of the gap outside the subspace.
INNER_SHARE = 0.03
#: Iterations on a coarse stack: what it cannot do in so many is left to the finer one.
COARSE_ITER = 100
#: Columns that are taken over from it at most; of more, the solution alone.
COARSE_COLUMNS = 64


class Basis:
    """Orthonormal columns Q, their products K_jQ, and the small matrices T_j = Q'K_jQ.

    Room beyond ``max_columns`` is made only for columns that come.
    """

    def __init__(
        self, problem: FisherProblem, columns: Array, max_columns: int | None = None
    ) -> None:
        self.problem = problem
        self.max_columns = max_columns
        J, n = problem.J, problem.n
        # Rows of these arrays are the basis vectors: appending and all products are contiguous.
        self._Q = np.empty((8, n))
        self._KQ = np.empty((J, 8, n))
        self._T = np.empty((J, 8, 8))
        self.m = 0
        self.append(columns)

    @property
    def Q(self) -> Array:
        """The basis as rows, of shape (m, n)."""
        return self._Q[: self.m]

    @property
    def KQ(self) -> Array:
        """Products as rows, of shape (J, m, n)."""
        return self._KQ[:, : self.m]

    @property
    def T(self) -> Array:
        """Q'K_jQ, of shape (J, m, m)."""
        return self._T[:, : self.m, : self.m]

    def append(self, columns: Array) -> bool:
        """Orthogonalise vectors (rows of ``columns``) and add those not in the span: one pass."""
        new = self._orthonormal(np.atleast_2d(columns))
        k, m = len(new), self.m
        if k == 0:
            return False
        self._reserve(m + k)
        products = self.problem.products(np.ascontiguousarray(new.T))  # (J, n, k)
        self._Q[m : m + k] = new
        self._KQ[:, m : m + k] = products.transpose(0, 2, 1)
        self.m = m + k
        corner = self._KQ[:, m : m + k] @ self.Q.T  # (J, k, m + k)
        self._T[:, m : m + k, : m + k] = corner
        self._T[:, : m + k, m : m + k] = corner.transpose(0, 2, 1)
        return True

    def press(self, weights: Array, y: Array, keep: int) -> None:
        """Keep the span of Qy, the target and the leading eigenvectors of the reduced K_b.

        Parameters
        ----------
        weights : array of shape (J,)
        y : array of shape (m,)
            Coefficients in the basis.
        keep : int
            Number of columns to keep.
        """
        _, vectors = np.linalg.eigh(np.tensordot(weights, self.T, axes=1))
        wanted = np.column_stack([y, self.Q @ self.problem.target, vectors[:, ::-1]])
        Z = np.linalg.qr(wanted[:, :keep])[0].T  # (keep, m), orthonormal rows
        k = len(Z)
        # Row blocks of KQ are overwritten kernel by kernel, so no second copy of it is made.
        self._Q[:k] = Z @ self.Q
        for KQ, T in zip(self._KQ, self._T, strict=True):
            KQ[:k] = Z @ KQ[: self.m]
            T[:k, :k] = Z @ T[: self.m, : self.m] @ Z.T
        self.m = k

    def _orthonormal(self, columns: Array) -> Array:
        kept: list[Array] = []
        for column in columns:
            norm = np.linalg.norm(column)
            rest = column / norm if norm > 0 else column
            for _ in range(2):  # twice is enough
                rest = rest - (self.Q @ rest) @ self.Q
                for q in kept:
                    rest = rest - (q @ rest) * q
            left = float(np.linalg.norm(rest))
            if left > 1e-8:  # what nearly lies in the span would add nothing but rounding
                kept.append(rest / left)
        return np.array(kept).reshape(-1, self.problem.n)

    def _reserve(self, m: int) -> None:
        room = len(self._Q)
        if m <= room:
            return
        size = 2 * room
        # The last step doubles at least: old and new room are half as much again as the limit.
        if self.max_columns is not None and 2 * size > self.max_columns:
            size = self.max_columns
        J, n, size = self.problem.J, self.problem.n, max(m, size)
        Q, KQ, T = np.empty((size, n)), np.empty((J, size, n)), np.empty((J, size, size))
        Q[: self.m], KQ[:, : self.m], T[:, : self.m, : self.m] = self.Q, self.KQ, self.T
        self._Q, self._KQ, self._T = Q, KQ, T


def solve(run: Run) -> Result:
    """Minimise F over the ball; see the module's text.

    The run's budget limits the columns of the basis, and the rows of a preconditioner, whose
    directions are better than the residual. A stack with a cheaper one that is nearly the same
    (`Stack.coarse`) has the problem solved there first.
    """
    problem, ball, weights, tol = run.problem, run.ball, run.weights, run.tol
    limit = max(run.budget.max_columns, FEWEST_COLUMNS)
    preconditioner = None
    if run.budget.preconditioner_rows:
        preconditioner = _preconditioner(problem, run.budget.preconditioner_rows)
    gap, columns = 1.0, [problem.target]
    coarse = _solve_coarse(run)
    if coarse is not None:
        weights, gap = coarse.weights, coarse.gap
        columns.append(coarse.coef / (1.0 if problem.row_scale is None else problem.row_scale))
        # All of its columns cost one pass as well.
        if coarse.basis is not None and coarse.basis.m <= min(limit, COARSE_COLUMNS):
            columns = [*coarse.basis.Q]
    elif preconditioner is not None:
        columns.append(preconditioner(weights, problem.target))
    basis = Basis(problem, np.array(columns), limit)
    can_combine = problem.stack.can_combine
    by_models = not SOLVERS["newton"].lacks(problem, ball)
    reduced, steps = (newton.solve, 50) if by_models else (frank_wolfe, 1000)
    exhausted = False
    for _ in range(run.max_iter):
        inner_tol = 0.1 * tol if exhausted else max(INNER_SHARE * gap, 0.1 * tol)
        first, small = ball.normalise(weights), problem.restrict(basis.Q.T, matrices=basis.T)
        inner = reduced(Run(small, ball, first, steps, inner_tol, inner=True))
        weights, y = inner.weights, inner.coef
        a, Ka = y @ basis.Q, y @ basis.KQ
        gap = run.see(problem.certify(weights, a, Ka))
        if gap <= tol or exhausted:
            break
        left = run.max_iter - len(run.history)
        if can_combine and left > 0 and basis.m >= max(30, HANDOVER_SHARE * problem.n):
            # That solver finishes from the weights so far, under one history.
            first, history = ball.normalise(weights), run.history
            last = Run(problem, ball, first, left, tol, run.callback, history=history)
            return replace(reduced(last), solver="subspace")
        residual = problem.target - problem.ridge * a - weights @ Ka
        if basis.m >= limit:
            basis.press(weights, y, int(KEEP_SHARE * limit))
        direction = residual if preconditioner is None else preconditioner(weights, residual)
        # With nothing to add, what is left of the gap is that of the reduced problem.
        exhausted = not basis.append(direction)
    return replace(run.result("subspace"), basis=basis)


def _preconditioner(problem: FisherProblem, landmarks: int) -> Callable[[Array, Array], Array]:
    """Nystroem's inverse from a few rows, drawn at random: fewer passes at small ridges."""
    rng = np.random.default_rng(0)
    index = np.sort(rng.choice(problem.n, min(landmarks, problem.n), replace=False))
    return problem.stack.landmark_inverse(index, problem.ridge, problem.row_scale)


def _solve_coarse(run: Run) -> Result | None:
    """The solution on a stack that is nearly that of the problem, if it has one."""
    near = run.problem.stack.coarse()
    if near is None:
        return None
    try:
        with collected(ConvergenceWarning):
            tol = max(0.3 * run.tol, 1e-9)
            coarse = run.problem.on(near)
            return solve(Run(coarse, run.ball, run.weights, COARSE_ITER, tol, budget=run.budget))
    except InvalidKernelError:  # lost in the rounding of the coarser type
        return None

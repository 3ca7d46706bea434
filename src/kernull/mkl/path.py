"""All models of a (p, delta) grid from one shared subspace.

Restricting to a = Qy leaves the small matrices Q'K_jQ, which depend neither on p nor on delta:
Newton solves every model in them. What a model leaves outside the span is its residual; one block
of directions that matter to the models not yet done is appended at a time, in one pass over the
kernels, until the certified gap of each model is below the tolerance. Where kernels can be combined
and a few passes did not do, one factorisation preconditions the directions of all models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import newton, solve
from kernull.mkl.solvers.base import Run, relative_gap
from kernull.mkl.solvers.subspace import Basis
from kernull.operators import DenseStack, Stack, parse_memory_limit
from kernull.operators.planner import FEWEST_COLUMNS, basis_columns

#: The paper's norms; 10^6 stands for infinity there.
PAPER_PS: tuple[float, ...] = (1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 1e6)
#: The paper's ridges, relative to n.
PAPER_DELTAS: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
#: The paper's widths, as factors of the mean pairwise distance.
PAPER_WIDTHS: tuple[float, ...] = (0.25, 0.5, 1.0)

#: Below this many rows (on stacks that can be combined) the whole space is small enough.
DIRECT_ROWS = 250
#: On stacks that can be combined: beyond this share of n, finish what is left by factorisations.
GRID_HANDOVER = 0.4
#: Columns beyond which what is left is finished model by model, where memory allows so many.
SHARED_COLUMNS = 600
#: On stacks that can be combined: passes after which one factorisation, worth about three of
#: them, points the directions that follow straight at the errors.
PLAIN_PASSES = 6
#: Columns appended at once: on a dense pass, a block of these costs about twice a single vector.
DIRECTIONS = 32
#: Directions in which every model's (unit) residual has less than this are left out of a block.
WORTHWHILE = 3e-3
#: The reduced problems are solved to this share of the gap outside the subspace.
GRID_INNER_SHARE = 0.1
#: Models certified at once; bounds the memory of certification to CHUNK * J * n numbers.
CHUNK = 16


@dataclass(frozen=True)
class Path:
    """Every model of a grid: axis 0 is p, axis 1 is delta.

    Attributes
    ----------
    ps, deltas : tuple of float
        The grid; deltas relative to n.
    weights : array of shape (P, D, J)
        Kernel weights b.
    coef : array of shape (P, D, n)
        Coefficients a of the training rows.
    values : array of shape (P, D)
        Upper bound of F at the weights.
    gaps : array of shape (P, D)
        Certified relative duality gap.
    n_columns : int
        Dimension of the shared subspace (n where the problem was small enough to need none).
    n_passes : int
        Passes over the kernels spent on the subspace.
    n_finished : int
        Models that the subspace alone did not certify, finished one by one.
    projected : array of shape (J, l, P D), optional
        Coefficients of the landmarks, where these stand for all rows.
    """

    ps: tuple[float, ...]
    deltas: tuple[float, ...]
    weights: Array
    coef: Array
    values: Array
    gaps: Array
    n_columns: int
    n_passes: int
    n_finished: int
    projected: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(number of p, number of delta)."""
        return len(self.ps), len(self.deltas)

    def __repr__(self) -> str:
        worst = float(np.max(self.gaps)) if np.size(self.gaps) else 0.0
        return f"Path({len(self.ps)} ps x {len(self.deltas)} deltas, worst gap {worst:.1e})"

    def __len__(self) -> int:
        return len(self.ps) * len(self.deltas)

    def scores(self, cross: Any) -> Array:
        r"""Projections :math:`y(x) = \sum_j b_j k_j(x)'a` by every model, in one pass: (P, D, m).

        Parameters
        ----------
        cross : Stack or array of shape (J, m, n)
            Kernels between new rows and training rows.
        """
        cross = cross if isinstance(cross, Stack) else DenseStack(np.asarray(cross))
        P, D = self.shape
        J = self.weights.shape[2]
        weights = self.weights.reshape(P * D, J)
        columns = np.ascontiguousarray(self.coef.reshape(P * D, -1).T)
        out = np.empty((P * D, cross.shape[0]))
        # J m models numbers would not always fit.
        for rows, piece in cross.pieces():
            if self.projected is None:
                products = piece.products(columns)
            else:  # one set of coefficients per kernel
                products = piece.rows(slice(None)) @ self.projected
            out[:, rows] = np.einsum("kj,jmk->km", weights, products, optimize=True)
        return out.reshape(P, D, -1)


def path(
    stack: Any,
    ps: Sequence[float] = PAPER_PS,
    deltas: Sequence[float] = PAPER_DELTAS,
    *,
    tol: float = 1e-4,
    sample_weight: Any = None,
    ball: Callable[[float], Any] = LpBall,
) -> Path:
    r"""All models of a (p, delta) grid, for about the price of a few.

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \; 2 a'1 - \delta n\, a'a - a'K_b a
       \qquad \text{for every } p, \delta

    One subspace serves every p and delta, so the kernels are passed over a few times in all, not
    a few times per model. Each model has a certified gap.

    Parameters
    ----------
    stack : Stack or array of shape (J, n, n)
        Kernels of the training rows. Of a stack that does not combine them, no n x n matrix is
        ever formed.
    ps : sequence of float in [1, inf]
        Norms of the weights.
    deltas : sequence of float > 0
        Ridges relative to n.
    tol : float
        Certified relative gap that every model must reach.
    sample_weight : array of shape (n,), optional
        Weight of each row, > 0, as in ``MultiKernelFisherNull.fit``.
    ball : callable, default=LpBall
        Makes the set of weights from p: the lp ball, or another family such as the mixed (r, p)
        balls at a fixed r.

    Returns
    -------
    Path
        Weights, coefficients, values and gaps, axis 0 for p and axis 1 for delta (both in
        increasing order), and ``scores(cross)`` for the projections of any rows by every model.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> kernels = np.exp(-((X[:, None] - X) ** 2)).transpose(2, 0, 1)
    >>> models = path(kernels, ps=[1, 2, np.inf], deltas=[1e-3, 1e-2], tol=1e-6)
    >>> models.weights.shape, bool(models.gaps.max() <= 1e-6)
    ((3, 2, 3), True)
    >>> models.scores(kernels[:, :5]).shape
    (3, 2, 5)
    """
    if not isinstance(stack, Stack):
        stack = DenseStack(np.asarray(stack, dtype=float)).validate()
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight is not None and (weight.shape != (stack.n,) or not (weight > 0).all()):
        raise ValueError(
            f"sample_weight: got shape {weight.shape}; expected {stack.n} positive numbers. Leave "
            "out rows of weight zero."
        )
    norms = _read_grid("ps", ps, "numbers p in [1, inf]", lambda p: p >= 1)
    ridges = _read_grid(
        "deltas", deltas, "positive numbers relative to n, such as 1e-6", lambda d: 0 < d < np.inf
    )
    if not tol > 0:
        raise ValueError(f"tol: got {tol!r}; expected a positive number.")
    n = stack.n if weight is None else float(weight.sum())
    problems = [FisherProblem(stack, delta * n, row_weight=weight) for delta in ridges]
    grid = _Grid(problems, [ball(p) for p in norms], tol)
    can_combine = stack.can_combine
    if not can_combine or stack.n > DIRECT_ROWS:
        share = GRID_HANDOVER if can_combine else 1.0
        limit = min(int(share * stack.n), _column_limit(stack))
        grid.grow(limit, precondition=can_combine)
    columns = grid.n_columns or stack.n
    finished = grid.finish("newton" if can_combine else "subspace")
    models = (grid.weights, grid.coef, grid.values, grid.gaps)
    counts = (columns, grid.n_passes, finished if grid.n_passes else 0)
    projected = None
    if stack.landmark_rows is not None:
        projected = stack.project(np.ascontiguousarray(grid.coef.reshape(-1, stack.n).T))
    return Path(norms, ridges, *models, *counts, projected=projected)


def _read_grid(
    name: str, values: Any, expected: str, fits: Callable[[float], bool]
) -> tuple[float, ...]:
    """Numbers of a grid in increasing order, each once."""
    items = np.atleast_1d(np.asarray(values, dtype=object)).tolist()
    if not items:
        raise ValueError(f"{name}: got an empty grid; expected {expected}.")
    for item in items:
        is_number = isinstance(item, int | float | np.number) and not isinstance(item, bool)
        if not is_number or not fits(item):
            raise ValueError(f"{name}: got {item!r}; expected {expected}.")
    return tuple(sorted({float(item) for item in items}))


def _column_limit(stack: Stack) -> int:
    """Columns of a shared basis for which there is memory."""
    # Certification holds the products of CHUNK models as well as the basis.
    fitting = basis_columns(stack.J, stack.n, parse_memory_limit(None)) - CHUNK
    return max(min(SHARED_COLUMNS, fitting), FEWEST_COLUMNS)


class _Grid:
    """Weights, coefficients and certificates of all models while they are being solved."""

    def __init__(self, problems: list[FisherProblem], balls: list[Any], tol: float) -> None:
        self.problems, self.balls, self.tol = problems, balls, tol
        P, D = len(balls), len(problems)
        n, J = problems[0].n, problems[0].J
        self.weights = np.zeros((P, D, J))
        self.coef = np.zeros((P, D, n))
        self.values = np.full((P, D), np.inf)
        self.gaps = np.ones((P, D))
        self.n_columns = 0
        self.n_passes = 0

    @property
    def open(self) -> list[tuple[int, int]]:
        """Models still to be certified, neighbours in p after one another (for warm starts)."""
        rows, columns = np.nonzero(self.gaps.T[:, ::-1] > self.tol)
        last = len(self.balls) - 1
        return [(last - int(p), int(d)) for d, p in zip(rows, columns, strict=True)]

    def start(self, p: int, d: int) -> Array | None:
        """Starting weights: those of the model so far, or of a neighbour that has been solved."""
        for i, k in ((p, d), (p + 1, d), (p, d - 1)):
            if i < len(self.balls) and k >= 0 and self.weights[i, k].any():
                return np.asarray(self.weights[i, k])
        return None

    def grow(self, limit: int, *, precondition: bool = False) -> None:
        """Extend the shared subspace until every model is certified or it is too large."""
        basis = Basis(self.problems[0], self.problems[0].target, limit)
        self.n_passes = 1
        exact = False
        factor: Array | None = None
        while True:
            residuals = self._solve_reduced(basis, exact)
            self.n_columns = basis.m
            if not self.open or basis.m >= limit:
                return
            if precondition and self.n_passes >= PLAIN_PASSES and len(residuals):
                factor, precondition = self._factor(), False
            if len(residuals) and basis.append(_directions(residuals, factor)[: limit - basis.m]):
                self.n_passes += 1
                exact = False
            elif exact:  # neither the subspace nor the reduced problems have more to give
                return
            else:  # what is left of the gaps is that of the reduced problems
                exact = True

    def _solve_reduced(self, basis: Basis, exact: bool) -> Array:
        """Solve the open models in the span; returns the residuals that hold them up."""
        small = DenseStack(basis.T)
        target = basis.Q @ self.problems[0].target
        models = self.open
        solutions: list[tuple[Array, Array]] = []
        for p, d in models:
            problem = FisherProblem(small, self.problems[d].ridge, target)
            share = 0.0 if exact else GRID_INNER_SHARE * float(self.gaps[p, d])
            tol = max(share, 0.1 * self.tol)
            # The certificate in the full space covers the whole.
            ball, start = self.balls[p], self.start(p, d)
            weights = ball.uniform(problem.J) if start is None else ball.normalise(start)
            result = newton.solve(Run(problem, ball, weights, 50, tol, inner=True))
            self.weights[p, d] = result.weights
            solutions.append((result.weights, result.coef))
        residuals: list[Array] = []
        for first in range(0, len(models), CHUNK):
            part = slice(first, first + CHUNK)
            Y = np.stack([y for _, y in solutions[part]])
            A, KA = Y @ basis.Q, Y @ basis.KQ  # (k, n), (J, k, n)
            for i, (p, d) in enumerate(models[part]):
                weights, problem = solutions[first + i][0], self.problems[d]
                point = problem.certify(weights, A[i], KA[:, i])
                gap = float(relative_gap(point, self.balls[p].support(point.u)))
                self._keep(p, d, point.weights, point.coef, point.value, gap)
                if self.gaps[p, d] > self.tol:
                    rest = problem.target - problem.ridge * A[i] - weights @ KA[:, i]
                    if rest @ rest > 0.05 * self.tol * problem.ridge * point.value:
                        residuals.append(rest)
        return np.array(residuals)

    def _factor(self) -> Array | None:
        """Factor of rho I + K_b at an open model: of the smallest ridge, and a p in the middle."""
        smallest = min(d for _, d in self.open)
        norms = sorted(p for p, d in self.open if d == smallest)
        weights = self.weights[norms[len(norms) // 2], smallest]
        try:
            return self.problems[smallest].factorise(weights)
        except InvalidKernelError:  # rounding ate the ridge: certificates can do without
            return None

    def _keep(self, p: int, d: int, weights: Array, coef: Array, value: float, gap: float) -> None:
        self.weights[p, d], self.coef[p, d] = weights, coef
        self.values[p, d], self.gaps[p, d] = value, gap

    def finish(self, solver: str) -> int:
        """Solve the open models one by one from their weights so far; returns their number."""
        models = self.open
        for p, d in models:
            problem, start = self.problems[d], self.start(p, d)
            result = solve(problem, self.balls[p], solver, tol=self.tol, init=start)
            self._keep(p, d, result.weights, result.coef, result.value, result.gap)
        return len(models)


def _directions(residuals: Array, factor: Array | None = None) -> Array:
    """A few orthogonal directions that carry most of every residual, and of every error.

    What a model lacks is its error, its inverse times the residual; the factor of one model
    gives nearly that for all of them.
    """
    if factor is None:
        return _leading(residuals)
    errors = cho_solve((factor, True), residuals.T, check_finite=False).T
    return np.vstack([_leading(errors), _leading(residuals)])


def _leading(rows: Array) -> Array:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    energy, vectors = np.linalg.eigh(unit @ unit.T)
    order = np.argsort(energy)[::-1][:DIRECTIONS]
    order = order[energy[order] > WORTHWHILE]
    return np.asarray(vectors[:, order].T @ unit)

r"""Several Fisher problems with one vector of weights (Algorithm 2).

.. math:: F(b) = \sum_c F_c(b), \qquad u = \sum_c u^c
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import joblib
import numpy as np

from kernull._threads import one_blas_thread
from kernull._typing import Array
from kernull.problems.base import Evaluation
from kernull.problems.fisher import FisherProblem
from kernull.stacks import BlockDiagonalStack

T = TypeVar("T")


class JointFisherProblem:
    r"""The sum of Fisher problems over tasks that share their kernel weights.

    With block-diagonal kernels this is one Fisher problem whose rows have the ridge of their
    task; every certificate and every solver of that problem serves here.

    Parameters
    ----------
    tasks : sequence of FisherProblem
        One a task, with the same number of kernels; sizes and ridges may differ.
    n_jobs : int, optional
        Threads that evaluate tasks side by side, as in joblib (None: one after the other).

    Notes
    -----
    *Certificate.* Upper bounds add up. For the lower bound all coefficients are scaled by one
    common factor, the best one:

    .. math::

       U = \sum_c U_c, \qquad
       L = \frac{\big(\sum_c a_c't_c\big)^2}{\sum_c \rho_c a_c'a_c + h\big(\sum_c u^c\big)}.

    *Curvature.* That of 1/F, as for one task: :math:`H = 2 (\sum_c M^c - uu'/F)`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.balls import LpBall
    >>> from kernull.problems import FisherProblem
    >>> from kernull.solvers import solve
    >>> from kernull.stacks import DenseStack
    >>> tasks = [FisherProblem(DenseStack(np.stack([np.eye(n), np.ones((n, n))])), 0.1)
    ...          for n in (3, 5)]
    >>> joint = JointFisherProblem(tasks)
    >>> result = solve(joint, LpBall(2))
    >>> [a.shape for a in joint.split(result.coef)]
    [(3,), (5,)]
    """

    def __init__(self, tasks: Sequence[FisherProblem], n_jobs: int | None = None) -> None:
        if not tasks:
            raise ValueError("tasks: got none; expected at least one FisherProblem.")
        self.tasks = tuple(tasks)
        self.n_jobs = n_jobs
        self._workers = joblib.effective_n_jobs(n_jobs)
        #: The same problem with block-diagonal kernels: row i has the ridge 1 / weight i.
        self._whole = FisherProblem(
            BlockDiagonalStack([task.stack for task in tasks]),
            ridge=1.0,
            target=np.concatenate([_unscaled(task, task.target) for task in tasks]),
            row_weight=np.concatenate([_row_scale(task) ** 2 / task.ridge for task in tasks]),
        )

    @property
    def stack(self) -> BlockDiagonalStack:
        """The tasks' stacks side by side."""
        stack = self._whole.stack
        assert isinstance(stack, BlockDiagonalStack)
        return stack

    @property
    def J(self) -> int:
        """Number of kernels."""
        return self._whole.J

    @property
    def n(self) -> int:
        """Number of rows of all tasks together."""
        return self._whole.n

    @property
    def n_evaluations(self) -> int:
        """Factorisations so far, one per task and evaluation."""
        return sum(task.n_evaluations for task in self.tasks)

    # -- the whole as one problem, for solvers that work on products ------------------------------

    @property
    def ridge(self) -> float:
        """Ridge in the scaled coordinates of `products` and `certify`: 1."""
        return self._whole.ridge

    @property
    def target(self) -> Array:
        """Right-hand side in the same coordinates."""
        return self._whole.target

    def products(self, V: Array) -> Array:
        """K_j V for all j in one pass over all tasks: (n, k) -> (J, n, k)."""
        return self._whole.products(V)

    def restrict(
        self, Q: Array, products: Array | None = None, matrices: Array | None = None
    ) -> FisherProblem:
        """The same problem with the coefficients of all tasks confined to a span."""
        return self._whole.restrict(Q, products, matrices)

    def certify(self, weights: Array, a: Array, Ka: Array) -> Evaluation:
        """Bounds at b for any (scaled) a, exact or not, given Ka = K_j a of shape (J, n)."""
        return self._whole.certify(weights, a, Ka)

    # -- task by task ------------------------------------------------------------------------

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at b: one factorisation a task, side by side."""
        weights = np.asarray(weights, dtype=float)
        points = self.each(lambda task: task.evaluate(weights))
        value = float(sum(point.value for point in points))
        u = np.sum([point.u for point in points], axis=0)
        scaled = [
            point.coef / _row_scale(task) for task, point in zip(self.tasks, points, strict=True)
        ]
        pairs = list(zip(self.tasks, scaled, strict=True))
        linear = sum(float(task.target @ a) for task, a in pairs)
        quadratic = sum(task.ridge * float(a @ a) for task, a in pairs)

        def lower_bound(support: float) -> float:
            return linear * linear / (quadratic + support)

        def curvature() -> Array:
            # A task's own curvature is 2 (M - uu'/F); the tasks' M add up, not the second terms.
            H = np.sum([_curvature(point) for point in points], axis=0)
            corrections = [np.outer(point.u, point.u) / point.value for point in points]
            return np.asarray(H + 2.0 * (np.sum(corrections, axis=0) - np.outer(u, u) / value))

        coef = np.concatenate([point.coef for point in points])
        return Evaluation(weights, value, u, coef, lower_bound, curvature)

    def solutions(self, weights: Array) -> list[tuple[Array, Array]]:
        """Exact a(b) and the diagonal of the scaled inverse, for every task."""
        return self.each(lambda task: task.solution(weights))

    def split(self, coef: Array) -> list[Array]:
        """Coefficients of each task."""
        return [coef[rows] for rows in self.stack.slices]

    def each(self, call: Callable[[FisherProblem], T]) -> list[T]:
        """Results of a call for every task, in order; in threads when ``n_jobs`` says so."""
        if min(self._workers, len(self.tasks)) == 1:
            return [call(task) for task in self.tasks]
        # LAPACK lets go of the interpreter, so threads do; its own threads would only compete.
        with one_blas_thread():
            run = joblib.Parallel(n_jobs=self.n_jobs, prefer="threads")
            return list(run(joblib.delayed(call)(task) for task in self.tasks))


def _row_scale(task: FisherProblem) -> Array:
    return np.ones(task.n) if task.row_scale is None else task.row_scale


def _unscaled(task: FisherProblem, values: Array) -> Array:
    return np.asarray(values / _row_scale(task))


def _curvature(point: Evaluation) -> Array:
    assert point.curvature is not None
    return point.curvature()

r"""Several Fisher problems with one vector of weights (Algorithm 2).

.. math:: F(b) = \sum_c F_c(b), \qquad u = \sum_c u^c
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import joblib
import numpy as np

from kernull._runtime import in_threads
from kernull._typing import Array
from kernull.mkl.problems.base import Evaluation
from kernull.mkl.problems.fisher import FisherProblem
from kernull.operators import BlockDiagonalStack

T = TypeVar("T")


class JointFisherProblem(FisherProblem):
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
    >>> from kernull import FisherProblem, KernelStack, LpBall, solve
    >>> stacks = [KernelStack(np.stack([np.eye(n), np.ones((n, n))])) for n in (3, 5)]
    >>> tasks = [FisherProblem(stack, 0.1) for stack in stacks]
    >>> joint = JointFisherProblem(tasks)
    >>> result = solve(joint, LpBall(2))
    >>> [a.shape for a in joint.split(result.coef)]
    [(3,), (5,)]
    """

    def __init__(self, tasks: Sequence[FisherProblem], n_jobs: int | None = None) -> None:
        if not tasks:
            raise ValueError("tasks: got none; expected at least one FisherProblem.")
        self.tasks = tuple(tasks)
        self._workers = joblib.effective_n_jobs(n_jobs)
        self.blocks = BlockDiagonalStack([task.stack for task in tasks])
        # With block-diagonal kernels, row i has the ridge 1 / weight i.
        scales = [_row_scale(task) for task in tasks]
        super().__init__(
            self.blocks,
            ridge=1.0,
            target=np.concatenate([t.target / s for t, s in zip(tasks, scales, strict=True)]),
            row_weight=np.concatenate([s**2 / t.ridge for t, s in zip(tasks, scales, strict=True)]),
        )
        self.factor_rows = max(task.n for task in tasks)  # they are factorised one by one

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at b: one factorisation per task, side by side."""
        weights = np.asarray(weights, dtype=float)
        points = self.each(lambda task: task.evaluate(weights))
        pairs = [*zip(self.tasks, points, strict=True)]
        scaled = [point.coef / _row_scale(task) for task, point in pairs]
        linear = sum(float(t.target @ a) for t, a in zip(self.tasks, scaled, strict=True))
        quadratic = sum(t.ridge * float(a @ a) for t, a in zip(self.tasks, scaled, strict=True))
        value = sum(point.value for point in points)
        u = np.sum([point.u for point in points], axis=0)

        def curvature() -> Array:
            M = -np.outer(u, u) / value
            for point in points:  # that of a task is 2 (M - uu'/F): the M add up
                assert point.curvature is not None
                M += 0.5 * point.curvature() + np.outer(point.u, point.u) / point.value
            return np.asarray(2.0 * M)

        def lower_bound(support: float) -> float:
            return linear * linear / (quadratic + support)

        coef = np.concatenate([point.coef for point in points])
        return Evaluation(weights, value, u, coef, lower_bound, curvature)

    def solutions(self, weights: Array) -> list[Array]:
        """Exact a(b) for every task, of shape (n_t,) each."""
        return self.each(lambda task: task.solution(weights))

    def split(self, coef: Array) -> list[Array]:
        """Coefficients of each task, of those of all tasks one after the other."""
        return [coef[rows] for rows in self.blocks.slices]

    def each(self, call: Callable[[FisherProblem], T]) -> list[T]:
        """Results of a call for every task, in order; in threads when ``n_jobs`` says so."""
        before = sum(task.n_evaluations for task in self.tasks)
        # Products release the interpreter lock, so threads serve.
        results = in_threads(call, self.tasks, self._workers)
        self.n_evaluations += sum(task.n_evaluations for task in self.tasks) - before
        return results


def _row_scale(task: FisherProblem) -> Array:
    return np.ones(task.n) if task.row_scale is None else task.row_scale

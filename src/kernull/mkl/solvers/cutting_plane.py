r"""Newton first, cutting planes where F turns out not to be smooth: for SVDD and one-class SVM.

Every inner solution a gives a plane below F, :math:`F(b) \ge -b'u(a)`. Where a kernel with all the
weight has low rank (a column with few distinct values), the inner solution is not unique, F has a
kink there, and the a that libsvm happens to return certifies nothing. The saddle point's a is a
*mixture* of several. So if Newton has not finished after a few steps, a linear programme over all
planes seen lends a hand:

.. math:: \max_{w \ge 0, 1'w = 1} \min_{b} \; -b' \sum_k w_k u(a_k)

Its value bounds the optimum from below, the mixture :math:`\bar a = \sum_k w_k a_k` does so even
better and is a plane of its own, and its minimiser b is where to look next, half-way from the
best point known (the in-out rule, which keeps cutting planes from jumping about).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linprog

from kernull._typing import Array
from kernull.errors import MissingCapabilityError
from kernull.mkl.problems import Evaluation, Problem
from kernull.mkl.solvers import newton
from kernull.mkl.solvers.base import Result, Run

#: Newton's steps at a time; where F is smooth it seldom needs more.
NEWTON_STEPS = 15
#: How far from the best point towards the programme's minimiser the next one lies.
STEP = 0.5
#: Cutting planes added before Newton has another try.
CUTTING_STEPS = 5


def solve(run: Run) -> Result:
    """Minimise F over a polyhedral set of weights; see the module's text.

    The problem's ``plane(a)`` is u(a), with F(b) >= -b'u(a) for all b >= 0.
    """
    ball, weights, max_iter = run.ball, run.weights, run.max_iter
    if not ball.polyhedral:
        raise MissingCapabilityError(
            f"solver='cutting-plane' needs weights on the simplex; on {ball!r} F is smooth: use "
            "solver='auto'."
        )
    planes = _Planes(run.problem, ball)
    while (left := max_iter - len(run.history)) > 0:
        first, steps = ball.normalise(weights), min(NEWTON_STEPS, left)
        inner = Run(
            planes, ball, first, steps, run.tol, run.callback, inner=True, history=run.history
        )
        result = newton.solve(inner)
        if result.converged:
            return result
        run.see(planes.certified(), step=False)  # there may be no step left
        for _ in range(min(CUTTING_STEPS, max_iter - len(run.history))):
            goal = planes.mix()
            if run.see(planes.certified()) <= run.tol:
                return run.result("cutting-plane")
            best = planes.best.weights
            planes.evaluate(best + STEP * (goal - best))
        weights = planes.best.weights
    return run.result("cutting-plane")


class _Planes(Problem):
    """The problem, with all planes below F seen so far, its best point and lower bound."""

    best: Evaluation

    def __init__(self, problem: Any, ball: Any) -> None:
        self.problem, self.ball = problem, ball
        self.J, self.precision = problem.J, problem.precision
        self.planes: list[Array] = []
        self.solutions: list[Array] = []
        self.lower = -np.inf

    def evaluate(self, weights: Array) -> Evaluation:
        point: Evaluation = self.problem.evaluate(weights)
        if not self.planes or point.value < self.best.value:
            self.best = point
        self._add(point.u, point.coef, point)
        return point

    def _add(self, u: Array, a: Array, point: Evaluation) -> None:
        self.planes.append(u)
        self.solutions.append(a)
        self.lower = max(self.lower, point.lower_bound(self.ball.support(u)))

    def mix(self) -> Array:
        """Solve the programme, add its mixture, and return where it would look next."""
        goal, mixture = _programme(np.array(self.planes))
        a = np.asarray(mixture @ np.array(self.solutions))
        self._add(self.problem.plane(a), a, self.best)
        return goal

    def certified(self) -> Evaluation:
        """The best point with the best lower bound, whatever its coefficients certify."""
        return replace(self.best, lower_bound=lambda _: self.lower)


def _programme(planes: Array) -> tuple[Array, Array]:
    """Minimiser b of max_k -b'u_k over the simplex, and the mixture of planes that proves it."""
    count, J = planes.shape
    scale = float(np.abs(planes).max()) or 1.0
    # Variables b and t: minimise t subject to -u_k'b - t <= 0, 1'b = 1.
    answer = linprog(
        np.append(np.zeros(J), 1.0),
        A_ub=np.column_stack([-planes / scale, -np.ones(count)]),
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(J), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * J + [(None, None)],
        method="highs",
    )
    mixture = np.maximum(-answer.ineqlin.marginals, 0.0)
    weights = np.maximum(answer.x[:J], 0.0)
    return weights / weights.sum(), mixture / mixture.sum()

"""Algorithm 1 with its weight step solved by cvxpy (extra ``cvxpy``): the paper's lp MK-FN-CVX.

    maximise b'u   subject to   b in the set of weights

has a closed form (the ball's oracle), so this is only a slower `paper`, kept because the paper
times it. It takes the same steps and inherits the same oscillations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernull._typing import Array
from kernull.balls.base import ConvexBall
from kernull.errors import need
from kernull.problems import Problem
from kernull.solvers.base import Result, Tracker
from kernull.solvers.paper import iterate


def solve(
    problem: Problem, ball: ConvexBall, tracker: Tracker, weights: Array, max_iter: int
) -> Result:
    """Iterate the weight step as a conic programme; see the module's text."""
    step = _weight_step(ball, problem.J)
    return iterate(problem, tracker, weights, max_iter, step, "paper-cvx")


def _weight_step(ball: ConvexBall, J: int) -> Callable[[Array], Array]:
    cvxpy = need("cvxpy", "solver='paper-cvx' needs cvxpy: pip install 'kernull[cvxpy]'.")
    b, direction = cvxpy.Variable(J), cvxpy.Parameter(J)
    constraints = ball.cvxpy_constraints(b)
    programme = cvxpy.Problem(cvxpy.Maximize(direction @ b), constraints)

    def step(u: Array) -> Array:
        direction.value = u / np.abs(u).max()  # only the direction matters
        programme.solve(solver=cvxpy.CLARABEL)
        return ball.normalise(np.maximum(np.asarray(b.value, dtype=float), 0.0))

    return step

"""Newton: minimise a quadratic model over the ball, with a line search on F. The default.

At every point the problem gives its gradient and curvature from one factorisation; the ball
minimises the quadratic model exactly; a backtracking line search on F makes the method globally
convergent, and the certificate ends it. Two refinements:

- Where the ball is round enough (p >= 2) the paper's step is tried first and kept as long as
  it cuts the gap tenfold: it is Newton's equal there, and needs no curvature.
- On polyhedral balls a model step may throw away a weight that is needed after all, and winning
  it back takes many steps. So a step keeps a share of the old weights that vanishes with the gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.errors import MissingCapabilityError
from kernull.mkl.problems import Evaluation, Problem
from kernull.mkl.solvers.base import Result, Run

#: An oracle step must cut the gap by this factor to be followed by another.
ORACLE_CUT = 0.1
#: From this exponent on the oracle's step is a contraction more often than not (always for p >= 3).
ORACLE_P = 2.0


def solve(run: Run) -> Result:
    """Minimise F over the ball; see the module's text."""
    problem, ball = run.problem, run.ball
    point = problem.evaluate(run.weights)
    use_oracle = ball.exponent >= ORACLE_P
    last_gap = np.inf
    for _ in range(run.max_iter):
        gap = run.see(point)
        if gap <= run.tol:
            break
        use_oracle = use_oracle and gap <= ORACLE_CUT * last_gap
        last_gap = gap
        if use_oracle:
            goal, step = ball.oracle(point.u), 1.0
        else:
            slack = 0.05 * (ball.support(point.u) - float(point.weights @ point.u))
            if point.curvature is None:
                raise MissingCapabilityError("solver='newton' needs a problem's curvature.")
            goal = ball.minimise_model(point.u, point.curvature(), point.weights, slack)
            step = 1.0 - min(0.1, 0.3 * gap**0.5) if ball.polyhedral else 1.0
        moved = _backtrack(problem, ball, point, goal, step)
        if moved is None:  # no descent to be had beyond rounding
            break
        point = moved
    return run.result("newton")


def _backtrack(
    problem: Problem, ball: Any, point: Evaluation, goal: Array, step: float
) -> Evaluation | None:
    """First point from ``goal`` back towards ``point`` where F is not higher."""
    for _ in range(40):
        weights = goal if step == 1.0 else point.weights + step * (goal - point.weights)
        if step != 1.0:  # F falls in every weight: chords of the sphere are pushed out to it
            weights = ball.normalise(weights)
        trial = problem.evaluate(weights)
        if trial.value <= point.value + problem.precision * abs(point.value):
            return trial
        step *= 0.5
    return None

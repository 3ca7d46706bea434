"""Frank-Wolfe with a line search, and away steps on polyhedral sets.

The direction is to the oracle's point, or, on a set with vertices, away from the worst vertex in
use when that promises more: plain Frank-Wolfe zig-zags between vertices for ever. Needs nothing
of a problem but value and gradient, so it serves every problem.
"""

from __future__ import annotations

import numpy as np

from kernull._typing import Array
from kernull.mkl.balls import Ball
from kernull.mkl.problems import Evaluation, Problem
from kernull.mkl.solvers.base import Result, Run, not_higher

#: The line search ends when the slope has fallen to this share of that at the start.
SLOPE_CUT = 0.05


def solve(run: Run) -> Result:
    """Minimise F over the ball; see the module's text."""
    point = run.problem.evaluate(run.weights)
    for _ in range(run.max_iter):
        if run.see(point) <= run.tol:
            break
        direction, longest = _direction(point, run.ball)
        moved = _line_search(run.problem, point, direction, longest)
        if moved is None:
            break
        point = moved
    return run.result("frank-wolfe")


def _direction(point: Evaluation, ball: Ball) -> tuple[Array, float]:
    """Steepest of the forward and the away direction, and how far it may be followed."""
    b, u = point.weights, point.u
    forward = ball.oracle(u) - b
    if not ball.polyhedral:
        return forward, 1.0
    used = np.flatnonzero(b > 0)
    worst = used[np.argmin(u[used])]
    away = b.copy()
    away[worst] -= 1.0
    if forward @ u >= away @ u or b[worst] >= 1.0:
        return forward, 1.0
    return away, float(b[worst] / (1.0 - b[worst]))


def _line_search(
    problem: Problem, point: Evaluation, direction: Array, longest: float
) -> Evaluation | None:
    """Minimise the convex F along the direction: a zero of its slope by regula falsi."""

    def at(step: float) -> Evaluation:
        return problem.evaluate(np.maximum(point.weights + step * direction, 0.0))

    def slope(e: Evaluation) -> float:
        return -float(e.u @ direction)

    low, slope_low, high, best = 0.0, slope(point), longest, at(longest)
    slope_high = slope(best)
    target = SLOPE_CUT * abs(slope_low)
    for _ in range(40):
        if slope_high <= 0 or abs(slope(best)) <= target:
            break
        middle = (low * slope_high - high * slope_low) / (slope_high - slope_low)
        # Regula falsi may creep along one end; keep well inside the bracket.
        middle = min(max(middle, low + 0.05 * (high - low)), high - 0.05 * (high - low))
        best = at(middle)
        if slope(best) > 0:
            high, slope_high = middle, slope(best)
        else:
            low, slope_low = middle, slope(best)
    return best if not_higher(problem, best, point) else None

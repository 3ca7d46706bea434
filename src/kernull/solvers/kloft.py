"""Kloft's update: b_j proportional to (b_j^2 u_j)^(1/(p+1)).

In logarithms it is Algorithm 1 damped by (p - 1)/(p + 1). It minimises a majoriser of F, so F
never rises; near p = 1 it needs hundreds of iterations.
"""

from __future__ import annotations

from collections.abc import Callable

from kernull._typing import Array
from kernull.balls.base import KloftBall
from kernull.problems import Problem
from kernull.solvers.base import Record, Result, Tracker, starting_weights

__all__ = ["solve"]


def solve(
    problem: Problem,
    ball: KloftBall,
    *,
    tol: float,
    max_iter: int,
    init: Array | None = None,
    callback: Callable[[Record], None] | None = None,
) -> Result:
    """Iterate the ball's ``kloft`` update; see the module's text."""
    start = problem.n_evaluations
    tracker = Tracker(ball, tol, callback)
    weights = starting_weights(ball, problem.J, init)
    for _ in range(max_iter):
        point = problem.evaluate(weights)
        if tracker.see(point) <= tol:
            break
        weights = ball.kloft(point.u, weights)
    return tracker.result("kloft", problem.n_evaluations - start)

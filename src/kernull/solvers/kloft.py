"""Kloft's update: b_j proportional to (b_j^2 u_j)^(1/(p+1)).

In logarithms it is Algorithm 1 damped by (p - 1)/(p + 1). It minimises a majoriser of F, so F
never rises; near p = 1 it needs hundreds of iterations.
"""

from __future__ import annotations

from typing import Any

from kernull._typing import Array
from kernull.problems import Problem
from kernull.solvers.base import Result, Tracker


def solve(problem: Problem, ball: Any, tracker: Tracker, weights: Array, max_iter: int) -> Result:
    """Iterate the ball's ``kloft`` update; see the module's text."""
    for _ in range(max_iter):
        point = problem.evaluate(weights)
        if tracker.see(point) <= tracker.tol:
            break
        weights = ball.kloft(point.u, weights)
    return tracker.result("kloft")

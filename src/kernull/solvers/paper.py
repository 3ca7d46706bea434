"""Algorithm 1 as printed: Frank-Wolfe with step 1.

    a = (rho I + K_b)^-1 1,   u_j = a'K_j a,   b = u^(1/(p-1)) / ||u^(1/(p-1))||_p

It converges for p >= 3 and oscillates for ever on much of the paper's own grid below 2; nothing
here hides that: it stops on the gap, on a cycle or on the iteration limit, returns the best point
it saw and warns with the gap it left. At p = 1 it gives one kernel all the weight, as the paper
says; the optimum is a mixture.
"""

from __future__ import annotations

from collections.abc import Callable

from kernull._typing import Array
from kernull.balls import Ball
from kernull.problems import Problem
from kernull.solvers.base import Result, Tracker


def solve(problem: Problem, ball: Ball, tracker: Tracker, weights: Array, max_iter: int) -> Result:
    """Iterate the ball's oracle; see the module's text."""
    return iterate(problem, tracker, weights, max_iter, ball.oracle, "paper")


def iterate(
    problem: Problem,
    tracker: Tracker,
    weights: Array,
    max_iter: int,
    step: Callable[[Array], Array],
    name: str,
) -> Result:
    """Algorithm 1 with a given weight step u -> b."""
    seen: set[bytes] = set()
    for _ in range(max_iter):
        seen.add(weights.tobytes())
        point = problem.evaluate(weights)
        if tracker.see(point) <= tracker.tol:
            break
        new = step(point.u)
        if new.tobytes() in seen:  # a fixed point or a cycle: only what was seen comes back
            break
        weights = new
    return tracker.result(name, advice=_advice(tracker))


def _advice(tracker: Tracker) -> str:
    """More iterations help only where the gap still falls."""
    gaps = [record.gap for record in tracker.history]
    half = len(gaps) // 2
    if half and min(gaps[half:]) < 0.5 * min(gaps[:half]):
        return "Its gap still falls: raise max_iter, or use solver='auto'."
    return (
        "Its gap no longer falls: Algorithm 1 oscillates for ever on some problems, and more "
        "iterations will not help. Use solver='auto', or a larger p."
    )

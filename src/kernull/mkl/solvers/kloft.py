"""Kloft's update: b_j proportional to (b_j^2 u_j)^(1/(p+1)).

In logarithms it is Algorithm 1 damped by (p - 1)/(p + 1). It minimises a majoriser of F, so F
never rises; near p = 1 it needs hundreds of iterations.
"""

from __future__ import annotations

from kernull.mkl.solvers.base import Result, Run


def solve(run: Run) -> Result:
    """Iterate the ball's ``kloft`` update; see the module's text."""
    weights = run.weights
    for _ in range(run.max_iter):
        point = run.problem.evaluate(weights)
        if run.see(point) <= run.tol:
            break
        weights = run.ball.kloft(point.u, weights)
    return run.result("kloft")

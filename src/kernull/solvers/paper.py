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
from kernull.solvers.base import Result, Run


def solve(run: Run) -> Result:
    """Iterate the ball's oracle; see the module's text."""
    return iterate(run, run.ball.oracle, "paper")


def iterate(run: Run, step: Callable[[Array], Array], name: str) -> Result:
    """Algorithm 1 with a given weight step u -> b."""
    weights, seen = run.weights, set[bytes]()
    for _ in range(run.max_iter):
        seen.add(weights.tobytes())
        point = run.problem.evaluate(weights)
        if run.see(point) <= run.tol:
            break
        new = step(point.u)
        if new.tobytes() in seen:  # a fixed point or a cycle: only what was seen comes back
            break
        weights = new
    return run.result(name, advice=_advice(run))


def _advice(run: Run) -> str:
    """More iterations help only where the gap still falls."""
    gaps = [record.gap for record in run.history]
    half = len(gaps) // 2
    if half and min(gaps[half:]) < 0.5 * min(gaps[:half]):
        return "Its gap still falls: raise max_iter, or use solver='auto'."
    return (
        "Its gap no longer falls: Algorithm 1 oscillates for ever on some problems, and more "
        "iterations will not help. Use solver='auto', or a larger p."
    )

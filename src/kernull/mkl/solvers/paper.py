r"""Updates of the weights in closed form: Algorithm 1 as printed, with cvxpy, and Kloft's.

Algorithm 1 is Frank-Wolfe with step 1:

.. math::

   a = (\rho I + K_b)^{-1} t, \qquad u_j = a'K_j a, \qquad
   b = u^{1/(p-1)} / \|u^{1/(p-1)}\|_p

It starts at the uniform weights of unit norm, :math:`b_j = J^{-1/p}`, stops when the relative
change :math:`\|a - a_{\mathrm{old}}\|_2 / \|a\|_2` is at most ``tol``, or after ``max_iter``
updates of the weights, and returns the **last** iterate. At p = 1 the update gives one kernel all
the weight: the largest :math:`u_j`, the first of equal ones.

It converges for p >= 3. For p near 1 it ends in a cycle on much of the paper's grid, and which
member of the cycle is returned is then a matter of ``max_iter``. Its result has the visited point
of lowest objective, the period of the cycle and all iterates too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kernull._typing import Array
from kernull.errors import need
from kernull.mkl.problems import Evaluation
from kernull.mkl.solvers.base import Result, Run

#: Iterates repeat where they return to within this share of how far they move in between. On the
#: paper's grid, after 200 steps, cycles return to within 2e-4 and other runs miss by 6e-3 or more.
RETURN = 1e-3
#: Moves of the weights below this are rounding (of weights of unit norm).
STANDSTILL = 1e-9


class Visited(NamedTuple):
    """A point that the iteration visited."""

    weights: Array
    """b, of shape (J,)."""
    coef: Array
    """a(b), of shape (n,)."""
    value: float
    """F(b)."""
    gap: float
    """Certified relative gap."""


@dataclass(frozen=True, kw_only=True)
class PrintedResult(Result):
    """The last iterate of Algorithm 1, as any `Result`, and what it visited on the way.

    Attributes
    ----------
    best : Visited
        The visited point of lowest objective: its weights, coefficients, value and gap.
    cycle : int
        Period of the cycle in which it ended; 0 where there is none.
    iterates : array of shape (n_iter + 1, J)
        Weights of all iterates, the start included.
    """

    best: Visited = field(repr=False)
    cycle: int
    iterates: Array = field(repr=False)


def solve(run: Run, stop_at_gap: bool = False) -> PrintedResult:
    """Algorithm 1: iterate the ball's oracle.

    With ``stop_at_gap`` it also ends at the first iterate whose certified gap is at most ``tol``,
    to be timed against solvers that do.
    """
    return _iterate(run, run.ball.oracle, "paper", stop_at_gap=stop_at_gap)


def solve_by_cvxpy(run: Run) -> PrintedResult:
    """Algorithm 1 with its weight step, max b'u over the ball, solved by cvxpy: lp MK-FN-CVX.

    The step has a closed form, the ball's oracle, so this is only slower; it is here because the
    paper times it. A conic solver gives b to about 1e-4, so that a may never settle to ``tol``: it
    also ends at a certified gap of ``tol``.
    """
    cvxpy = need("cvxpy", "solver='paper-cvx' needs cvxpy: pip install 'kernull[cvxpy]'.")
    b, direction = cvxpy.Variable(run.problem.J), cvxpy.Parameter(run.problem.J)
    programme = cvxpy.Problem(cvxpy.Maximize(direction @ b), run.ball.cvxpy_constraints(b))

    def step(u: Array) -> Array:
        direction.value = u / np.abs(u).max()  # only the direction matters
        programme.solve(solver=cvxpy.CLARABEL)
        return np.asarray(run.ball.normalise(np.maximum(np.asarray(b.value, dtype=float), 0.0)))

    return _iterate(run, step, "paper-cvx", stop_at_gap=True)


def solve_by_kloft(run: Run) -> Result:
    """Kloft's update: b_j proportional to (b_j^2 u_j)^(1/(p+1)).

    In logarithms it is Algorithm 1 damped by (p - 1)/(p + 1). It minimises a majoriser of F, so F
    never rises; near p = 1 it needs hundreds of iterations.
    """
    weights = run.weights
    for _ in range(run.max_iter):
        point = run.problem.evaluate(weights)
        if run.see(point) <= run.tol:
            break
        weights = run.ball.kloft(point.u, weights)
    return run.result("kloft")


def _iterate(
    run: Run, step: Callable[[Array], Array], name: str, *, stop_at_gap: bool
) -> PrintedResult:
    """Algorithm 1 with the weight step u -> b."""
    visited: dict[bytes, Evaluation] = {}  # a cycle visits the same points again and again

    def visit(weights: Array) -> Evaluation:
        key = weights.tobytes()
        if key not in visited:  # without the curvature, which keeps a factor of n x n
            visited[key] = replace(run.problem.evaluate(weights), curvature=None)
        return visited[key]

    point = visit(run.weights)
    gap, iterates = run.see(point), [run.weights]
    for _ in range(run.max_iter):
        if stop_at_gap and gap <= run.tol:
            break
        point = visit(step(point.u))
        gap = run.see(point)
        iterates.append(point.weights)
        if run.history[-1].change <= run.tol * float(np.linalg.norm(point.coef)):
            break
    best = run.best
    assert best is not None
    lowest = Visited(best.weights, best.coef, float(best.value), float(run.best_gap))
    run.best, run.best_gap = point, gap  # the last one is the result
    B = np.array(iterates)
    cycle = _period(B)
    advice = _advice([record.gap for record in run.history], cycle, lowest.gap)
    result = run.result(name, advice=advice, n_iter=len(B) - 1)
    return PrintedResult(**vars(result), best=lowest, cycle=cycle, iterates=B)


def _period(iterates: Array) -> int:
    """Period of the cycle in which iterates end, of shape (k, J); 0 where they do not repeat.

    The smallest P >= 2 for which each of the last P iterates is the one P before it.

    Examples
    --------
    >>> _period(np.array([[0.5, 0.5], [1, 0], [0, 1], [1, 0], [0, 1]]))
    2
    >>> _period(np.array([[1.0], [0.5], [0.25], [0.125], [0.0625]]))
    0
    """
    moves = np.abs(np.diff(iterates, axis=0)).max(axis=1)
    for P in range(2, len(iterates) // 2 + 1):
        returns = np.abs(iterates[-P:] - iterates[-2 * P : -P]).max()
        moved = moves[-P:].max()
        if moved > STANDSTILL and returns <= RETURN * moved:
            return P
    return 0


def _advice(gaps: list[float], cycle: int, best_gap: float) -> str:
    """More iterations help only where it does not cycle and the gap still falls."""
    half = len(gaps) // 2
    if not cycle and half and min(gaps[half:]) < 0.5 * min(gaps[:half]):
        return "Its gap still falls: raise max_iter, or use solver='auto'."
    best = f"the best point that it visited leaves {best_gap:.2g}"
    if cycle:
        return (
            f"It cycles with period {cycle}, so that more iterations will not help, and max_iter "
            f"decides which point of the cycle is the last; {best}. Use solver='auto', or a "
            "larger p."
        )
    return (
        f"Its gap no longer falls, and no cycle was found among its iterates; {best}. Use "
        "solver='auto', or a larger p."
    )

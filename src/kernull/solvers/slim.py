r"""A weight search that favours tight descriptions, those with many support vectors.

.. math::

   \min_b \; F(b) - \lambda\, |F(b_0)|\, n_{\mathrm{eff}}(b), \qquad
   n_{\mathrm{eff}} = \frac{1}{n \sum_i a_i^2}

with b_0 the uniform weights and n_eff, in (0, 1], the share of effective support vectors of the
inner solution a (which sums to one).

This objective is ours. Loosli and Aboubacar (2016) introduced "slim" multiple-kernel SVDD and
one-class SVM as a search that prefers solutions with many support vectors; their exact objective
could not be found, so this is one that does what they describe. Directions are Newton's on F
alone, only the line search looks at the whole objective, so the search walks from the uniform
weights towards the optimum of F and stops where going on would cost support vectors. A lambda of
zero is the plain method; a large one leaves the weights uniform. The gap reported is that of F:
how far slimming led away from the plain optimum.
"""

from __future__ import annotations

from dataclasses import replace

from sklearn.exceptions import ConvergenceWarning

from kernull._quiet import warn
from kernull._typing import Array
from kernull.balls.base import QuadraticBall
from kernull.errors import MissingCapabilityError
from kernull.problems import Evaluation, Problem
from kernull.solvers import newton
from kernull.solvers.base import Result, Tracker

#: Steps that the line search looks at, as shares of the way to the model's minimiser.
STEPS = tuple(0.5**k for k in range(8))


def effective_share(a: Array) -> float:
    """n_eff = 1 / (n sum a_i^2) for coefficients that sum to one: 1 where all are equal."""
    return 1.0 / (len(a) * float(a @ a))


def solve(
    problem: Problem,
    ball: QuadraticBall,
    tracker: Tracker,
    weights: Array,
    max_iter: int,
    slim_lambda: float = 0.3,
) -> Result:
    """Descend the slim objective from the uniform weights; see the module's text."""
    if slim_lambda == 0:
        return newton.solve(problem, ball, tracker, weights, max_iter)
    tol = tracker.tol
    point = problem.evaluate(weights)
    price = slim_lambda * abs(point.value)

    def objective(e: Evaluation) -> float:
        return float(e.value) - price * effective_share(e.coef)

    stopped = True
    for _ in range(max_iter):
        if tracker.see(point) <= tol:
            break
        trials = [problem.evaluate(b) for b in _candidates(point, ball)]
        best = min(trials, key=objective)
        if objective(best) >= objective(point) - tol * price:
            break
        point = best
    else:
        stopped = False
        tracker.see(point)
        warn(
            f"solver='slim' stopped after {max_iter} iterations while its objective was still "
            "falling. Raise max_iter.",
            ConvergenceWarning,
            stacklevel=2,
        )
    tracker.best, tracker.best_gap = point, tracker.history[-1].gap  # best by this objective
    return replace(tracker.result("slim", warn=False), converged=stopped)


def _candidates(point: Evaluation, ball: QuadraticBall) -> list[Array]:
    if point.curvature is None:
        raise MissingCapabilityError("solver='slim' needs a problem that gives its curvature.")
    goal: Array = ball.minimise_model(point.u, point.curvature(), point.weights)
    return [ball.normalise(point.weights + step * (goal - point.weights)) for step in STEPS]

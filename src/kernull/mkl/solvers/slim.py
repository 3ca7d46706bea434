r"""A weight search that favours tight descriptions, those with many support vectors.

.. math::

   \min_b \; F(b) - \lambda\, |F(b_0)|\, n_{\mathrm{eff}}(b), \qquad
   n_{\mathrm{eff}} = \frac{1}{n \sum_i a_i^2}

with b_0 the uniform weights and n_eff, in (0, 1], the share of effective support vectors of the
inner solution a (which sums to one).

This objective is ours. Loosli and Aboubacar, *Using SVDD in SimpleMKL for 3D-Shapes Filtering*
(2016; arXiv:1712.02658, hal-01593595), introduced "slim" multiple-kernel SVDD and one-class SVM as
a search that prefers tight solutions, those with many support vectors. Their objective is another;
this one does what they describe. Directions are Newton's on F
alone, only the line search looks at the whole objective, so the search walks from the uniform
weights towards the optimum of F and stops where going on would cost support vectors. A lambda of
zero is the plain method; a large one leaves the weights uniform. The gap reported is that of F:
how far slimming led away from the plain optimum.
"""

from __future__ import annotations

from dataclasses import replace

from sklearn.exceptions import ConvergenceWarning

from kernull._typing import Array
from kernull.errors import warn
from kernull.mkl.problems import Evaluation
from kernull.mkl.solvers import newton
from kernull.mkl.solvers.base import Result, Run

#: Steps that the line search looks at, as shares of the way to the model's minimiser.
LINE_STEPS = tuple(0.5**k for k in range(8))


def effective_share(a: Array) -> float:
    """n_eff = 1 / (n sum a_i^2) for coefficients that sum to one: 1 where all are equal."""
    return 1.0 / (len(a) * float(a @ a))


def solve(run: Run, slim_lambda: float = 0.3) -> Result:
    """Descend the slim objective from the uniform weights; see the module's text."""
    if slim_lambda == 0:
        return newton.solve(run)
    problem, ball, tol = run.problem, run.ball, run.tol
    point, stopped = problem.evaluate(run.weights), True
    price: float = slim_lambda * abs(point.value)

    def objective(e: Evaluation) -> float:
        return float(e.value) - price * effective_share(e.coef)

    for _ in range(run.max_iter):
        if run.see(point) <= tol:
            break
        assert point.curvature is not None
        way = ball.minimise_model(point.u, point.curvature(), point.weights) - point.weights
        trials = [problem.evaluate(ball.normalise(point.weights + s * way)) for s in LINE_STEPS]
        best = min(trials, key=objective)
        if objective(best) >= objective(point) - tol * price:
            break
        point = best
    else:
        stopped = False
        run.see(point)
        warn(
            f"solver='slim' stopped after {run.max_iter} iterations while its objective was still "
            "falling. Raise max_iter.",
            ConvergenceWarning,
            stacklevel=2,
        )
    # The best by this objective; its gap is that of another one, and no reason to warn.
    run.best, run.best_gap, run.inner = point, run.history[-1].gap, True
    return replace(run.result("slim"), converged=stopped)

"""Algorithm 1 with its weight step solved by cvxpy (extra ``cvxpy``): the paper's lp MK-FN-CVX.

    maximise b'u   subject to   b in the set of weights

has a closed form (the ball's oracle), so this is only a slower `paper`, kept because the paper
times it. It takes the same steps, inherits the same cycles and returns its last iterate too. A
conic solver gives b to about 1e-4, so that a may never settle to ``tol``: it also stops at a
certified gap of ``tol``.
"""

from __future__ import annotations

import numpy as np

from kernull._typing import Array
from kernull.errors import need
from kernull.mkl.solvers.base import Run
from kernull.mkl.solvers.paper import PrintedResult, iterate


def solve(run: Run) -> PrintedResult:
    """Iterate the weight step as a conic programme; see the module's text."""
    cvxpy = need("cvxpy", "solver='paper-cvx' needs cvxpy: pip install 'kernull[cvxpy]'.")
    b, direction = cvxpy.Variable(run.problem.J), cvxpy.Parameter(run.problem.J)
    programme = cvxpy.Problem(cvxpy.Maximize(direction @ b), run.ball.cvxpy_constraints(b))

    def step(u: Array) -> Array:
        direction.value = u / np.abs(u).max()  # only the direction matters
        programme.solve(solver=cvxpy.CLARABEL)
        return np.asarray(run.ball.normalise(np.maximum(np.asarray(b.value, dtype=float), 0.0)))

    return iterate(run, step, "paper-cvx", stop_at_gap=True)

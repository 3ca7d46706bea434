"""The whole programme at once by cvxpy, for any ball: an oracle that is passed as a solver.

    maximise 2a't - rho a'a - s   subject to   ||(a'K_1 a, ..., a'K_J a)||_q <= s

written in the weights and the squared norms N_j of the parts of the solution in each kernel:

    minimise sum_j N_j / b_j + ||t - sum_j L_j v_j||^2 / rho,   N_j = ||v_j||^2,  K_j = L_j L_j'
"""

from __future__ import annotations

import numpy as np
import pytest


def solve(run):
    """Hand the programme to a conic solver, which has no use for a start; certify its answer."""
    problem, ball = run.problem, run.ball
    cvxpy = pytest.importorskip("cvxpy")
    identity = np.eye(problem.n)
    kernels = problem.products(identity)  # (J, n, n), scaled rows included
    b = cvxpy.Variable(problem.J)
    parts, penalties = [], []
    for j, K in enumerate(kernels):
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        keep = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
        if not keep.any():
            continue
        root = vectors[:, keep] * np.sqrt(values[keep])
        v = cvxpy.Variable(root.shape[1])
        parts.append(root @ v)
        penalties.append(cvxpy.quad_over_lin(v, b[j]))
    residual = problem.target - sum(parts)
    objective = sum(penalties) + cvxpy.sum_squares(residual) / problem.ridge
    programme = cvxpy.Problem(cvxpy.Minimize(objective), ball.cvxpy_constraints(b))
    programme.solve(solver=cvxpy.CLARABEL, max_iter=run.max_iter)
    weights = ball.normalise(np.maximum(np.asarray(b.value, dtype=float), 0.0))
    run.see(problem.evaluate(weights))
    return run.result("conic")

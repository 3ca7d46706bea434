"""Gradient ascent on the dual: maximise D(a) = 2a't - rho a'a - h(u(a)) (supplement V).

The paper's lp MK-FN-Grad, with a backtracking step that doubles after every success so that no
step size has to be guessed. The gradient is 2 (t - rho a - K_b a) with b the ball's oracle at u.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from kernull._typing import Array
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers.base import Result, Run

#: Steps of conjugate gradients spent on the coefficients that belong to given weights.
START_STEPS = 30


def solve(run: Run) -> Result:
    """Ascend the dual; see the module's text."""
    problem, ball, weights = run.problem, run.ball, run.weights
    target, rho = problem.target, problem.ridge
    is_uniform = np.array_equal(weights, ball.uniform(problem.J))
    a = _start(problem, weights, 0 if is_uniform else START_STEPS)
    Ka = problem.products(a)

    def dual(a: Array, Ka: Array) -> float:
        return float(2 * target @ a - rho * a @ a) - float(ball.support(Ka @ a))

    value, step = dual(a, Ka), 1.0 / rho
    for _ in range(run.max_iter):
        weights = ball.oracle(Ka @ a)
        if run.see(problem.certify(weights, a, Ka)) <= run.tol:
            break
        gradient = 2.0 * (target - rho * a - weights @ Ka)
        norm2 = float(gradient @ gradient)
        K_gradient = problem.products(gradient)
        while step * norm2 > 1e-18 * abs(value):
            trial, K_trial = a + step * gradient, Ka + step * K_gradient
            new = dual(trial, K_trial)
            if new >= value + 0.3 * step * norm2:
                break
            step *= 0.5
        else:  # no ascent beyond rounding: h is not smooth here (p = 1)
            break
        a, Ka, value, step = trial, K_trial, new, 2.0 * step
        if not np.isfinite(value):
            break
    return run.result("gradient")


def _start(problem: FisherProblem, weights: Array, steps: int) -> Array:
    """Coefficients near a(b) for weights b: the best multiple of t, then a few CG steps."""
    target, rho = problem.target, problem.ridge

    def apply(a: Array) -> Array:
        return np.asarray(rho * a + weights @ problem.products(np.ravel(a)))

    a: Array = float(target @ target) / float(target @ apply(target)) * target
    if steps:
        operator = LinearOperator((len(a), len(a)), matvec=apply, dtype=np.float64)
        a = cg(operator, target, x0=a, maxiter=steps)[0]
    return a

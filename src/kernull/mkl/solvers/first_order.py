"""Solvers that need gradients alone: Frank-Wolfe in the weights, ascent in the coefficients."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from kernull._typing import Array
from kernull.mkl.balls import Ball
from kernull.mkl.problems import Evaluation, FisherProblem, Problem
from kernull.mkl.solvers.base import Result, Run

#: The line search ends when the slope has fallen to this share of that at the start.
SLOPE_CUT = 0.05
#: Steps of conjugate gradients spent on the coefficients that belong to given weights.
START_STEPS = 30


def frank_wolfe(run: Run) -> Result:
    """Frank-Wolfe with a line search, and away steps on polyhedral sets.

    The direction is to the oracle's point, or, on a set with vertices, away from the worst vertex
    in use where that promises more: plain Frank-Wolfe zig-zags between vertices for ever. Needs
    nothing of a problem but value and gradient, so it serves every problem.
    """
    point = run.problem.evaluate(run.weights)
    for _ in range(run.max_iter):
        if run.see(point) <= run.tol:
            break
        direction, longest = _direction(point, run.ball)
        moved = _line_search(run.problem, point, direction, longest)
        if moved is None:
            break
        point = moved
    return run.result("frank-wolfe")


def _direction(point: Evaluation, ball: Ball) -> tuple[Array, float]:
    """Steepest of the forward and the away direction, and how far it may be followed."""
    b, u = point.weights, point.u
    forward = ball.oracle(u) - b
    if not ball.polyhedral:
        return forward, 1.0
    used = np.flatnonzero(b > 0)
    worst = used[np.argmin(u[used])]
    away = b.copy()
    away[worst] -= 1.0
    if forward @ u >= away @ u or b[worst] >= 1.0:
        return forward, 1.0
    return away, float(b[worst] / (1.0 - b[worst]))


def _line_search(
    problem: Problem, point: Evaluation, direction: Array, longest: float
) -> Evaluation | None:
    """Minimise the convex F along the direction: a zero of its slope by regula falsi."""

    def at(step: float) -> Evaluation:
        return problem.evaluate(np.maximum(point.weights + step * direction, 0.0))

    def slope(e: Evaluation) -> float:
        return -float(e.u @ direction)

    low, slope_low, high, best = 0.0, slope(point), longest, at(longest)
    slope_high = slope(best)
    target = SLOPE_CUT * abs(slope_low)
    for _ in range(40):
        if slope_high <= 0 or abs(slope(best)) <= target:
            break
        middle = (low * slope_high - high * slope_low) / (slope_high - slope_low)
        # Regula falsi may creep along one end; keep well inside the bracket.
        middle = min(max(middle, low + 0.05 * (high - low)), high - 0.05 * (high - low))
        best = at(middle)
        if slope(best) > 0:
            high, slope_high = middle, slope(best)
        else:
            low, slope_low = middle, slope(best)
    not_higher = best.value <= point.value + problem.precision * abs(point.value)
    return best if not_higher else None


def dual_ascent(run: Run) -> Result:
    """Gradient ascent on the dual D(a) = 2a't - rho a'a - h(u(a)): the paper's lp MK-FN-Grad.

    Supplement V, with a backtracking step that doubles after every success, so that no step size
    has to be guessed. The gradient is 2 (t - rho a - K_b a) with b the ball's oracle at u.
    """
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
        slope = 2.0 * (target - rho * a - weights @ Ka)
        norm2 = float(slope @ slope)
        K_slope = problem.products(slope)
        while step * norm2 > 1e-18 * abs(value):
            trial, K_trial = a + step * slope, Ka + step * K_slope
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

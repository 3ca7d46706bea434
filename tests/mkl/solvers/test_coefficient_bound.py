"""How far coefficients may lie from the optimum, as docs/reference/maths.md says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull import FisherProblem, LpBall, solve
from kernull.operators import DenseStack


def problem(seed, n=12, J=3):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(J, n, 4))
    return np.einsum("jik,jlk->jil", roots, roots) / 4


def dual(K, delta, p, a):
    """D(a) = 2 a'1 - delta a'a - ||u||_q, and u, by plain loops."""
    u = np.array([a @ Kj @ a for Kj in K])
    norm = u.max() if p == 1 else (u ** (p / (p - 1))).sum() ** ((p - 1) / p)
    return 2 * a.sum() - delta * a @ a - norm, u


@given(seed=st.integers(0, 10**6), p=st.sampled_from([1.0, 4 / 3, 2.0, 4.0]), size=st.floats(0, 2))
@settings(max_examples=40, deadline=None)
def test_the_dual_value_bounds_the_distance_to_the_optimum(seed, p, size):
    K, delta = problem(seed), 0.7
    best = solve(FisherProblem(DenseStack(K), delta), LpBall(p), tol=1e-12)
    rng = np.random.default_rng(seed + 1)
    a = best.coef + size * rng.normal(size=len(best.coef))
    upper = float(
        np.linalg.solve(delta * np.eye(12) + np.tensordot(best.weights, K, 1), np.ones(12)).sum()
    )
    value, _ = dual(K, delta, p, a)
    assert delta * ((a - best.coef) ** 2).sum() <= upper - value + 1e-6


def test_the_certificate_itself_does_not():
    """U - L is zero at twice the optimum, whose distance is not."""
    K, delta, p = problem(0), 0.7, 2.0
    best = solve(FisherProblem(DenseStack(K), delta), LpBall(p), tol=1e-12)
    a = 2 * best.coef
    _, u = dual(K, delta, p, a)
    lower = a.sum() ** 2 / (delta * a @ a + np.sqrt((u**2).sum()))
    assert lower == pytest.approx(best.value, rel=1e-6)
    assert delta * ((a - best.coef) ** 2).sum() > 0.1 * best.value

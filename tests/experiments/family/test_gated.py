"""Gated kernels by plain loops, and the localised problem by cvxpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from experiments.family.gated import gate, soft_memberships
from kernull.mkl.balls import LpBall, MixedBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack

# The oracle says so of its last digits; the comparison asks for fewer.
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")


def views(seed, n=14, J=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, J))
    stack = DenseStack(np.stack([rbf_kernel(X[:, [j]]) for j in range(J)]))
    return X, stack, soft_memberships(X, X[:3], 0.8)


@given(seed=st.integers(0, 10**6), width=st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_memberships_by_the_formula(seed, width):
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(6, 2)), rng.normal(size=(3, 2))
    g = soft_memberships(X, C, width)
    np.testing.assert_allclose((g**2).sum(axis=1), 1.0)
    for i in range(6):
        d2 = [((X[i] - c) ** 2).sum() for c in C]
        share = np.array([np.exp(-(d - min(d2)) / (2 * width**2)) for d in d2])
        np.testing.assert_allclose(g[i] ** 2, share / share.sum(), atol=1e-12)


def test_gated_kernels_by_loops():
    _, stack, g = views(0)
    stack = DenseStack(stack.kernels, scale=np.array([2.0, 0.5]))
    gated = gate(stack, g)
    J, n, L = stack.J, stack.n, g.shape[1]
    for j in range(J):
        for el in range(L):
            expected = np.array(
                [[g[i, el] * stack.kernels[j, i, k] * g[k, el] for k in range(n)] for i in range(n)]
            )
            np.testing.assert_allclose(gated.kernels[j * L + el], expected)
            assert gated.scale[j * L + el] == stack.scale[j]
    assert np.linalg.eigvalsh(gated.kernels).min() > -1e-12
    # Rows and columns may differ, as for new rows.
    cross = gate(DenseStack(stack.kernels[:, :4]), g[:4], g)
    np.testing.assert_array_equal(cross.kernels, gated.kernels[:, :4])


def test_one_gate_is_no_gate():
    _, stack, _ = views(1)
    np.testing.assert_array_equal(gate(stack, np.ones((stack.n, 1))).kernels, stack.kernels)


@pytest.mark.parametrize(("p", "r"), [(2.0, 1.0), (1.0, 2.0), (4 / 3, 2.0)])
def test_localised_weights_by_cvxpy(p, r):
    """The whole programme in the coefficients alone; the certificate carries over."""
    cvxpy = pytest.importorskip("cvxpy")
    _, stack, g = views(2)
    gated, ridge = gate(stack, g), 0.5
    a = cvxpy.Variable(stack.n)
    forms = [cvxpy.quad_form(a, cvxpy.psd_wrap(K)) for K in gated.kernels]

    def dual_norm(parts, norm):
        joined = cvxpy.hstack(parts)
        return cvxpy.max(joined) if norm == 1 else cvxpy.pnorm(joined, norm / (norm - 1))

    L = g.shape[1]
    inner = [dual_norm(forms[j * L : (j + 1) * L], r) for j in range(stack.J)]
    objective = 2 * cvxpy.sum(a) - ridge * cvxpy.sum_squares(a) - dual_norm(inner, p)
    best = cvxpy.Problem(cvxpy.Maximize(objective))
    best.solve(solver=cvxpy.CLARABEL)
    ball = MixedBall(p, r, np.repeat(np.arange(stack.J), L))
    result = solve(FisherProblem(gated, ridge), ball, tol=1e-7)
    assert result.converged
    assert result.value == pytest.approx(best.value, rel=1e-5)


def test_hard_gates_are_separate_problems():
    """Rows in blocks that do not meet, and p = inf: each block has the weights 1 of its own."""
    _, stack, _ = views(3)
    hard = np.repeat([[1.0, 0.0], [0.0, 1.0]], [6, 8], axis=0)
    result = solve(FisherProblem(gate(stack, hard), 0.5), LpBall(np.inf), tol=1e-10)
    for rows in (slice(0, 6), slice(6, 14)):
        block = DenseStack(stack.kernels[:, rows, rows])
        alone = FisherProblem(block, 0.5).evaluate(np.ones(stack.J)).coef
        np.testing.assert_allclose(result.coef[rows], alone, atol=1e-8)


def test_what_is_refused():
    X, stack, g = views(4)
    with pytest.raises(ValueError, match="centres"):
        soft_memberships(X, X[:, :1], 1.0)
    with pytest.raises(ValueError, match="width"):
        soft_memberships(X, X[:2], 0.0)
    with pytest.raises(ValueError, match="rows: got gates of shape"):
        gate(stack, g[:3])
    with pytest.raises(ValueError, match="negative"):
        gate(stack, -g)

"""The capped Fisher problem against cvxpy, plain reweighting, and contaminated targets."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

from experiments.family.robust import RobustFisherProblem, _capped_solution
from kernull.mkl.balls import LpBall, MixedBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack

# The oracle says so of its last digits; the comparison asks for fewer.
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")


def contaminated(seed, share=0.2, n=40, J=3):
    """Kernels of J views of a cluster in which some rows lie elsewhere."""
    rng = np.random.default_rng(seed)
    bad = round(share * n)
    X = rng.normal(size=(n, J, 2))
    X[:bad] += rng.uniform(3, 6, size=(bad, 1, 1)) * rng.choice([-1, 1], size=(bad, 1, 2))
    return DenseStack(np.stack([rbf_kernel(X[:, j], gamma=0.3) for j in range(J)])), bad


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, 8.0])
@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.7])
def test_the_optimum_is_cvxpys(p, threshold):
    """The primal in f and the weights together: Huber's loss and the matrix fractional norm."""
    cvxpy = pytest.importorskip("cvxpy")
    stack, _ = contaminated(0, n=15)
    ridge = 0.8
    a = cvxpy.Variable(stack.n)
    q = np.inf if p == 1 else p / (p - 1)
    forms = cvxpy.hstack([cvxpy.quad_form(a, cvxpy.psd_wrap(K)) for K in stack.kernels])
    norm = cvxpy.max(forms) if p == 1 else cvxpy.pnorm(forms, q, approx=False)
    dual = cvxpy.Problem(
        cvxpy.Maximize(2 * cvxpy.sum(a) - ridge * cvxpy.sum_squares(a) - norm),
        [cvxpy.abs(a) <= threshold / ridge],
    )
    dual.solve(solver=cvxpy.CLARABEL)
    result = solve(RobustFisherProblem(stack, ridge, threshold), LpBall(p), tol=1e-8)
    assert result.converged
    assert result.value == pytest.approx(dual.value, rel=1e-5)
    # And the primal at these weights, whose loss is written out.
    K = np.tensordot(result.weights, stack.kernels, 1) + 1e-10 * np.eye(stack.n)
    f = cvxpy.Variable(stack.n)
    loss = cvxpy.sum(cvxpy.huber(1 - f, threshold)) / ridge
    root = np.linalg.cholesky(np.linalg.inv(K))
    primal = cvxpy.Problem(cvxpy.Minimize(loss + cvxpy.sum_squares(root.T @ f)))
    primal.solve(solver=cvxpy.CLARABEL)
    assert primal.value == pytest.approx(result.value, rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_reweighting_rows_ends_at_the_same_point(seed):
    """The naive loop: solve with weights min(1, k/|r|), weigh again, until nothing changes."""
    stack, _ = contaminated(seed)
    K, ridge, k = stack.kernels[0], 0.5, 0.2
    w = np.ones(stack.n)
    for _ in range(3000):
        a = np.linalg.solve(K + np.diag(ridge / w), np.ones(stack.n))
        w = np.minimum(1.0, k / np.abs(1 - K @ a))
    problem = RobustFisherProblem(stack.select([0]), ridge, k)
    point = problem.evaluate(np.ones(1))
    np.testing.assert_allclose(point.coef, a, atol=1e-6)
    np.testing.assert_allclose(problem.row_weights(np.ones(1), point.coef), w, atol=1e-6)


def test_a_large_threshold_is_the_plain_problem():
    stack, _ = contaminated(1)
    plain = solve(FisherProblem(stack, 0.5), LpBall(2), tol=1e-10)
    robust = solve(RobustFisherProblem(stack, 0.5, 10.0), LpBall(2), tol=1e-10)
    np.testing.assert_allclose(robust.weights, plain.weights, atol=1e-6)
    np.testing.assert_allclose(robust.coef, plain.coef, atol=1e-6)


@pytest.mark.parametrize("threshold", [0.05, 0.3, 2.0])
def test_gradient_and_certificate(threshold):
    stack, _ = contaminated(2)
    problem, rng = RobustFisherProblem(stack, 0.5, threshold), np.random.default_rng(0)
    b = rng.uniform(0.2, 1.0, stack.J)
    point = problem.evaluate(b)
    for j in range(stack.J):
        step = np.zeros(stack.J)
        step[j] = 1e-6
        slope = (problem.evaluate(b + step).value - problem.evaluate(b - step).value) / 2e-6
        assert -point.u[j] == pytest.approx(slope, rel=1e-4, abs=1e-7)
    for ball in (LpBall(1), LpBall(2), MixedBall(2, 1, [0, 0, 1])):
        for _ in range(5):
            one, other = (ball.normalise(rng.uniform(0.01, 1, stack.J)) for _ in range(2))
            bound = problem.evaluate(one)
            lower = bound.lower_bound(ball.support(bound.u))
            assert lower <= problem.evaluate(other).value + 1e-9


def test_capped_solution_meets_its_conditions():
    """At a cap the gradient presses outwards, elsewhere it is zero."""
    rng = np.random.default_rng(0)
    for n, cap in [(1, 0.1), (30, 0.05), (30, 1e-6), (80, 0.02)]:
        B = rng.normal(size=(n, n))
        A = B @ B.T / n + 0.1 * np.eye(n)
        a, free = _capped_solution(A, cap)
        rise = 1 - A @ a
        assert np.abs(a).max() <= cap
        np.testing.assert_allclose(rise[free], 0, atol=1e-9)
        assert (rise[~free] * a[~free] >= 0).all()


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3])
def test_contaminated_targets(share):
    """Rows that do not belong lose weight, and new ones like them score lower than without."""
    better = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, bad = 100, round(share * 100)
        X = rng.normal(size=(n, 2))
        X[:bad] = rng.normal([4.0, 4.0], 0.7, size=(bad, 2))
        new = np.vstack([rng.normal(size=(100, 2)), rng.normal([4.0, 4.0], 0.7, size=(100, 2))])
        y = np.repeat([1, -1], 100)
        K, C = rbf_kernel(X, gamma=0.2)[None], rbf_kernel(new, X, gamma=0.2)
        stack, ridge = DenseStack(K), 5.0
        plain = FisherProblem(stack, ridge).evaluate(np.ones(1)).coef
        k = float(np.median(1 - K[0] @ plain))
        problem = RobustFisherProblem(stack, ridge, k)
        robust = problem.evaluate(np.ones(1)).coef
        weights = problem.row_weights(np.ones(1), robust)
        assert weights[:bad].mean() < weights[bad:].mean()
        better.append(roc_auc_score(y, C @ robust) - roc_auc_score(y, C @ plain))
    assert np.mean(better) > 0


@pytest.mark.parametrize("name", ["ridge", "threshold"])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan, True])
def test_parameters_are_checked(name, bad):
    settings = {"ridge": 1.0, "threshold": 1.0, name: bad}
    with pytest.raises(ValueError, match=f"^{name}"):
        RobustFisherProblem(DenseStack(np.eye(3)[None]), **settings)

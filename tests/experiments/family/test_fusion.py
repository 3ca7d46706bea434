"""The fusion of scores against cvxpy and refits."""

import numpy as np
import pytest

from experiments.family.fusion import ScoreFusionProblem, left_out_responses
from kernull.mkl.balls import LpBall
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from tests.oracles import random_kernels

# The oracle says so of its last digits; the comparison asks for fewer.
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")


def some_scores(seed, n=30, J=5):
    return np.random.default_rng(seed).uniform(-0.1, 1.0, size=(n, J))


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, 8.0])
@pytest.mark.parametrize("steepness", [1.0, 8.0])
def test_the_optimum_is_cvxpys(p, steepness):
    cvxpy = pytest.importorskip("cvxpy")
    scores = some_scores(0)
    b = cvxpy.Variable(scores.shape[1])
    margins = steepness * (np.maximum(scores, 0) @ b)
    programme = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum(cvxpy.logistic(-margins)) / len(scores)),
        LpBall(p).cvxpy_constraints(b),
    )
    programme.solve(solver=cvxpy.CLARABEL)
    result = solve(ScoreFusionProblem(scores, steepness), LpBall(p), tol=1e-8)
    assert result.converged
    assert result.value == pytest.approx(programme.value, rel=1e-6, abs=1e-8)


def test_the_limits_of_p():
    scores = some_scores(1)
    one = solve(ScoreFusionProblem(scores, 1e-3), LpBall(1))  # nearly linear: the best mean
    assert one.weights.argmax() == np.maximum(scores, 0).mean(axis=0).argmax()
    np.testing.assert_allclose(solve(ScoreFusionProblem(scores, 1.0), LpBall(1e6)).weights, 1.0,
                               atol=1e-4)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_curvature_by_differences(seed):
    problem = ScoreFusionProblem(some_scores(seed), 3.0)
    b = np.random.default_rng(seed).uniform(0.1, 1.0, size=problem.J)
    point, h = problem.evaluate(b), 1e-6
    for j, e in enumerate(np.eye(problem.J)):
        up, down = problem.evaluate(b + h * e), problem.evaluate(b - h * e)
        assert point.u[j] == pytest.approx(-(up.value - down.value) / (2 * h), rel=1e-6)
        np.testing.assert_allclose(point.curvature()[j], -(up.u - down.u) / (2 * h), rtol=1e-5)


def test_the_bound_holds_everywhere_in_the_ball():
    rng = np.random.default_rng(2)
    problem, ball = ScoreFusionProblem(some_scores(2), 4.0), LpBall(2)
    points = [problem.evaluate(ball.normalise(rng.uniform(size=5))) for _ in range(20)]
    bound = max(point.lower_bound(ball.support(point.u)) for point in points)
    assert bound <= min(point.value for point in points)


def test_left_out_responses_are_those_of_refits():
    K = random_kernels(np.random.default_rng(0), n=12, J=2)
    found, coef = left_out_responses(DenseStack(K), 0.3)
    for j, Kj in enumerate(K):
        np.testing.assert_allclose(coef[j], np.linalg.solve(Kj + 0.3 * np.eye(12), np.ones(12)))
        for i in range(12):
            rest = np.delete(np.arange(12), i)
            a = np.linalg.solve(Kj[np.ix_(rest, rest)] + 0.3 * np.eye(11), np.ones(11))
            assert found[i, j] == pytest.approx(Kj[i, rest] @ a)

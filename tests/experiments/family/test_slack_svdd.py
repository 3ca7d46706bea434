"""Data description with powers of slacks against cvxpy (primal and dual) and plain SVDD."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from experiments.family.interior import minimise_on_the_simplex
from experiments.family.slack_svdd import SlackSVDDProblem
from kernull.mkl.balls import LpBall, MixedBall, Simplex
from kernull.mkl.problems import SVDDProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from tests.mkl.problems.test_svdd import random_stack

# The oracle says so of its last digits; the comparisons ask for fewer.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in power:RuntimeWarning"),
]


def maximise(cvxpy, objective, a, constraints):
    """The maximiser, by a second solver where the first gives up."""
    programme = cvxpy.Problem(cvxpy.Maximize(objective), constraints)
    try:
        programme.solve(solver=cvxpy.CLARABEL)
    except cvxpy.SolverError:
        programme.solve(solver=cvxpy.SCS, eps=1e-9, max_iters=100_000)
    found = np.maximum(a.value, 0.0)  # the solvers allow a little below zero
    return found / found.sum()


POWERS = [1.2, 1.5, 2.0, 3.0]


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("cost", [0.05, 1.0])
def test_one_linear_kernel_is_the_primal_by_cvxpy(power, cost):
    """The ball in the space of the rows itself: centre, radius and slacks as they stand."""
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(25, 2))
    centre, radius2, xi = cvxpy.Variable(2), cvxpy.Variable(), cvxpy.Variable(25)
    distances = [cvxpy.sum_squares(x - centre) for x in X]
    programme = cvxpy.Problem(
        cvxpy.Minimize(radius2 + cost * cvxpy.sum(cvxpy.power(xi, power))),
        [xi >= 0, *(d <= radius2 + s for d, s in zip(distances, xi, strict=True))],
    )
    programme.solve(solver=cvxpy.CLARABEL)
    problem = SlackSVDDProblem(DenseStack((X @ X.T)[None]), cost, power)
    point = problem.evaluate(np.ones(1))
    assert point.value == pytest.approx(programme.value, rel=1e-5)
    np.testing.assert_allclose(X.T @ point.coef, centre.value, atol=2e-3)
    found, norm2 = problem.sphere(np.ones(1), point.coef)
    assert found == pytest.approx(radius2.value, abs=5e-3 * abs(programme.value))
    assert norm2 == pytest.approx(float(np.sum(centre.value**2)), abs=1e-2)
    np.testing.assert_allclose(problem.slacks(point.coef), xi.value, atol=2e-2)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("seed", range(3))
def test_many_kernels_are_the_saddle_by_cvxpy(power, seed):
    """min over weights, max over a, written in a alone: min over kernels, or a norm of them."""
    cvxpy = pytest.importorskip("cvxpy")
    stack, _ = random_stack(seed)
    cost = 2.0
    a = cvxpy.Variable(stack.n)
    forms = [cvxpy.quad_form(a, cvxpy.psd_wrap(K)) for K in stack.kernels]
    problem = SlackSVDDProblem(stack, cost, power)
    penalty = problem.gamma * cvxpy.sum(cvxpy.power(a, problem.q))
    feasible = [a >= 0, cvxpy.sum(a) == 1]
    radii = [stack.diagonal()[j] @ a - forms[j] for j in range(stack.J)]
    best = maximise(cvxpy, cvxpy.min(cvxpy.hstack(radii)) - penalty, a, feasible)
    u = np.array([best @ K @ best for K in stack.kernels])
    cost_of_slack = problem.gamma * (best**problem.q).sum()
    expected = (stack.diagonal() @ best - u).min() - cost_of_slack
    result = solve(problem, Simplex(), tol=1e-6)
    assert result.converged
    assert result.value == pytest.approx(expected, rel=1e-4)
    norm = cvxpy.pnorm(cvxpy.hstack(forms), 2)
    best = maximise(cvxpy, -norm - penalty, a, feasible)
    u = np.array([best @ K @ best for K in stack.kernels])
    expected = -np.linalg.norm(u) - problem.gamma * (best**problem.q).sum()
    result = solve(SlackSVDDProblem(stack, cost, power, diagonal=False), LpBall(2.0), tol=1e-6)
    assert result.converged
    assert result.value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_powers_near_one_are_plain_svdd(seed):
    stack, _ = random_stack(seed, unit_diagonal=True)
    nu = 0.3
    cost = 1.0 / (nu * stack.n)
    plain = solve(SVDDProblem(stack, nu), Simplex(), tol=1e-6).value
    near = solve(SlackSVDDProblem(stack, cost, 1.02), Simplex(), tol=1e-5).value
    assert near == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize("power", POWERS)
def test_gradient_and_certificate(power):
    stack, _ = random_stack(5)
    problem = SlackSVDDProblem(stack, 1.0, power)
    rng = np.random.default_rng(1)
    d = rng.uniform(0.2, 1.0, stack.J)
    point = problem.evaluate(d)
    for j in range(stack.J):
        step = np.zeros(stack.J)
        step[j] = 1e-5
        slope = (problem.evaluate(d + step).value - problem.evaluate(d - step).value) / 2e-5
        assert -point.u[j] == pytest.approx(slope, rel=1e-4, abs=1e-6)
    # Every point of the simplex has a value above the bound of every other.
    for _ in range(10):
        one, other = rng.dirichlet(np.ones(stack.J), 2)
        bound = problem.evaluate(one)
        assert bound.lower_bound(Simplex().support(bound.u)) <= problem.evaluate(other).value + 1e-9


def test_any_ball_serves_without_the_diagonal():
    stack, _ = random_stack(2, unit_diagonal=True)
    groups = [j % 2 for j in range(stack.J)]
    for ball in (LpBall(1.0), LpBall(4 / 3), LpBall(1e6), MixedBall(2.0, 1.0, groups)):
        result = solve(SlackSVDDProblem(stack, 1.0, 2.0, diagonal=False), ball, tol=1e-6)
        assert result.converged, ball


def test_cheaper_slack_leaves_far_rows_out():
    """One row far off: the lower the cost, the smaller the ball and the larger its slack."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 2)), [[30.0, 0.0]]])
    stack = DenseStack((X @ X.T)[None])
    radii, far = [], []
    for cost in (1e-4, 1e-3, 1e-2, 1e2):
        problem = SlackSVDDProblem(stack, cost, 1.5)
        a = problem.inner(np.ones(1))
        radii.append(problem.sphere(np.ones(1), a)[0])
        far.append(problem.slacks(a)[-1])
    assert (np.diff(radii) > 0).all()
    assert (np.diff(far) < 0).all()
    assert radii[-1] > 200  # nearly the hard ball, which has to hold the far row


@pytest.mark.parametrize("q", [1.02, 1.1, 1.5, 2.0, 5.0, 50.0])
def test_the_inner_programme_is_solved_to_rounding(q):
    rng = np.random.default_rng(3)
    K = rbf_kernel(rng.normal(size=(60, 3)), gamma=0.3)
    K[5] = K[4]  # two equal rows: K is singular
    K[:, 5] = K[:, 4]
    a = minimise_on_the_simplex(K, np.diag(K), 0.3, q)
    gradient = 2 * K @ a - np.diag(K) + 0.3 * q * a ** (q - 1)
    assert a.sum() == pytest.approx(1.0, abs=1e-12)
    assert gradient @ a - gradient.min() <= 1e-9


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"cost": 0.0}, "cost"), ({"cost": True}, "cost"), ({"cost": 1.0, "power": 1.0}, "power"),
     ({"cost": 1e-5, "power": 1.0000001}, "power")],
)  # fmt: skip
def test_parameters_are_checked(settings, name):
    with pytest.raises(ValueError, match=f"^{name}"):
        SlackSVDDProblem(DenseStack(np.eye(3)[None]), **settings)

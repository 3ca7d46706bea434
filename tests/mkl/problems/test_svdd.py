"""SVDD and one-class SVM problems against cvxpy, finite differences and each other."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernull.mkl.balls import LpBall, Simplex
from kernull.mkl.problems import OneClassSVMProblem, SVDDProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack


def random_stack(seed, *, unit_diagonal=False):
    """Kernels of several widths on random views; with unequal diagonals unless told otherwise."""
    rng = np.random.default_rng(seed)
    n, J = int(rng.integers(12, 40)), int(rng.integers(2, 7))
    kernels = []
    for _ in range(J):
        X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + rng.normal(size=4)
        K = rbf_kernel(X, gamma=rng.choice([0.05, 0.2, 1.0]))
        if not unit_diagonal:
            s = rng.uniform(0.5, 2.0, n)
            K = K * s[:, None] * s + 0.1 * linear_kernel(X)
        kernels.append(K)
    return DenseStack(np.stack(kernels)), float(rng.choice([0.05, 0.1, 0.3, 0.6]))


def cvxpy_value(stack, nu, *, kind, p=1.0):
    """The saddle value, written in the coefficients alone."""
    cvxpy = pytest.importorskip("cvxpy")
    n = stack.n
    a = cvxpy.Variable(n)
    forms = [cvxpy.quad_form(a, cvxpy.psd_wrap(K)) for K in stack.kernels]
    constraints = [a >= 0, a <= 1 / (nu * n), cvxpy.sum(a) == 1]
    if kind == "svdd":
        diagonal = stack.diagonal()
        radii = [diagonal[j] @ a - forms[j] for j in range(stack.J)]
        problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.min(cvxpy.hstack(radii))), constraints)
    else:
        # min over the lp ball of -b'u is minus the q-norm of u.
        q = np.inf if p == 1 else p / (p - 1)
        u = cvxpy.hstack([f / 2 for f in forms])
        norm = cvxpy.max(u) if p == 1 else cvxpy.pnorm(u, q, approx=False)
        problem = cvxpy.Problem(cvxpy.Maximize(-norm), constraints)
    problem.solve(solver=cvxpy.CLARABEL)
    return problem.value, a.value


@pytest.mark.parametrize("seed", range(20))
def test_svdd_matches_cvxpy_on_unequal_diagonals(seed):
    stack, nu = random_stack(seed)
    expected, _ = cvxpy_value(stack, nu, kind="svdd")
    result = solve(SVDDProblem(stack, nu), Simplex(), tol=1e-5)
    assert result.converged
    assert 0 <= result.gap <= 1e-5
    assert result.value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, 8.0])
@pytest.mark.parametrize("seed", range(0, 20, 4))
def test_one_class_svm_matches_cvxpy(seed, p):
    seed += {1.0: 0, 4 / 3: 1, 2.0: 2, 8.0: 3}[p]  # 20 different problems in all
    stack, nu = random_stack(seed)
    expected, _ = cvxpy_value(stack, nu, kind="ocsvm", p=p)
    result = solve(OneClassSVMProblem(stack, nu), LpBall(p), tol=1e-5)
    assert result.converged
    assert result.value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_svdd_value_is_cvxpys_to_a_millionth(seed):
    """One kernel with an unequal diagonal: only libsvm's own accuracy is left."""
    stack, nu = random_stack(seed)
    one = stack.select([0])
    expected, a = cvxpy_value(one, nu, kind="svdd")
    point = SVDDProblem(one, nu).evaluate(np.ones(1))
    assert point.value == pytest.approx(expected, rel=1e-6)
    K = one.kernels[0]
    np.testing.assert_allclose(K @ point.coef, K @ a, atol=1e-4 * np.abs(K).max())


@pytest.mark.parametrize("problem_type", [SVDDProblem, OneClassSVMProblem])
@pytest.mark.parametrize("solver", ["newton", "frank-wolfe"])
def test_gaps_are_true_bounds_and_reach_1e_4(problem_type, solver):
    ball = Simplex() if problem_type is SVDDProblem else LpBall(1)
    for seed in range(5):
        stack, nu = random_stack(seed, unit_diagonal=True)
        best = solve(problem_type(stack, nu), ball, "newton", tol=1e-6).value
        result = solve(problem_type(stack, nu), ball, solver, tol=1e-4)
        assert result.gap <= 1e-4
        for record in result.history:
            assert record.gap >= 0
            # F minus its certified lower bound must not be less than F minus the optimum.
            scale = max(abs(record.value), abs(best))
            assert record.value - best <= record.gap * (scale + abs(best)) + 1e-7
        values = [record.value for record in result.history]
        assert np.all(np.diff(values) <= 1e-7 * abs(values[0]))  # F never rises


@pytest.mark.parametrize("problem_type", [SVDDProblem, OneClassSVMProblem])
def test_gradient_and_curvature_are_those_of_finite_differences(problem_type):
    stack, _ = random_stack(3)
    problem = problem_type(stack, 0.2)
    rng = np.random.default_rng(0)
    b, d = rng.uniform(0.5, 1.0, stack.J), rng.normal(size=stack.J)
    h = 1e-3
    centre, plus, minus = (problem.evaluate(b + s * h * d) for s in (0, 1, -1))
    assert (plus.value - minus.value) / (2 * h) == pytest.approx(-centre.u @ d, rel=1e-4)
    # No row changes sides over so short a step, so the curvature is exact there.
    assert (minus.u - plus.u) @ d / (2 * h) == pytest.approx(d @ centre.curvature() @ d, rel=1e-2)


@pytest.mark.parametrize("seed", range(5))
def test_the_two_coincide_on_unit_diagonals(seed):
    """With k(x, x) = 1, the squared radius 1 - a'Ka is 1 + 2 F of the one-class SVM."""
    stack, nu = random_stack(seed, unit_diagonal=True)
    svdd, ocsvm = SVDDProblem(stack, nu), OneClassSVMProblem(stack, nu)
    b = np.random.default_rng(seed).dirichlet(np.ones(stack.J))
    one, other = svdd.evaluate(b), ocsvm.evaluate(b)
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-6)
    assert one.value == pytest.approx(1 + 2 * other.value, abs=1e-6)
    np.testing.assert_allclose(one.u, 2 * other.u - 1, atol=1e-6)
    best = solve(svdd, Simplex(), tol=1e-6), solve(ocsvm, LpBall(1), tol=1e-6)
    assert best[0].value == pytest.approx(1 + 2 * best[1].value, abs=1e-6)


def test_a_constant_kernel_takes_all_the_weight():
    stack, nu = random_stack(0, unit_diagonal=True)
    kernels = np.concatenate([stack.kernels, np.ones((1, stack.n, stack.n))])
    for problem, ball in (
        (SVDDProblem(DenseStack(kernels), nu), Simplex()),
        (OneClassSVMProblem(DenseStack(kernels), nu), LpBall(1)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = solve(problem, ball, tol=1e-4)
        assert result.weights[-1] == pytest.approx(1.0, abs=1e-3)


def test_slack_bounds_the_distance_from_the_optimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    K, nu = rbf_kernel(X), 0.2
    problem = OneClassSVMProblem(DenseStack(K[None]), nu)
    exact, slack = problem.inner(np.ones(1)), problem.slack
    optimum = 0.5 * exact @ K @ exact
    assert slack(K @ exact, exact) <= 1e-7
    uniform = np.full(30, 1 / 30)
    for share in (0.3, 1.0):
        a = exact + share * (uniform - exact)
        assert 0.5 * a @ K @ a - slack(K @ a, a) <= optimum + 1e-9
        assert slack(K @ a, a) > 1e-6


def test_low_rank_kernels_end_in_good_time():
    """libsvm's single precision never meets its tolerance here; its steps are bounded."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    stack = DenseStack(np.stack([linear_kernel(X), linear_kernel(X[:, :2])]))
    expected, _ = cvxpy_value(stack, 0.1, kind="svdd")
    result = solve(SVDDProblem(stack, 0.1), Simplex(), tol=1e-4)
    assert result.value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("nu", [0, -0.1, 1.5, True, "a", np.nan])
@pytest.mark.parametrize("problem_type", [SVDDProblem, OneClassSVMProblem])
def test_nu_is_checked(nu, problem_type):
    stack, _ = random_stack(0)
    with pytest.raises(ValueError, match=r"nu: got .*expected a number in \(0, 1\]"):
        problem_type(stack, nu)

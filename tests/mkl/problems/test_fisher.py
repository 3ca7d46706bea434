"""The Fisher problem against naive loops, finite differences and its own certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull.errors import InvalidKernelError, MissingCapabilityError
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import Evaluation, FisherProblem
from kernull.mkl.solvers.base import relative_gap
from kernull.operators import DenseStack, Stack
from tests.oracles import dual_norm, fisher_coef, fisher_value, random_kernels, random_problem


@pytest.fixture(params=["ones", "general target", "row weights", "both"])
def case(request, rng):
    """A problem, and the kernels, target and ridge matrix of its plain definition."""
    n, J, ridge = 9, 4, 0.7
    kernels = random_kernels(rng, n, J)
    target = rng.normal(size=n) if request.param in ("general target", "both") else None
    weight = rng.uniform(0.2, 3.0, n) if request.param in ("row weights", "both") else None
    problem = FisherProblem(DenseStack(kernels), ridge, target, weight)
    t = np.ones(n) if target is None else target
    R = ridge * np.diag(1 / (np.ones(n) if weight is None else weight))
    return problem, kernels, t, R


def naive(kernels, t, R, b):
    """Value, a, u and M of the plain definition, entry by entry."""
    A = R.copy()
    for weight, K in zip(b, kernels, strict=True):
        A += weight * K
    inverse = np.linalg.inv(A)
    a = inverse @ t
    J = len(kernels)
    u = np.array([a @ kernels[j] @ a for j in range(J)])
    M = np.array([[a @ kernels[j] @ inverse @ kernels[k] @ a for k in range(J)] for j in range(J)])
    return t @ a, a, u, M


def test_value_coefficients_gradient_and_curvature_equal_naive_loops(case, rng):
    problem, kernels, t, R = case
    b = rng.uniform(0.1, 1.0, len(kernels))
    value, a, u, M = naive(kernels, t, R, b)
    point = problem.evaluate(b)
    assert point.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(point.coef, a, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(point.u, u, rtol=1e-9)
    # The curvature is that of 1/F, scaled to have gradient u (see the class).
    expected = 2 * (M - np.outer(u, u) / value)
    np.testing.assert_allclose(point.curvature(), expected, rtol=1e-7, atol=1e-10 * M.max())
    assert np.linalg.eigvalsh(point.curvature()).min() >= -1e-9 * np.trace(M)  # 1/F is concave


def test_gradient_and_curvature_by_finite_differences(case, rng):
    problem, kernels, t, R = case
    J, h = len(kernels), 1e-5
    b = rng.uniform(0.5, 1.0, J)
    point = problem.evaluate(b)

    def F(c):
        return naive(kernels, t, R, c)[0]

    slope = np.array([(F(b + h * e) - F(b - h * e)) / (2 * h) for e in np.eye(J)])
    np.testing.assert_allclose(-point.u, slope, rtol=1e-6, atol=1e-7 * np.abs(slope).max())

    def scaled(c):  # gradient of -F(b)^2 / F, the function that the curvature belongs to
        value, _, u, _ = naive(kernels, t, R, c)
        return -u * (F(b) / value) ** 2

    H = np.array([(scaled(b + h * e) - scaled(b - h * e)) / (2 * h) for e in np.eye(J)])
    np.testing.assert_allclose(point.curvature(), H, rtol=1e-5, atol=1e-6 * np.abs(H).max())


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**6), st.floats(0.0, 3.0), st.sampled_from([1.0, 8 / 7, 2.0, 5.0, np.inf]))
def test_bounds_hold_for_any_coefficients(seed, noise, p):
    """U >= F(b) and L <= F(c) for every c of the ball, for the exact a and for any other."""
    kernels, ridge, _ = random_problem(seed)
    rng = np.random.default_rng(seed)
    J, n, _ = kernels.shape
    ball = LpBall(p)
    b = ball.normalise(rng.exponential(size=J))
    a = fisher_coef(kernels, b, ridge)
    a = a * (1 + noise * rng.normal(size=n)) + noise * rng.normal(size=n) * np.abs(a).mean()
    problem = FisherProblem(DenseStack(kernels), ridge)
    point = problem.certify(b, a, problem.products(a))
    assert point.value >= fisher_value(kernels, b, ridge) * (1 - 1e-10)
    lower = point.lower_bound(ball.support(point.u))
    others = [ball.normalise(rng.exponential(size=J) ** 2) for _ in range(20)] + [ball.uniform(J)]
    assert all(lower <= fisher_value(kernels, c, ridge) * (1 + 1e-10) for c in others)
    assert 0 <= relative_gap(point, ball.support(point.u)) <= 1
    # By hand: the formulas of the certificate.
    u = np.array([a @ K @ a for K in kernels])
    r = np.ones(n) - ridge * a - sum(w * K @ a for w, K in zip(b, kernels, strict=True))
    upper = 2 * a.sum() - ridge * a @ a - b @ u + r @ r / ridge
    assert point.value == pytest.approx(upper, rel=1e-9)
    assert lower == pytest.approx(a.sum() ** 2 / (ridge * a @ a + dual_norm(u, p)), rel=1e-9)


def test_relative_gap():
    none = np.zeros(1)
    for upper, lower, gap in ((2.0, 1.0, 0.5), (1.0, 1.0 + 1e-15, 0.0), (0.0, 0.0, 0.0)):
        point = Evaluation(none, upper, none, none, lambda support, lower=lower: lower)
        assert relative_gap(point, 1.0) == gap


def test_restrict_is_the_problem_confined_to_a_subspace(case, rng):
    """Its value is the maximum over a = Qy, found by plain least squares in y."""
    problem, kernels, t, R = case
    n, J, m = len(t), len(kernels), 4
    Q = np.linalg.qr(rng.normal(size=(n, m)))[0]
    b = rng.uniform(0.1, 1.0, J)
    small = problem.restrict(Q)
    S = np.sqrt(problem.ridge / np.diag(R))  # a = S Q y in the coordinates of the rows
    basis = S[:, None] * Q
    A = R + sum(w * K for w, K in zip(b, kernels, strict=True))
    y = np.linalg.solve(basis.T @ A @ basis, basis.T @ t)
    point = small.evaluate(b)
    assert point.value == pytest.approx(t @ basis @ y, rel=1e-9)
    np.testing.assert_allclose(point.coef, y, rtol=1e-7, atol=1e-10)
    assert point.value <= problem.evaluate(b).value * (1 + 1e-12)
    again = problem.restrict(Q, problem.products(Q)).evaluate(b)
    assert again.value == pytest.approx(point.value, rel=1e-13)
    whole = problem.restrict(np.linalg.qr(rng.normal(size=(n, n)))[0])
    assert whole.evaluate(b).value == pytest.approx(problem.evaluate(b).value, rel=1e-10)


def test_products_equal_loops(case, rng):
    problem, kernels, t, R = case
    S = np.diag(np.sqrt(problem.ridge / np.diag(R)))
    V = rng.normal(size=(len(t), 3))
    expected = np.stack([S @ K @ S @ V for K in kernels])
    np.testing.assert_allclose(problem.products(V), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(problem.products(V[:, 0]), expected[..., 0], rtol=1e-10, atol=1e-12)


def test_row_weights_equal_repeated_rows(rng):
    kernels, ridge = random_kernels(rng, 6, 3), 0.4
    copies = np.array([1, 3, 1, 2, 1, 4])
    rows = np.repeat(np.arange(6), copies)
    b = rng.uniform(0.1, 1.0, 3)
    weighted = FisherProblem(DenseStack(kernels), ridge, row_weight=copies).evaluate(b)
    index = np.ix_(range(3), rows, rows)
    repeated = FisherProblem(DenseStack(kernels[index]), ridge).evaluate(b)
    assert weighted.value == pytest.approx(repeated.value, rel=1e-11)
    np.testing.assert_allclose(weighted.u, repeated.u, rtol=1e-10)
    # The copies of a row share its coefficient.
    np.testing.assert_allclose(weighted.coef[rows] / copies[rows], repeated.coef, rtol=1e-9)


@pytest.mark.parametrize("c", [1e-6, 3.0, 1e8])
def test_scaling_kernels_and_ridge_scales_the_coefficients(case, c, rng):
    problem, kernels, t, _ = case
    b = rng.uniform(0.1, 1.0, len(kernels))
    weight = None if problem.row_scale is None else problem.row_scale**2
    scaled = FisherProblem(DenseStack(c * kernels), c * problem.ridge, t, weight)
    one, two = problem.evaluate(b), scaled.evaluate(b)
    assert two.value == pytest.approx(one.value / c, rel=1e-10)
    np.testing.assert_allclose(two.coef, one.coef / c, rtol=1e-8, atol=1e-12 / c)
    np.testing.assert_allclose(two.u, one.u / c, rtol=1e-8)


def test_factorisations_are_counted(case):
    problem = case[0]
    for count in (1, 2, 3):
        problem.evaluate(np.full(problem.J, float(count)))
        assert problem.n_evaluations == count
    last = np.full(problem.J, 3.0)
    np.testing.assert_array_equal(problem.factorise(last), problem.factorise(last))
    assert problem.n_evaluations == 4  # once from the last evaluation, which is then used up


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.nan, np.inf])
def test_ridge_must_be_positive(ridge):
    with pytest.raises(ValueError, match="ridge: got"):
        FisherProblem(DenseStack(np.eye(3)[None]), ridge)


def test_an_indefinite_sum_is_found_by_the_cholesky_and_says_how_negative():
    K = np.diag([1.0, 1.0, -5.0])
    with pytest.raises(InvalidKernelError, match=r"not positive semidefinite.*-5"):
        FisherProblem(DenseStack(K[None]), 0.1).evaluate(np.ones(1))


def test_a_ridge_lost_in_rounding_is_not_blamed_on_the_kernels(rng):
    x = rng.normal(size=(30, 1)) + 3
    K = (1e6 * x @ x.T) ** 3
    with pytest.raises(InvalidKernelError, match=r"ridge of 0\.1 is lost in the rounding.*delta"):
        FisherProblem(DenseStack(K[None]), 0.1).evaluate(np.ones(1))


def test_an_indefinite_kernel_that_the_ridge_hides_is_found_by_a_negative_u():
    kernels = np.stack([np.eye(3), np.diag([0.1, 0.1, -0.5])])
    with pytest.raises(
        InvalidKernelError, match=r"kernel 1 is not positive semidefinite.*a'K a = -"
    ):
        FisherProblem(DenseStack(kernels), 1.0).evaluate(np.ones(2))


def test_rounding_below_zero_is_no_indefinite_kernel():
    """Linear kernels of centred columns have u_j = 0, computed as +-1e-17."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    X -= X.mean(axis=0)
    kernels = np.stack([np.outer(x, x) for x in X.T])
    point = FisherProblem(DenseStack(kernels), 0.4).evaluate(np.ones(4))
    assert point.value == pytest.approx(40 / 0.4, rel=1e-12)
    assert np.abs(point.u).max() < 1e-10


def test_a_stack_without_combine_is_told_to_use_the_subspace():
    class Passes(DenseStack):
        can_combine = False
        combine = Stack.combine

    with pytest.raises(MissingCapabilityError, match="solver='subspace'"):
        FisherProblem(Passes(np.eye(3)[None]), 1.0).evaluate(np.ones(1))

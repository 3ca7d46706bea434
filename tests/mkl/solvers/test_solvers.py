"""Every solver against cvxpy, against the others, and against the definition of the gap."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from tests.mkl.solvers.fisher_problems import FOR_FISHER, problem_of
from tests.oracles import (
    certificate_gap,
    cvxpy_dual,
    fisher_coef,
    fisher_gap,
    fisher_value,
    random_kernels,
    random_problem,
)

CERTIFIED = ["newton", "subspace", "kloft", "frank-wolfe"]
#: Limits far above what is needed: Kloft and Frank-Wolfe are slow near p = 1.
PATIENCE = {"kloft": 200_000, "frank-wolfe": 100_000}
SEEDS = range(50)


@cache
def optimum(seed):
    """Value and weights of a random problem by cvxpy."""
    pytest.importorskip("cvxpy")
    return cvxpy_dual(*random_problem(seed))


@cache
def solved(seed, solver, tol):
    kernels, ridge, p = random_problem(seed)
    return solve(
        problem_of(kernels, ridge), LpBall(p), solver, tol=tol, max_iter=PATIENCE.get(solver)
    )


def unique_optimum(kernels, ridge, p, b):
    """Whether only b is optimal.

    For 1 < p < inf it always is: F is convex, so its minimisers form a convex set; it falls in
    every weight whose kernel the solution meets (u_j > 0), so they lie on the sphere; the sphere
    holds no segment. At p = inf the same needs u_j > 0 for every j. At p = 1 the simplex is flat
    and kernels can be exchanged.
    """
    a = fisher_coef(kernels, b, ridge)
    u = np.array([a @ K @ a for K in kernels])
    return p > 1 and (np.isfinite(p) or (u > 1e-9 * u.sum()).all())


def test_the_oracle_is_right_where_the_answer_is_known():
    """Two diagonal kernels whose best weights follow from symmetry: equal at every p."""
    kernels = np.stack([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])])
    for p in (1.0, 2.0, 3.0):
        value, b = cvxpy_dual(kernels, 0.5, p)
        np.testing.assert_allclose(b, 2 ** (-1 / p), atol=1e-6)
        assert value == pytest.approx(2 / (0.5 + 2 ** (-1 / p)), rel=1e-8)


@pytest.mark.parametrize("solver", CERTIFIED)
@pytest.mark.parametrize("seed", SEEDS)
def test_agrees_with_cvxpy(seed, solver):
    kernels, ridge, p = random_problem(seed)
    value, weights = optimum(seed)
    result = solved(seed, solver, 1e-10)
    assert fisher_value(kernels, result.weights, ridge) == pytest.approx(value, rel=1e-6)
    assert result.value == pytest.approx(value, rel=1e-6)
    if unique_optimum(kernels, ridge, p, result.weights):
        np.testing.assert_allclose(result.weights, weights, atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_certified_solvers_agree_among_themselves(seed):
    values = [solved(seed, solver, 1e-10).value for solver in CERTIFIED]
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


@pytest.mark.parametrize("p", [4 / 3, 2.0, 4.0, np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_gradient_agrees_where_the_dual_is_smooth(seed, p):
    kernels, ridge, _ = random_problem(seed)
    ridge = max(ridge, 0.05 * kernels.shape[1])  # its steps count like the condition number
    best = solve(problem_of(kernels, ridge), LpBall(p), "newton", tol=1e-10)
    result = solve(problem_of(kernels, ridge), LpBall(p), "gradient", tol=1e-7)
    assert fisher_value(kernels, result.weights, ridge) == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("solver", CERTIFIED)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_gap_is_what_independent_code_finds(seed, solver):
    kernels, ridge, p = random_problem(seed)
    result = solved(seed, solver, 1e-10)
    assert result.converged
    assert 0 <= result.gap <= 1e-10
    gap = certificate_gap(kernels, result.weights, result.coef, ridge, p)
    assert gap == pytest.approx(result.gap, abs=1e-13)
    if solver != "subspace":  # its coefficients are not a(b), and certify more than a(b) would
        assert -1e-13 <= fisher_gap(kernels, result.weights, ridge, p) <= 1.01e-10
    assert all(record.gap >= 0 for record in result.history)
    np.testing.assert_array_less(-1e-300, result.weights)
    norm = np.linalg.norm(result.weights, p) if p > 1 else result.weights.sum()
    assert norm <= 1 + 1e-9


@pytest.mark.parametrize("solver", ["newton", "kloft"])
@pytest.mark.parametrize("seed", SEEDS)
def test_f_never_rises(seed, solver):
    values = np.array([record.value for record in solved(seed, solver, 1e-10).history])
    assert (np.diff(values) <= 1e-12 * values[0]).all()


@pytest.mark.parametrize("solver", ["newton", "kloft", "frank-wolfe"])
@pytest.mark.parametrize("seed", range(0, 50, 7))
def test_coefficients_solve_their_equation(seed, solver):
    kernels, ridge, _ = random_problem(seed)
    result = solved(seed, solver, 1e-10)
    K_b = np.tensordot(result.weights, kernels, 1)
    np.testing.assert_allclose(K_b @ result.coef, 1 - ridge * result.coef, atol=1e-8)


def test_subspace_coefficients_solve_their_equation_as_far_as_the_gap_says(rng):
    kernels, ridge = random_kernels(rng, 60, 4), 3.0
    result = solve(problem_of(kernels, ridge), LpBall(2), "subspace", tol=1e-12)
    residual = 1 - ridge * result.coef - np.tensordot(result.weights, kernels, 1) @ result.coef
    assert residual @ residual / ridge <= 1e-11 * result.value


@pytest.mark.parametrize("p", [32 / 31, 4 / 3, 2.0, 8.0, np.inf])
@pytest.mark.parametrize("solver", CERTIFIED)
def test_identical_kernels_share_the_weight(solver, p, rng):
    K = random_kernels(rng, 12, 1)[0]
    result = solve(problem_of(np.stack([K] * 5), 0.3), LpBall(p), solver, tol=1e-10)
    np.testing.assert_allclose(result.weights, 5 ** (-1 / p), rtol=1e-6)


@pytest.mark.parametrize("p", [1.0, 8 / 7, 2.0, np.inf])
@pytest.mark.parametrize("solver", CERTIFIED)
def test_permuting_kernels_permutes_weights(solver, p, rng):
    kernels, order = random_kernels(rng, 15, 6), rng.permutation(6)
    options = {"tol": 1e-10, "max_iter": PATIENCE.get(solver)}
    one = solve(problem_of(kernels, 0.5), LpBall(p), solver, **options)
    two = solve(problem_of(kernels[order], 0.5), LpBall(p), solver, **options)
    assert two.value == pytest.approx(one.value, rel=1e-9)
    np.testing.assert_allclose(two.weights, one.weights[order], atol=1e-4)


@pytest.mark.parametrize("p", [1.0, 8 / 7, 2.0, np.inf])
@pytest.mark.parametrize("c", [1e-9, 1e7])
def test_scaling_kernels_and_ridge_leaves_the_weights(p, c, rng):
    kernels = random_kernels(rng, 15, 6)
    one = solve(problem_of(kernels, 0.5), LpBall(p), tol=1e-10)
    two = solve(problem_of(c * kernels, c * 0.5), LpBall(p), tol=1e-10)
    np.testing.assert_allclose(two.weights, one.weights, atol=1e-5)
    np.testing.assert_allclose(two.coef * c, one.coef, rtol=1e-5, atol=1e-7)


# -- Algorithm 1 -------------------------------------------------------------------------------


def algorithm_1(kernels, ridge, p, steps):
    """The paper's Algorithm 1, written naively; returns its start and the iterates b of its steps.

    The oracle over the paper's whole grid is in tests/paper/test_algorithms.py.
    """
    J, n, _ = kernels.shape
    b = np.full(J, J ** (-1 / p))
    iterates = [b]
    for _ in range(steps):
        a = np.linalg.solve(ridge * np.eye(n) + np.tensordot(b, kernels, 1), np.ones(n))
        u = np.array([a @ K @ a for K in kernels])
        if p == 1:
            b = np.eye(J)[np.argmax(u)]
        else:
            powers = (u / u.max()) ** (1 / (p - 1))
            b = powers / (powers**p).sum() ** (1 / p)
        iterates.append(b)
    return iterates


@pytest.mark.parametrize("p", [8 / 7, 4 / 3, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(5))
def test_paper_is_algorithm_1(seed, p):
    kernels, ridge, _ = random_problem(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem_of(kernels, ridge), LpBall(p), "paper", tol=1e-14, max_iter=12)
    expected = [fisher_value(kernels, b, ridge) for b in algorithm_1(kernels, ridge, p, 12)]
    history = [record.value for record in result.history]
    assert len(history) == result.n_iter + 1
    np.testing.assert_allclose(history, expected[: len(history)], rtol=1e-9)


@pytest.mark.parametrize("p", [3.0, 4.0, 8.0])
def test_paper_stops_where_its_coefficients_no_longer_change(p, rng):
    kernels = random_kernels(rng, 15, 4)
    result = solve(problem_of(kernels, 5.0), LpBall(p), "paper", tol=1e-5)
    changes = np.array([record.change for record in result.history[1:]])
    coefs = [fisher_coef(kernels, b, 5.0) for b in result.iterates[1:]]
    relative = changes / np.linalg.norm(coefs, axis=1)
    assert relative[-1] <= 1e-5
    assert (relative[:-1] > 1e-5).all()
    assert result.converged
    assert result.cycle == 0


def test_paper_may_stop_at_the_gap_to_be_timed_against_solvers_that_do(rng):
    problem, ball = problem_of(random_kernels(rng, 15, 4), 5.0), LpBall(4)
    by_change = solve(problem, ball, "paper", tol=1e-5)
    by_gap = solve(problem, ball, "paper", tol=1e-5, stop_at_gap=True)
    gaps = [record.gap for record in by_change.history]
    assert by_gap.n_iter == next(k for k, gap in enumerate(gaps) if gap <= 1e-5) < by_change.n_iter
    np.testing.assert_array_equal(by_gap.weights, by_change.iterates[by_gap.n_iter])


def oscillating():
    """Kernels on which Algorithm 1 runs for ever: each is best where the other rules."""
    return np.stack([np.diag([9.0, 9.0, 0.0, 0.0]), np.diag([0.0, 0.0, 10.0, 10.0])]), 0.05


@pytest.mark.parametrize("p", [1.0, 32 / 31, 8 / 7])
def test_paper_says_that_it_cycles_and_returns_its_last_iterate(p):
    kernels, ridge = oscillating()
    for steps in (30, 31):
        with pytest.warns(
            ConvergenceWarning, match=r"relative duality gap.*cycles with period 2.*best point"
        ):
            result = solve(problem_of(kernels, ridge), LpBall(p), "paper", max_iter=steps)
        assert not result.converged
        assert result.gap > 1e-3
        assert result.cycle == 2
        iterates = algorithm_1(kernels, ridge, p, steps)
        np.testing.assert_allclose(result.weights, iterates[-1], atol=1e-8)
        np.testing.assert_allclose(result.iterates, iterates, atol=1e-8)
        np.testing.assert_allclose(
            result.coef, fisher_coef(kernels, result.weights, ridge), rtol=1e-9
        )
        assert result.gap == pytest.approx(fisher_gap(kernels, result.weights, ridge, p), rel=1e-6)
        # The visited point of lowest objective is kept beside it.
        values = [fisher_value(kernels, b, ridge) for b in iterates]
        assert result.best.value == pytest.approx(min(values), rel=1e-10)
        best = result.best.weights
        assert result.best.gap == pytest.approx(fisher_gap(kernels, best, ridge, p), rel=1e-6)
    # The default solves the very same problem.
    assert solve(problem_of(kernels, ridge), LpBall(p)).gap <= 1e-6


def test_a_cycle_is_factorised_once_a_point():
    kernels, ridge = oscillating()
    with pytest.warns(ConvergenceWarning, match="cycles"):
        result = solve(problem_of(kernels, ridge), LpBall(1), "paper")
    assert (result.n_iter, result.n_evaluations) == (200, 3)


def test_paper_asks_for_more_iterations_where_they_help():
    """At p = 4/3 these converge, slowly."""
    kernels, ridge = np.stack([np.diag([1.0, 0.5]), np.diag([0.4, 1.2])]), 0.5
    problem, ball = problem_of(kernels, ridge), LpBall(4 / 3)
    with pytest.warns(ConvergenceWarning, match=r"still falls: raise max_iter"):
        solve(problem, ball, "paper", tol=1e-12, max_iter=6)
    assert solve(problem, ball, "paper", tol=1e-12).converged


@pytest.mark.parametrize("max_iter", [1, 2, 7, None])
def test_paper_gives_one_kernel_all_the_weight_at_p_1(max_iter, rng):
    kernels = random_kernels(rng, 10, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem_of(kernels, 0.01), LpBall(1), "paper", max_iter=max_iter)
    assert sorted(result.weights) == [0, 0, 0, 1]


def test_paper_stops_at_a_dominant_kernel_and_takes_the_first_of_equal_ones(rng):
    kernels = random_kernels(rng, 10, 4, kinds=("rbf",))
    kernels[2] = kernels[3] = np.ones((10, 10)) * 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem_of(kernels, 0.01), LpBall(1), "paper")
    np.testing.assert_array_equal(result.weights, [0, 0, 1, 0])
    assert result.n_iter == 2


# -- larger and odder problems -------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 8 / 7, 2.0, np.inf])
def test_the_subspace_solver_needs_no_matrix(p, rng):
    """A stack that forms no matrix is only multiplied with: auto certifies the same value."""

    class OnlyProducts(DenseStack):
        can_combine = False

        def combine(self, weights):
            raise AssertionError("must not be called")

    kernels = random_kernels(rng, 80, 5)
    problem = FisherProblem(OnlyProducts(kernels), 8.0)
    result = solve(problem, LpBall(p), tol=1e-8)
    assert result.solver == "subspace"
    assert certificate_gap(kernels, result.weights, result.coef, 8.0, p) <= 1.01e-8
    best = solve(problem_of(kernels, 8.0), LpBall(p), "newton", tol=1e-10)
    assert fisher_value(kernels, result.weights, 8.0) == pytest.approx(best.value, rel=1.1e-8)
    assert result.n_evaluations == 0


@pytest.mark.parametrize("p", [1.0, 1 + 1e-9, 1 + 1e-6, 1.01, 2.0, 1e6, np.inf])
def test_a_zero_kernel_gets_no_weight_or_changes_nothing(p, rng):
    kernels = random_kernels(rng, 12, 4)
    kernels[1] = 0.0
    result = solve(problem_of(kernels, 0.3), LpBall(p))
    assert result.converged
    assert np.isfinite(result.weights).all()
    rest = solve(problem_of(np.delete(kernels, 1, axis=0), 0.3), LpBall(p), tol=1e-9)
    assert result.value == pytest.approx(rest.value, rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 1 + 1e-9, 8 / 7, 2.0, np.inf])
def test_many_kernels_on_few_rows(p, rng):
    """J = 500 kernels of 20 rows: the curvature has rank 20 at most."""
    kernels = random_kernels(rng, 20, 500)
    result = solve(problem_of(kernels, 0.2), LpBall(p))
    assert result.converged
    assert fisher_gap(kernels, result.weights, 0.2, 1.0 if p < 1.0001 else p) <= 1.1e-6


def test_one_kernel_needs_no_search(rng):
    for p in (1.0, 2.0, np.inf):
        result = solve(problem_of(random_kernels(rng, 10, 1), 0.3), LpBall(p))
        assert result.n_iter == 1
        np.testing.assert_allclose(result.weights, [1.0])


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    p=st.one_of(st.sampled_from([1.0, 32 / 31, np.inf]), st.floats(1.0, 20.0)),
    log_ridge=st.floats(-4, 1),
)
def test_the_default_certifies_every_problem(seed, p, log_ridge):
    """Gap in [0, tol], confirmed by independent code, and no random point of the ball is better."""
    kernels, _, _ = random_problem(seed)
    J, n, _ = kernels.shape
    ridge = n * 10**log_ridge
    ball = LpBall(p)
    result = solve(problem_of(kernels, ridge), ball)
    assert 0 <= result.gap <= 1e-6
    assert fisher_gap(kernels, result.weights, ridge, p) <= 1e-6 * (1 + 1e-6) + 1e-8
    rng = np.random.default_rng(seed)
    for _ in range(20):
        b = ball.normalise(rng.exponential(size=J) ** 2)
        assert fisher_value(kernels, b, ridge) >= result.value * (1 - 1.01e-6)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.floats(1.0, 20.0),
    st.sampled_from(sorted(set(FOR_FISHER) - {"paper-cvx"})),
)
def test_the_gap_of_an_unfinished_run_is_still_a_bound(seed, p, solver):
    """Stopped after 3 iterations: value (1 - gap) is below the optimum, value above F."""
    kernels, ridge, _ = random_problem(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = solve(problem_of(kernels, ridge), LpBall(p), solver, max_iter=3)
    best = solve(problem_of(kernels, ridge), LpBall(p), "newton", tol=1e-8)
    assert 0 <= early.gap <= 1
    assert early.value * (1 - early.gap) <= best.value * (1 + 1e-9)
    assert early.value >= fisher_value(kernels, early.weights, ridge) * (1 - 1e-9)

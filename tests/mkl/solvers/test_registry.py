"""How solvers are called: starting weights, limits, abilities that are missing, callbacks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernull.errors import MissingCapabilityError
from kernull.mkl.balls import LpBall, Simplex
from kernull.mkl.problems import Problem
from kernull.mkl.solvers import Record, Solver, solve
from tests.mkl.solvers.fisher_problems import FOR_FISHER, problem_of
from tests.oracles import random_kernels


@pytest.mark.parametrize("solver", FOR_FISHER)
def test_starting_weights_change_the_way_and_not_the_end(solver, rng):
    if solver == "paper-cvx":
        pytest.importorskip("cvxpy")
    kernels, ball = random_kernels(rng, 12, 4), LpBall(4)  # from p = 3 on, paper converges too
    tol = 1e-7
    best = solve(problem_of(kernels, 1.0), ball, "newton", tol=1e-10)
    away = solve(problem_of(kernels, 1.0), ball, solver, tol=tol, init=[9.0, 0.1, 0.1, 3.0])
    assert away.value == pytest.approx(best.value, rel=1e-6)
    there = solve(problem_of(kernels, 1.0), ball, solver, tol=tol, init=7 * best.weights)
    cold = solve(problem_of(kernels, 1.0), ball, solver, tol=tol)
    assert there.n_iter <= max(cold.n_iter, 1)
    if solver != "subspace":  # its first step has the target's direction alone
        assert there.n_iter < cold.n_iter
        assert there.history[0].gap < 1e-3 * cold.history[0].gap + 1e-9


@pytest.mark.parametrize("solver", FOR_FISHER)
@pytest.mark.parametrize(
    "init", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [[1.0, 1.0]]]
)
def test_bad_starting_weights(solver, init):
    if solver == "paper-cvx":
        pytest.importorskip("cvxpy")
    with pytest.raises(ValueError, match=r"^init: got"):
        solve(problem_of(np.stack([np.eye(3)] * 2), 1.0), LpBall(2), solver, init=init)


@pytest.mark.parametrize("solver", ["nwton", "", None, ["newton"]])
def test_unknown_solver(solver):
    with pytest.raises(ValueError, match=r"^solver: got .*expected 'auto' or one of .*newton"):
        solve(problem_of(np.eye(3)[None], 1.0), LpBall(2), solver)


@pytest.mark.parametrize("max_iter", [0, -3, 2.5, "10", True])
def test_bad_iteration_limit(max_iter):
    with pytest.raises(ValueError, match=r"^max_iter: got"):
        solve(problem_of(np.eye(3)[None], 1.0), LpBall(2), max_iter=max_iter)


class BareBall:
    """A ball that offers nothing optional."""

    polyhedral = False

    def __init__(self, p):
        inner = LpBall(p)
        self.oracle, self.support = inner.oracle, inner.support
        self.uniform, self.normalise = inner.uniform, inner.normalise


@pytest.mark.parametrize(
    ("solver", "missing"),
    [("newton", "minimise_model"), ("kloft", "kloft"), ("paper-cvx", "cvxpy_constraints")],
)
def test_a_missing_ability_of_the_ball_is_named(solver, missing):
    problem = problem_of(np.eye(3)[None], 1.0)
    with pytest.raises(MissingCapabilityError, match=rf"{solver}.* needs ball\.{missing}"):
        solve(problem, BareBall(2), solver)


def test_a_missing_ability_of_the_problem_is_named():
    class Bare(Problem):
        J = 2

        def evaluate(self, weights):
            raise AssertionError("must not be reached")

    with pytest.raises(MissingCapabilityError, match=r"subspace.* needs problem\.restrict"):
        solve(Bare(), LpBall(2), "subspace")


def test_auto_finds_a_solver_for_a_bare_ball(rng):
    kernels = random_kernels(rng, 10, 3)
    result = solve(problem_of(kernels, 1.0), BareBall(2), tol=1e-8)
    assert result.solver == "frank-wolfe"
    assert result.value == pytest.approx(
        solve(problem_of(kernels, 1.0), LpBall(2), tol=1e-8).value, rel=1e-7
    )


def test_kloft_does_not_run_on_the_simplex_object():
    with pytest.raises(MissingCapabilityError, match="kloft"):
        solve(problem_of(np.eye(3)[None], 1.0), Simplex(), "kloft")


@pytest.mark.parametrize("solver", ["newton", "subspace", "frank-wolfe", "auto"])
def test_the_simplex_and_the_l1_ball_have_the_same_optimum(solver, rng):
    kernels = random_kernels(rng, 14, 5)
    one = solve(problem_of(kernels, 0.2), Simplex(), solver, tol=1e-9)
    two = solve(problem_of(kernels, 0.2), LpBall(1), "newton", tol=1e-9)
    assert one.value == pytest.approx(two.value, rel=1e-8)


def test_history_and_callback_tell_the_same_story(rng):
    kernels, seen = random_kernels(rng, 12, 4), []
    result = solve(problem_of(kernels, 0.1), LpBall(4 / 3), "newton", callback=seen.append)
    assert tuple(seen[1:]) == result.history[1:]
    assert all(isinstance(record, Record) for record in seen)
    assert result.n_iter == len(seen)
    assert np.isnan(seen[0].change)
    assert all(record.change >= 0 for record in seen[1:])
    assert result.history[-1].gap == result.gap


def test_newton_at_its_limit_warns_with_the_gap(rng):
    kernels = random_kernels(rng, 12, 6)
    with pytest.warns(ConvergenceWarning, match=r"'newton' stopped after 1 iterations.*tol=1e-12"):
        result = solve(problem_of(kernels, 0.01), LpBall(1), "newton", tol=1e-12, max_iter=1)
    assert not result.converged


def test_a_solver_brings_its_tolerance(rng):
    kernels = random_kernels(rng, 12, 6)
    fine = solve(problem_of(kernels, 0.01), LpBall(2), Solver("newton", tol=1e-12))
    rough = solve(problem_of(kernels, 0.01), LpBall(2), Solver("frank-wolfe", tol=1e-2), tol=1e-12)
    assert fine.gap <= 1e-12 < rough.gap <= 1e-2
    assert fine.solver == "newton"
    with pytest.warns(ConvergenceWarning, match="after 1 iterations"):
        solve(problem_of(kernels, 0.01), LpBall(1), Solver("newton", tol=1e-12, max_iter=1))


class Kloft:
    """A user's solver: Kloft's update, by what a `Run` offers."""

    def solve(self, run):
        weights = run.weights
        for _ in range(run.max_iter):
            point = run.problem.evaluate(weights)
            if run.see(point) <= run.tol:
                break
            weights = run.ball.kloft(point.u, weights)
        return run.result("mine", advice="Raise max_iter.")


def test_a_users_solver_is_certified_like_any(rng):
    kernels = random_kernels(rng, 12, 4)
    best = solve(problem_of(kernels, 0.1), LpBall(2), "newton", tol=1e-10)
    result = solve(problem_of(kernels, 0.1), LpBall(2), Kloft(), tol=1e-7)
    assert result.solver == "mine"
    assert result.converged
    assert result.gap <= 1e-7
    assert result.n_evaluations == result.n_iter > 1
    assert result.value == pytest.approx(best.value, rel=1e-7)
    with pytest.warns(ConvergenceWarning, match="'mine' stopped after 2 iterations"):
        solve(problem_of(kernels, 0.1), LpBall(2), Kloft(), tol=1e-12, max_iter=2)

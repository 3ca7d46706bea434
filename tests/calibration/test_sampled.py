"""Leave-one-out on a sample equals refits, and its certificate holds."""

from __future__ import annotations

import numpy as np
import pytest

from kernull import FisherProblem, LpBall, solve
from kernull.calibration import leave_one_out, sampled_leave_one_out
from kernull.stacks import KernelSet, TiledStack


@pytest.fixture
def bank(rng):
    return KernelSet.fit(rng.normal(size=(130, 6)), {"a": np.arange(3), "b": np.arange(3, 6)})


@pytest.mark.parametrize("delta", [1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_the_closed_form(bank, delta, weighted, rng):
    w = rng.uniform(0.5, 3.0, size=130) if weighted else None
    problem = FisherProblem(TiledStack(bank), delta * 130, row_weight=w)
    result = solve(problem, LpBall(2), "subspace", tol=1e-12)
    dense = FisherProblem(bank.stack(), delta * 130, row_weight=w)
    exact = leave_one_out(dense, result.weights, result.coef, row_weight=w)
    for tol in (1e-2, 1e-9):
        sampled = sampled_leave_one_out(
            problem, result.weights, result.coef, result.basis, row_weight=w, rows=40, tol=tol
        )
        off = np.abs(sampled.projections - exact)[sampled.index]
        assert len(sampled.index) == 40
        assert (sampled.error <= tol).all()
        # The certificate is of the inverse's entry; with weights its share in 1 - y is smaller.
        assert (off <= sampled.error * np.abs(1 - exact[sampled.index]) * 1.01 + 1e-9).all()


def test_it_equals_refits(bank):
    """Without row i, at the same weights and ridge, row i lands where it says."""
    problem = FisherProblem(TiledStack(bank), 1.3)
    result = solve(problem, LpBall(2), "subspace", tol=1e-10)
    K = bank.stack().combine(result.weights)
    coef = np.linalg.solve(K + 1.3 * np.eye(130), np.ones(130))
    sampled = sampled_leave_one_out(problem, result.weights, coef, result.basis, rows=5, tol=1e-10)
    for i in sampled.index:
        others = np.delete(np.arange(130), i)
        a = np.linalg.solve(K[np.ix_(others, others)] + 1.3 * np.eye(129), np.ones(129))
        assert sampled.projections[i] == pytest.approx(K[i, others] @ a, abs=1e-8)


@pytest.mark.filterwarnings("error")
def test_a_basis_of_the_whole_space_leaves_no_holes():
    """Seven different rows, three of them twice: the basis soon holds every e_i that counts."""
    X = np.arange(30.0).reshape(10, 3) % 7
    bank = KernelSet.fit(X, {"all": np.arange(3)}, widths=0.5)
    problem = FisherProblem(TiledStack(bank), 0.1)
    result = solve(problem, LpBall(2), "subspace", tol=1e-12)
    found = sampled_leave_one_out(problem, result.weights, result.coef, result.basis)
    truth = leave_one_out(FisherProblem(bank.stack(), 0.1), result.weights, result.coef)
    np.testing.assert_allclose(found.projections, truth, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_outside_the_sample_are_neither_above_nor_below_it(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)) @ rng.normal(size=(3, 8)) + 0.5 * rng.normal(size=(900, 8))
    weight = rng.uniform(0.5, 2.0, 900) if weighted else None
    bank = KernelSet.fit(X, {"all": np.arange(8)}, widths=0.3)
    problem = FisherProblem(TiledStack(bank), 0.5, row_weight=weight)
    result = solve(problem, LpBall(2), "subspace", tol=1e-8)
    b, coef = result.weights, result.coef
    found = sampled_leave_one_out(
        problem, b, coef, result.basis, row_weight=weight, rows=300
    ).projections
    dense = FisherProblem(bank.stack(), 0.5, row_weight=weight)
    exact = leave_one_out(dense, b, coef, row_weight=weight)
    low = np.quantile(exact, 0.1)
    assert np.mean(found <= low) == pytest.approx(0.1, abs=0.015)
    assert np.median(np.abs(found - exact)) <= 0.1 * exact.std()


def test_without_a_basis_it_builds_one(bank):
    problem = FisherProblem(bank.stack(), 1.3)
    result = solve(problem, LpBall(2), "newton")
    sampled = sampled_leave_one_out(problem, result.weights, result.coef, tol=1e-9)
    exact = leave_one_out(problem, result.weights, result.coef)
    np.testing.assert_allclose(sampled.projections, exact, atol=1e-8)


def test_rows_outside_the_sample_are_estimated_to_the_share_of_the_ridge(rng):
    """1 / (rho + k_ii) <= G_ii <= 1 / rho, and the estimate lies between."""
    n = 700
    bank = KernelSet.fit(rng.normal(size=(n, 4)), {"a": np.arange(4)}, widths=1.0)
    problem = FisherProblem(TiledStack(bank), 0.05 * n)
    result = solve(problem, LpBall(2), "subspace", tol=1e-8)
    sampled = sampled_leave_one_out(problem, result.weights, result.coef, result.basis, rows=50)
    exact = leave_one_out(FisherProblem(bank.stack(), 0.05 * n), result.weights, result.coef)
    bound = np.abs(1 - exact) * float(result.weights.sum()) / (0.05 * n)
    off = np.abs(sampled.projections - exact)
    assert (off <= 1.01 * bound).all()
    assert np.median(off) < 0.1 * np.median(bound)

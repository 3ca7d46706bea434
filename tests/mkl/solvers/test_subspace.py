"""The subspace solver's certificate, restarts, warm starts and preconditioner."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernull import FisherProblem, LpBall, solve
from kernull.errors import MemoryLimitError
from kernull.mkl.solvers import subspace
from kernull.operators import Budget, DenseStack, Stack, TiledStack, planner
from kernull.views import KernelSet

DELTAS = (1e-1, 3e-2, 1e-2, 1e-3, 1e-4)


class Watched(FisherProblem):
    """Keeps every point that was certified."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = []

    def certify(self, weights, a, Ka, curvature=None):
        self.seen.append((weights, a))
        return super().certify(weights, a, Ka, curvature)


class Counted(Stack):
    """A stack that forms no matrix and counts its passes."""

    def __init__(self, stack):
        self.stack, self.scale, self.shape, self.passes = stack, stack.scale, stack.shape, 0

    def products(self, V):
        self.passes += 1
        return self.stack.products(V)

    def diagonal(self):
        return self.stack.diagonal()

    def rows(self, index):
        return self.stack.rows(index)


def random_kernel_set(seed):
    rng = np.random.default_rng(seed)
    n, J, d = int(rng.integers(60, 300)), int(rng.integers(1, 7)), int(rng.integers(1, 6))
    latent = rng.normal(size=(n, 3))
    X = np.hstack([np.tanh(latent @ rng.normal(size=(3, d))) for _ in range(J)])
    X += rng.uniform(0.05, 1) * rng.normal(size=X.shape)
    views = {f"v{j}": np.arange(j * d, j * d + d) for j in range(J)}
    return KernelSet.fit(X, views, widths=float(rng.choice([0.25, 0.5, 1.0])))


def dense_gap(K, ridge, b, a, p):
    """F(b) - D(a) with a scaled at its best, by dense linear algebra alone."""
    n = K.shape[1]
    F = float(np.linalg.solve(np.tensordot(b, K, 1) + ridge * np.eye(n), np.ones(n)).sum())
    u = np.array([a @ k @ a for k in K])
    q = np.inf if p == 1 else (1 if np.isinf(p) else p / (p - 1))
    return F, F - a.sum() ** 2 / (ridge * (a @ a) + np.linalg.norm(u, q))


@pytest.mark.parametrize("seed", range(50))
def test_the_certificate_is_never_below_the_true_gap(seed):
    rng = np.random.default_rng(1000 + seed)
    kernel_set, delta = random_kernel_set(seed), DELTAS[seed % len(DELTAS)]
    p = float(rng.choice([1.0, 8 / 7, 2.0, 10.0, np.inf]))
    problem = Watched(TiledStack(kernel_set), delta * kernel_set.n)
    result = solve(problem, LpBall(p), "subspace", tol=1e-6)
    K = DenseStack.of(kernel_set).kernels
    assert len(problem.seen) == len(result.history)
    for (b, a), record in zip(problem.seen, result.history, strict=True):
        F, true = dense_gap(K, problem.ridge, b, a, p)
        claimed = record.gap * record.value
        assert record.value >= F * (1 - 1e-12)
        assert claimed >= true - 1e-12 * F
    if true > 1e-12 * F:  # below, the ratio is one of rounding errors
        print(f"delta={delta:g} p={p:g}: certificate / true gap = {claimed / true:.3g}")
        assert delta < 1e-2 or claimed <= 10 * true


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_restarts_change_passes_but_not_the_answer(p):
    kernel_set = random_kernel_set(3)
    free, tight = Counted(DenseStack.of(kernel_set)), Counted(DenseStack.of(kernel_set))
    a = solve(FisherProblem(free, 1e-3 * kernel_set.n), LpBall(p), "subspace", tol=1e-8)
    b = solve(
        FisherProblem(tight, 1e-3 * kernel_set.n),
        LpBall(p),
        "subspace",
        tol=1e-8,
        budget=Budget(10),
    )
    assert a.basis.m > 10 >= b.basis.m
    assert b.gap <= 1e-8
    assert tight.passes > free.passes
    assert b.value == pytest.approx(a.value, rel=2e-8)


def test_pressing_keeps_products_exact():
    kernel_set = random_kernel_set(5)
    problem = FisherProblem(DenseStack.of(kernel_set), 0.01 * kernel_set.n)
    basis = solve(
        FisherProblem(Counted(DenseStack.of(kernel_set)), 0.01 * kernel_set.n),
        LpBall(2),
        "subspace",
        tol=1e-10,
    ).basis
    y = np.linspace(1, 2, basis.m)
    before = y @ basis.Q
    basis.press(np.ones(kernel_set.J), y, 4)
    assert basis.m == 4
    np.testing.assert_allclose(basis.Q @ basis.Q.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(basis.KQ, problem.products(basis.Q.T).transpose(0, 2, 1), atol=1e-9)
    np.testing.assert_allclose(basis.T, basis.KQ @ basis.Q.T, atol=1e-9)
    for kept in (before, np.ones(kernel_set.n)):  # the solution and the target
        np.testing.assert_allclose((basis.Q @ kept) @ basis.Q, kept, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_preconditioner_saves_passes(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    kernel_set = KernelSet.fit(X, {"a": np.arange(3), "b": np.arange(3, 6)}, widths=1.0)
    w = rng.uniform(0.5, 2, size=600) if weighted else None
    plain, helped = Counted(DenseStack.of(kernel_set)), Counted(DenseStack.of(kernel_set))
    a = solve(FisherProblem(plain, 0.06, row_weight=w), LpBall(2), "subspace")
    problem = FisherProblem(helped, 0.06, row_weight=w)
    b = solve(problem, LpBall(2), "subspace", budget=Budget(preconditioner_rows=150))
    assert b.gap <= 1e-6
    assert b.value == pytest.approx(a.value, rel=3e-6)
    assert 2 * helped.passes <= plain.passes


def test_too_few_columns_still_certify_what_they_have():
    kernel_set = random_kernel_set(11)
    problem = FisherProblem(Counted(DenseStack.of(kernel_set)), 1e-5 * kernel_set.n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem, LpBall(2), "subspace", budget=Budget(8), max_iter=20)
    F, true = dense_gap(
        DenseStack.of(kernel_set).kernels, problem.ridge, result.weights, result.coef, 2.0
    )
    assert result.gap * result.value >= true - 1e-12 * F


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [29, 30, 31, 33])
def test_newton_takes_over_within_the_steps_asked_for(max_iter):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 120, 120)) / np.sqrt(120)
    problem = FisherProblem(DenseStack(A @ A.transpose(0, 2, 1)), 1e-4)
    result = solve(problem, LpBall(1), "subspace", tol=1e-13, max_iter=max_iter)
    assert result.n_iter == len(result.history) <= max_iter
    assert (problem.n_evaluations > 0) == (max_iter > 30)  # Newton's, after the 30th column


def test_the_problem_restricts_itself():
    """What a problem declares is what the solver calls, without another pass."""
    kernel_set = random_kernel_set(3)

    class Noting(FisherProblem):
        calls = 0

        def restrict(self, Q, products=None, matrices=None):
            self.calls += 1
            passes = self.stack.passes
            small = super().restrict(Q, products, matrices)
            assert self.stack.passes == passes
            own = super().restrict(Q)
            np.testing.assert_allclose(small.stack.kernels, own.stack.kernels, atol=1e-9)
            np.testing.assert_allclose(small.target, own.target)
            return small

    problem = Noting(Counted(DenseStack.of(kernel_set)), 1e-2 * kernel_set.n)
    result = solve(problem, LpBall(2), "subspace", tol=1e-6)
    assert result.converged
    assert problem.calls == result.n_iter


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("planned", [8, 20, 24, 40, 50])
def test_a_planned_number_of_columns_is_kept(planned, monkeypatch):
    """Neither more columns nor more room than was planned, half as much again while it grows."""
    kernel_set = random_kernel_set(4)
    rooms, reserve = [8], subspace.Basis._reserve

    def watch(basis, m):
        reserve(basis, m)
        if len(basis._Q) != rooms[-1]:
            rooms.append(len(basis._Q))

    monkeypatch.setattr(subspace.Basis, "_reserve", watch)
    problem = FisherProblem(TiledStack(kernel_set), 1e-5 * kernel_set.n)
    result = solve(problem, LpBall(2), "subspace", tol=1e-13, max_iter=70, budget=Budget(planned))
    assert result.n_iter > planned
    assert max(rooms) == planned
    assert all(old + new <= 1.5 * planned or new <= 16 for old, new in pairwise(rooms))


def test_the_planner_alone_says_how_many_columns():
    assert Budget().max_columns == planner.BASIS_COLUMNS
    for storage in ("auto", "tiled", "nystroem", "dask"):
        for limit in np.geomspace(1e6, 1e9, 30):
            try:
                plan = planner.plan_storage(storage, 10, 20_000, 8, int(limit))
            except MemoryLimitError:
                continue
            assert planner.FEWEST_COLUMNS <= plan.max_columns <= planner.BASIS_COLUMNS

"""Every model of the shared path against fits of its own and against scikit-learn."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from kernull.mkl import PAPER_DELTAS, PAPER_PS, path
from kernull.mkl.balls import LpBall, MixedBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import CrossKernels, DenseStack
from kernull.operators.nystroem import LowRankStack
from kernull.operators.tiled import TiledStack
from kernull.views import KernelSet
from tests.oracles import cvxpy_dual

module = import_module("kernull.mkl.path")  # the package has the function by this name


def kernel_set_of(X, size, width):
    views = {f"{i}": np.arange(i, min(i + size, X.shape[1])) for i in range(0, X.shape[1], size)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelSet.fit(X, views, widths=width)


def wine():
    X, y = load_wine(return_X_y=True)
    return X[y == 0], X[y != 0], 1, 0.25


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[y == 1][:300], X[y == 0][:50], 3, 0.5


def digits():
    X, y = load_digits(return_X_y=True)
    return X[y < 2], X[y == 8][:50], 8, 1.0


SETS = {"wine": wine, "cancer": cancer, "digits": digits}


@pytest.fixture(scope="module", params=sorted(SETS))
def solved(request):
    """A path at gap 1e-4 and one fit a model, to a gap that is as good as zero."""
    X, new, size, width = SETS[request.param]()
    kernel_set = kernel_set_of(X, size, width)
    stack = DenseStack.of(kernel_set)
    found = path(stack, PAPER_PS, PAPER_DELTAS, tol=1e-4)
    fits = {}
    for k, delta in enumerate(PAPER_DELTAS):
        weights = None
        for i in reversed(range(len(PAPER_PS))):
            problem = FisherProblem(stack, delta * stack.n)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # 1e-10 is beyond rounding
                fit = solve(problem, LpBall(PAPER_PS[i]), "newton", tol=1e-10, init=weights)
            assert fit.gap < 1e-7
            fits[i, k] = fit
            weights = fit.weights
    return kernel_set, stack, new, found, fits


def test_the_whole_grid_is_certified(solved):
    _, stack, _, found, _ = solved
    assert found.shape == (9, 7)
    assert found.gaps.max() <= 1e-4
    assert (found.gaps >= 0).all()
    assert found.weights.shape == (9, 7, stack.J)
    assert (found.weights >= 0).all()
    for i, p in enumerate(found.ps):
        norms = np.linalg.norm(found.weights[i], ord=p if p < 1e5 else np.inf, axis=1)
        np.testing.assert_allclose(norms, 1.0, rtol=1e-4)


def test_every_model_is_within_its_gap_of_its_own_fit(solved):
    _, stack, _, found, fits = solved
    for (i, k), fit in fits.items():
        # F at the path's weights, computed afresh, against the optimum.
        at = FisherProblem(stack, found.deltas[k] * stack.n).evaluate(found.weights[i, k]).value
        assert at >= fit.value * (1 - 1e-7)
        assert at <= found.values[i, k] * (1 + 1e-9)  # the value is an upper bound of F
        assert found.values[i, k] - fit.value <= (found.gaps[i, k] + 1e-7) * found.values[i, k]


def test_scores_agree_with_fits_for_p_above_one(solved):
    kernel_set, stack, new, _, fits = solved
    tight = path(stack, PAPER_PS[1:], PAPER_DELTAS, tol=1e-9)
    cross = CrossKernels(kernel_set, new)
    scores = tight.scores(cross)
    for (i, k), fit in fits.items():
        if i == 0:
            continue  # at p = 1 the weights need not be unique
        expected = fit.weights @ cross.products(fit.coef)
        # The ball's curvature is p - 1: a gap fixes the weights to about sqrt(gap / (p - 1)).
        slack = 5 * np.sqrt(1e-9 / min(PAPER_PS[i] - 1, 1.0)) * np.abs(expected).max()
        np.testing.assert_allclose(scores[i - 1, k], expected, rtol=0, atol=slack)


def test_coarse_scores_stay_near_those_of_fits(solved):
    kernel_set, _, new, found, fits = solved
    cross = CrossKernels(kernel_set, new)
    scores = found.scores(cross)
    for (i, k), fit in fits.items():
        if i > 0:
            expected = fit.weights @ cross.products(fit.coef)
            assert np.abs(scores[i, k] - expected).max() < 0.05


def test_infinite_p_is_kernel_ridge_on_the_sum():
    X, _, size, width = digits()
    stack = DenseStack.of(kernel_set_of(X, size, width))
    assert stack.n > module.DIRECT_ROWS  # so the subspace is at work
    found = path(stack, ps=[np.inf], deltas=[1e-4, 1e-2, 1.0], tol=1e-10)
    for k, delta in enumerate(found.deltas):
        oracle = KernelRidge(alpha=delta * stack.n, kernel="precomputed")
        oracle.fit(stack.combine(np.ones(stack.J)), np.ones(stack.n))
        np.testing.assert_allclose(found.weights[0, k], 1.0)
        error = np.abs(found.coef[0, k] - oracle.dual_coef_).max()
        assert error < 1e-4 * np.abs(oracle.dual_coef_).max()


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_cvxpy_agrees(p):
    pytest.importorskip("cvxpy")
    X, _, _, _ = wine()
    stack = DenseStack.of(kernel_set_of(X[:40], 3, 0.5))
    found = path(stack, ps=[p], deltas=[1e-2, 1e-1], tol=1e-8)
    for k, delta in enumerate(found.deltas):
        value, _ = cvxpy_dual(stack.kernels, delta * stack.n, p)
        assert abs(found.values[0, k] / value - 1) < 1e-5


def test_a_stack_that_never_forms_a_matrix_gives_the_same_models():
    X, new, size, width = digits()
    kernel_set = kernel_set_of(X, size, width)
    tiles = TiledStack(kernel_set)
    assert not tiles.can_combine
    dense = path(DenseStack.of(kernel_set), ps=[1, 2, 8], deltas=[1e-3, 1e-1], tol=1e-6)
    tiled = path(tiles, ps=[1, 2, 8], deltas=[1e-3, 1e-1], tol=1e-6)
    assert tiled.gaps.max() <= 1e-6
    np.testing.assert_allclose(tiled.values, dense.values, rtol=2e-6)
    cross = CrossKernels(kernel_set, new)
    np.testing.assert_allclose(tiled.scores(cross)[1:], dense.scores(cross)[1:], atol=2e-3)


@pytest.mark.torch
def test_a_torch_stack_gives_the_same_models():
    from kernull.operators.torch import TorchTiledStack

    X, _, size, width = digits()
    kernel_set = kernel_set_of(X, size, width)
    dense = path(DenseStack.of(kernel_set), ps=[1, 2], deltas=[1e-3, 1e-1], tol=1e-6)
    torch = path(TorchTiledStack(kernel_set), ps=[1, 2], deltas=[1e-3, 1e-1], tol=1e-6)
    assert torch.gaps.max() <= 1e-6
    np.testing.assert_allclose(torch.values, dense.values, rtol=2e-6)


def test_landmarks_score_as_their_own_stack_does():
    X, _, size, width = digits()
    kernel_set = kernel_set_of(X, size, width)
    landmarks = np.arange(0, len(X), 8)
    stack = LowRankStack(TiledStack(kernel_set), landmarks)
    found = path(stack, ps=[1, 2], deltas=[1e-2, 1.0], tol=1e-6)
    assert found.gaps.max() <= 1e-6
    projections = np.einsum("pdj,jnpd->pdn", found.weights, _each(stack, found.coef))
    scores = found.scores(CrossKernels(kernel_set.take(landmarks), X))
    np.testing.assert_allclose(scores, projections, atol=1e-8)


def _each(stack, coef):
    flat = coef.reshape(-1, stack.n)
    return stack.products(flat.T).reshape(stack.J, stack.n, *coef.shape[:2])


def test_other_families_of_balls():
    X, _, size, width = wine()
    stack = DenseStack.of(kernel_set_of(X, size, width))
    groups = [f"{j % 3}" for j in range(stack.J)]
    found = path(stack, [1.0, 2.0], [1e-2, 1.0], tol=1e-6, ball=lambda p: MixedBall(p, 2.0, groups))
    assert found.gaps.max() <= 1e-6
    for (i, k), value in np.ndenumerate(found.values):
        problem = FisherProblem(stack, found.deltas[k] * stack.n)
        fit = solve(problem, MixedBall(found.ps[i], 2.0, groups), tol=1e-8)
        assert abs(value / fit.value - 1) < 2e-6


def test_a_full_basis_is_no_dead_end():
    X, _, size, width = wine()
    stack = TiledStack(kernel_set_of(X[:30], size, width))
    found = path(stack, ps=[1, 2, 8], deltas=[1e-4, 1e-1], tol=1e-8)
    assert found.n_columns <= 30
    assert found.gaps.max() <= 1e-8


def test_what_the_subspace_leaves_is_finished_one_by_one(monkeypatch):
    X, _, size, width = digits()
    kernel_set = kernel_set_of(X, size, width)
    monkeypatch.setattr(module, "GRID_HANDOVER", 0.02)
    monkeypatch.setattr(module, "SHARED_COLUMNS", 6)
    for stack in (DenseStack.of(kernel_set), TiledStack(kernel_set)):
        found = path(stack, [2.0], [1e-3, 1.0], tol=1e-6)
        assert found.n_finished >= 1
        assert found.gaps.max() <= 1e-6


def test_passes_are_few():
    rng = np.random.default_rng(0)
    stack = DenseStack.of(kernel_set_of(rng.standard_normal((400, 12)), 4, 1.0))
    calls, combined = [], []

    class Counting(DenseStack):
        def products(self, V):
            calls.append(V.shape)
            return super().products(V)

        def combine(self, weights, **half):
            combined.append(weights)
            return super().combine(weights, **half)

    found = path(Counting(stack.kernels), PAPER_PS, PAPER_DELTAS[1:])
    assert len(calls) == found.n_passes < 15
    assert len(combined) <= 1  # one preconditioner for the whole grid
    assert found.n_finished == 0
    assert found.n_columns < 100
    assert found.gaps.max() <= 1e-4


def test_one_factorisation_cuts_the_passes(monkeypatch):
    rng = np.random.default_rng(0)
    stack = DenseStack.of(kernel_set_of(rng.standard_normal((400, 12)), 4, 1.0))
    preconditioned = path(stack, PAPER_PS, PAPER_DELTAS)
    monkeypatch.setattr(module, "PLAIN_PASSES", 10**6)
    plain = path(stack, PAPER_PS, PAPER_DELTAS)
    assert preconditioned.n_passes < 0.7 * plain.n_passes
    assert max(preconditioned.gaps.max(), plain.gaps.max()) <= 1e-4
    # Both are within their gaps of the same optimum.
    np.testing.assert_allclose(preconditioned.values, plain.values, rtol=2e-4)


def test_a_ridge_lost_in_rounding_leaves_the_path_without_preconditioner(monkeypatch):
    X, _, size, width = digits()
    monkeypatch.setattr(module, "PLAIN_PASSES", 1)

    class Unsound(DenseStack):
        def combine(self, weights, **half):
            return super().combine(weights, **half) - 1e3 * np.eye(self.n)

    found = path(
        Unsound(DenseStack.of(kernel_set_of(X, size, width)).kernels), [2.0], [1e-2], tol=1e-4
    )
    assert found.gaps.max() <= 1e-4
    assert found.n_finished == 0


def test_the_memory_bounds_the_basis(monkeypatch):
    X, _, size, width = digits()
    stack = TiledStack(kernel_set_of(X, size, width), memory_limit=10**9)
    assert module._column_limit(stack) == module.SHARED_COLUMNS
    column = 1.5 * 8 * stack.n * (stack.J + 1)
    free = int(column * (40 + module.CHUNK)) + 1
    monkeypatch.setattr(module, "parse_memory_limit", lambda limit: free)
    assert module._column_limit(stack) == 40
    found = path(stack, [1.0, 2.0], [1e-4], tol=1e-6)
    assert found.n_columns <= 40
    assert found.gaps.max() <= 1e-6


def test_row_weights_are_those_of_a_fit():
    X, _, size, width = wine()
    stack = DenseStack.of(kernel_set_of(X, size, width))
    weight = np.random.default_rng(0).uniform(0.5, 2.0, stack.n)
    found = path(stack, ps=[2], deltas=[0.01], tol=1e-9, sample_weight=weight)
    problem = FisherProblem(stack, 0.01 * weight.sum(), row_weight=weight)
    fit = solve(problem, LpBall(2), tol=1e-9)
    np.testing.assert_allclose(found.coef[0, 0], fit.coef, atol=1e-4 * np.abs(fit.coef).max())


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"ps": []}, "ps: got an empty grid"),
        ({"deltas": []}, "deltas: got an empty grid"),
        ({"deltas": [0.0, 0.1]}, "deltas: got 0.0; expected positive numbers"),
        ({"deltas": [np.inf]}, "deltas: got inf"),
        ({"ps": [0.5]}, r"ps: got 0.5; expected numbers p in \[1, inf\]"),
        ({"ps": ["two"]}, "ps: got 'two'"),
        ({"tol": 0.0}, "tol: got 0.0"),
        ({"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_bad_grids_are_named(grid, message):
    with pytest.raises(ValueError, match=message):
        path(np.eye(5)[None], **grid)

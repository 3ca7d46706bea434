"""What makes many rows quick on a device, tested on the CPU: parts, coarse stacks, landmarks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import Budget, DenseStack
from kernull.views import KernelSet
from tests.needs import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

from kernull.operators import torch as torch_stacks  # noqa: E402
from kernull.operators.torch import (  # noqa: E402
    WHOLE_ROWS,
    Packed,
    Pieces,
    TorchTiledStack,
    unit_of,
)

pytestmark = pytest.mark.torch


def products_of_parts(left: Packed, right: Packed) -> np.ndarray:
    """x'y as the fused kernel adds it up, in float64."""
    x, y, pieces = left.parts.double(), right.parts.double(), left.pieces
    out, at = torch.zeros(len(x), len(y), dtype=torch.float64), 0
    for size in (pieces.sizes[0],) * pieces.chunks or pieces.sizes:
        xh, xl = x[:, at : at + size], x[:, at + size : at + 2 * size]
        yh, yl = y[:, at : at + size], y[:, at + size : at + 2 * size]
        out += xh @ yl.T + xl @ yh.T + xh @ yh.T
        at += 2 * size
    rest = pieces.rest
    out += x[:, at : at + rest] @ y[:, at + rest : at + 2 * rest].T
    return np.asarray(out[: left.n, : right.n])


@given(d=st.integers(1, 300), scale=st.sampled_from([1e-20, 1.0, 1e6]), seed=st.integers(0, 99))
def test_products_of_two_float16_parts_have_the_digits_of_float32(d, scale, seed):
    rng = np.random.default_rng(seed)
    x, y = (torch.as_tensor(rng.normal(size=(m, d)) * scale).float() for m in (3, 5))
    unit = unit_of(x, y)
    left, right = Packed.of(x, unit), Packed.of(y, unit)
    assert left.parts.shape == (WHOLE_ROWS, left.pieces.width)
    truth = x.double().numpy() @ y.double().numpy().T
    size = np.linalg.norm(x.double(), axis=1)[:, None] * np.linalg.norm(y.double(), axis=1)
    assert np.abs(products_of_parts(left, right) * unit**2 - truth).max() <= 2**-20 * size.max()
    norms = left.norms.numpy() * unit**2
    np.testing.assert_allclose(norms[:3], 0.5 * (x.double().numpy() ** 2).sum(1), rtol=1e-6)
    assert np.isinf(norms[3:]).all()  # so that the padding has kernel values of nought


@pytest.mark.parametrize(
    ("d", "products"), [(5, 48), (16, 48), (20, 64), (26, 80), (30, 96), (100, 304), (128, 384)]
)
def test_features_are_hardly_padded(d, products):
    pieces = Pieces.of(d)
    assert 3 * sum(pieces.sizes) + pieces.rest == products


@pytest.fixture
def problem():
    """Five hundred rows, three views with scales far apart, rows that count differently."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) + 3.0
    views = {"a": np.arange(2), "b": np.arange(2, 4), "c": np.arange(4, 6)}
    kernels = KernelSet.fit(X, views, widths=(0.5,), scaling="none")
    stack = TorchTiledStack.from_kernel_set(kernels).rescaled(np.array([1.0, 3.0, 0.5]))
    return FisherProblem(stack, 1e-3 * 500, row_weight=rng.uniform(0.5, 2.0, 500))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_landmarks_invert_the_kernels_that_they_approximate(problem, dtype):
    """Against the inverse of rho I + C W^-1 C' itself; all rows as landmarks: of rho I + K_b."""
    weights, n = np.array([0.2, 0.5, 0.8]), problem.n
    K = np.tensordot(weights, problem.products(np.eye(n)), axes=1)
    r = np.random.default_rng(1).normal(size=n)
    stack = TorchTiledStack(
        [part.to(dtype) for part in problem.stack.rows_],
        problem.stack.kernels,
        scale=problem.stack.scale,
    )
    some = np.sort(np.random.default_rng(2).choice(n, 60, replace=False))
    for index, approximate in (
        (some, K[:, some] @ np.linalg.lstsq(K[np.ix_(some, some)], K[some], rcond=1e-12)[0]),
        (np.arange(n), K),
    ):
        found = stack.landmark_inverse(index, problem.ridge, problem.row_scale)(weights, r)
        exact = problem.ridge * np.linalg.solve(problem.ridge * np.eye(n) + approximate, r)
        error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
        # C'C squares the condition: float32 keeps half of its digits, fewer with every landmark.
        bounds = {torch.float64: 1e-6, torch.float32: 2e-3 if index is some else 3e-2}
        assert error <= bounds[dtype]


def test_many_rows_have_a_preconditioner_and_need_fewer_passes(problem, monkeypatch):
    plain = solve(problem, LpBall(2), "subspace", tol=1e-8)
    assert torch_stacks.preconditioner_rows(problem.n) == 0
    monkeypatch.setattr(torch_stacks, "MANY_ROWS", 400)
    monkeypatch.setattr(torch_stacks, "LANDMARKS", 200)
    budget = Budget(preconditioner_rows=torch_stacks.preconditioner_rows(problem.n))
    assert budget.preconditioner_rows == 200
    quick = solve(problem, LpBall(2), "subspace", tol=1e-8, budget=budget)
    assert quick.converged
    assert quick.n_iter <= plain.n_iter // 2
    assert quick.value == pytest.approx(plain.value, rel=1e-7)
    np.testing.assert_allclose(quick.weights, plain.weights, atol=1e-3)


def test_a_coarse_stack_leaves_one_exact_pass(problem, monkeypatch):
    plain = solve(problem, LpBall(2), "subspace", tol=1e-6)
    assert problem.stack.coarse() is None  # of the CPU
    rows = [part.float() for part in problem.stack.rows_]
    near = TorchTiledStack(rows, problem.stack.kernels, scale=problem.stack.scale)
    monkeypatch.setattr(problem.stack, "coarse", lambda: near, raising=False)
    passes = []
    original = problem.stack.products
    monkeypatch.setattr(
        problem.stack, "products", lambda V: (passes.append(V.shape), original(V))[1]
    )
    quick = solve(problem, LpBall(2), "subspace", tol=1e-6)
    assert len(passes) == 1
    assert quick.basis.m == passes[0][1] > 2  # the whole subspace: leaving rows out needs it
    assert quick.gap <= 1e-6
    assert quick.value == pytest.approx(plain.value, rel=2e-6)


def test_a_coarse_stack_that_fails_does_no_harm(problem, monkeypatch):
    class Broken(TorchTiledStack):
        def products(self, V):
            return -super().products(V)  # no kernel at all

    near = Broken(problem.stack.rows_, problem.stack.kernels)
    monkeypatch.setattr(problem.stack, "coarse", lambda: near, raising=False)
    assert solve(problem, LpBall(2), "subspace", tol=1e-6).converged


@pytest.mark.cuda
def test_float64_on_a_gpu_is_solved_in_float32_first():
    rng = np.random.default_rng(0)
    kernels = KernelSet.fit(
        rng.normal(size=(3000, 30)) + 1e3, {"all": np.arange(30)}, widths=(0.4,)
    )
    here = DenseStack.of(kernels)
    there = TorchTiledStack.from_kernel_set(kernels, "cuda")
    assert there.coarse().fused
    V = rng.normal(size=(3000, 3))
    truth = here.products(V)
    assert np.linalg.norm(there.coarse().products(V) - truth) <= 3e-6 * np.linalg.norm(truth)
    np.testing.assert_allclose(there.products(V), truth, atol=1e-9)
    expected, found = (
        solve(FisherProblem(stack, 3.0), LpBall(2), "subspace") for stack in (here, there)
    )
    assert found.n_iter <= 2
    assert found.value == pytest.approx(expected.value, rel=2e-6)

"""Stacks on torch, on the CPU and, where there is one, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.errors import MissingCapabilityError
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import Budget, LowRankStack, TiledStack
from kernull.views import KernelSet
from tests.needs import NO_TORCH
from tests.operators.contract import StackContract
from tests.operators.test_tiled import VIEWS, naive_kernels, some_kernel_set, some_rows

torch = pytest.importorskip("torch", reason=NO_TORCH)

from kernull.operators import torch as torch_stacks  # noqa: E402
from kernull.operators.torch import TorchTiledStack, fit_on_device, to_host  # noqa: E402

pytestmark = pytest.mark.torch

#: The rbf kernels of the set that the tests of tiles share.
RBF = [0, 1, 7, 8]


def rbf_kernel_set(train):
    mask = np.isin(np.arange(14), RBF)
    return some_kernel_set(train).select(mask)


class TestTorchTiled(StackContract):
    rtol = 1e-10
    offers = frozenset({"slicing", "diagonal", "pickle"})
    device, dtype = "cpu", torch.float64

    @pytest.fixture(autouse=True)
    def small_bands(self, monkeypatch):
        monkeypatch.setattr(torch_stacks, "BAND_BYTES", {"cpu": 9 * 4 * 8, "cuda": 9 * 4 * 8})

    @pytest.fixture
    def truth(self):
        X = some_rows()
        return naive_kernels(X, X, X)[RBF]

    @pytest.fixture
    def stack(self):
        return TorchTiledStack(rbf_kernel_set(some_rows()), self.device, self.dtype)

    def test_products_of_each_kernel_with_its_own_vectors(self, stack, truth):
        V = np.random.default_rng(0).normal(size=(len(truth), truth.shape[2], 2))
        self.close(stack.products_each(V), truth @ V)

    def test_tensors_are_taken_too(self, stack, truth, vectors):
        self.close(stack.products(torch.as_tensor(vectors)), truth @ vectors)


class TestTorchTiled32(TestTorchTiled):
    rtol = 2e-5
    dtype = torch.float32


class TestTorchDense(TestTorchTiled):
    offers = frozenset({"diagonal", "pickle"})

    @pytest.fixture
    def stack(self):
        return TorchTiledStack(rbf_kernel_set(some_rows()), self.device, self.dtype).dense()


@pytest.mark.cuda
class TestTorchTiledOnCuda(TestTorchTiled):
    device = "cuda"


def test_a_low_rank_stack_on_torch_equals_that_on_numpy():
    kernel_set, index = rbf_kernel_set(some_rows(30)), np.array([2, 7, 11, 20])
    V = np.random.default_rng(0).normal(size=(30, 2))
    here = LowRankStack(TiledStack(kernel_set), index)
    there = LowRankStack(TorchTiledStack(kernel_set), index)
    np.testing.assert_allclose(there.products(V), here.products(V), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(there.rows([3, 4]), here.rows([3, 4]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("n", "scaling", "widths"),  # beyond the exact mean distance, beyond all neighbours
    [(4200, "standard", (0.5, 1.0)), (1100, "none", "auto"), (1100, "auto", "auto")],
)
def test_kernels_fitted_on_the_device_are_those_of_the_host(n, scaling, widths, constant):
    X = np.random.default_rng(0).normal(size=(n, 5)) * 4 + 30
    X[:50] = X[50:100]  # copies are no neighbours
    if constant:
        X[:, 1] = 7.0
    options = {"widths": widths, "scaling": scaling}
    here = KernelSet.fit(X, VIEWS, **options)
    there = to_host(fit_on_device(torch.as_tensor(X), VIEWS, **options))
    assert there.kernel_names == here.kernel_names
    new = X[:3] + np.eye(3, 5)  # off the constant column too
    for a, b in zip(there.views, here.views, strict=True):
        assert a.scaling == b.scaling
        np.testing.assert_allclose(a.train, b.train, atol=1e-12)
        np.testing.assert_allclose(a.transform(new), b.transform(new), atol=1e-12)
        for k, m in zip(a.kernels, b.kernels, strict=True):
            assert k.width == pytest.approx(m.width, rel=1e-10)
            assert k.factor == pytest.approx(m.factor, rel=1e-10)
            np.testing.assert_allclose(k.centre, m.centre, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rows_that_are_all_copies_have_a_width_on_the_device_too(value):
    X = np.full((30, 2), value)
    options = {"widths": "auto", "scaling": "none", "drop_constant": False}
    views = {"all": np.arange(2)}
    here = KernelSet.fit(X, views, **options).views[0].kernels[0]
    there = fit_on_device(torch.as_tensor(X), views, **options).views[0].kernels[0]
    assert there.width == here.width


def test_values_that_cannot_be_squared_are_refused_on_the_device_too():
    X = np.ones((30, 2))
    X[3, 1] = 1e200
    with pytest.raises(ValueError, match=r"'all' is 1e\+200 \(row 3, column 1\)"):
        fit_on_device(torch.as_tensor(X), {"all": np.arange(2)})


def test_functions_cannot_run_on_torch():
    kernel_set = KernelSet.fit(some_rows(), VIEWS, kernels=lambda X, Y: X @ Y.T)
    with pytest.raises(MissingCapabilityError, match="do not run on torch"):
        TorchTiledStack(kernel_set)


# -- What makes many rows quick on a device: coarse stacks, landmarks. --


@pytest.fixture
def problem():
    """Five hundred rows, three views with scales far apart, rows that count differently."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) + 3.0
    views = {"a": np.arange(2), "b": np.arange(2, 4), "c": np.arange(4, 6)}
    kernels = KernelSet.fit(X, views, widths=(0.5,), scaling="none")
    stack = TorchTiledStack(kernels).rescaled(np.array([1.0, 3.0, 0.5]))
    return FisherProblem(stack, 1e-3 * 500, row_weight=rng.uniform(0.5, 2.0, 500))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_landmarks_invert_the_kernels_that_they_approximate(problem, dtype):
    """Against the inverse of rho I + C W^-1 C' itself; all rows as landmarks: of rho I + K_b."""
    weights, n = np.array([0.2, 0.5, 0.8]), problem.n
    K = np.tensordot(weights, problem.products(np.eye(n)), axes=1)
    r = np.random.default_rng(1).normal(size=n)
    stack = TorchTiledStack(problem.stack.kernel_set, "cpu", dtype, scale=problem.stack.scale)
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
    assert torch_stacks.device_preconditioner_rows(problem.n) == 0
    monkeypatch.setattr(torch_stacks, "PRECONDITIONED_ROWS", 400)
    monkeypatch.setattr(torch_stacks, "LANDMARKS", 200)
    budget = Budget(preconditioner_rows=torch_stacks.device_preconditioner_rows(problem.n))
    assert budget.preconditioner_rows == 200
    quick = solve(problem, LpBall(2), "subspace", tol=1e-8, budget=budget)
    assert quick.converged
    assert quick.n_iter <= plain.n_iter // 2
    assert quick.value == pytest.approx(plain.value, rel=1e-7)
    np.testing.assert_allclose(quick.weights, plain.weights, atol=1e-3)


def test_a_coarse_stack_leaves_one_exact_pass(problem, monkeypatch):
    plain = solve(problem, LpBall(2), "subspace", tol=1e-6)
    assert problem.stack.coarse() is None  # of the CPU
    float32 = {"dtype": torch.float32, "scale": problem.stack.scale}
    near = TorchTiledStack(problem.stack.kernel_set, **float32)
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

    near = Broken(problem.stack.kernel_set)
    monkeypatch.setattr(problem.stack, "coarse", lambda: near, raising=False)
    assert solve(problem, LpBall(2), "subspace", tol=1e-6).converged

"""Stacks on torch, on the CPU and, where there is one, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.errors import MissingCapabilityError
from kernull.operators import DenseStack, LowRankStack
from kernull.views import KernelSet
from tests.needs import NO_TORCH
from tests.operators.contract import StackContract
from tests.operators.test_tiled import VIEWS, naive_kernels, some_kernel_set, some_rows

torch = pytest.importorskip("torch", reason=NO_TORCH)

from kernull.operators import torch as torch_stacks  # noqa: E402
from kernull.operators.torch import TorchKernelSet, TorchTiledStack  # noqa: E402

pytestmark = pytest.mark.torch


class TestTorchTiled(StackContract):
    rtol = 1e-10
    offers = frozenset({"slicing", "select", "diagonal", "pickle"})
    device, dtype = "cpu", torch.float64

    @pytest.fixture(autouse=True)
    def small_bands(self, monkeypatch):
        monkeypatch.setattr(torch_stacks, "BAND_BYTES", {"cpu": 9 * 4 * 8, "cuda": 9 * 4 * 8})

    @pytest.fixture
    def truth(self):
        X = some_rows()
        return naive_kernels(X, X, X)

    @pytest.fixture
    def stack(self):
        return TorchTiledStack.from_kernel_set(
            some_kernel_set(some_rows()), self.device, self.dtype
        )

    def test_products_of_each_kernel_with_its_own_vectors(self, stack, truth):
        V = np.random.default_rng(0).normal(size=(len(truth), truth.shape[2], 2))
        self.close(stack.products_each(V), truth @ V)

    def test_tensors_are_taken_too(self, stack, truth, vectors):
        self.close(stack.products(torch.as_tensor(vectors)), truth @ vectors)


class TestTorchTiled32(TestTorchTiled):
    rtol = 2e-5
    dtype = torch.float32


class TestTorchDense(TestTorchTiled):
    @pytest.fixture
    def stack(self):
        return TorchTiledStack.from_kernel_set(
            some_kernel_set(some_rows()), self.device, self.dtype
        ).dense()


@pytest.mark.cuda
class TestTorchTiledOnCuda(TestTorchTiled):
    device = "cuda"


@pytest.mark.cuda
class TestFused(StackContract):
    """The fused kernel, for rbf kernels in float32."""

    rtol = 3e-6
    offers = frozenset({"slicing", "select", "diagonal"})

    @pytest.fixture
    def kernel_set(self):
        X = np.random.default_rng(0).normal(size=(301, 5))
        return KernelSet.fit(X, VIEWS, widths=(0.5, 2.0), scaling="none")

    @pytest.fixture
    def truth(self, kernel_set):
        return DenseStack.of(kernel_set).kernels

    @pytest.fixture
    def stack(self, kernel_set):
        stack = TorchTiledStack.from_kernel_set(kernel_set, "cuda", torch.float32)
        assert stack.fused
        return stack

    # Sums over tiles are added in no fixed order, in float64.
    def test_products_change_nothing(self, stack, vectors):
        np.testing.assert_allclose(stack.products(vectors), stack.products(vectors), rtol=1e-9)


def test_a_low_rank_stack_on_torch_equals_that_on_numpy():
    kernel_set, index = some_kernel_set(some_rows(30)), np.array([2, 7, 11, 20])
    V = np.random.default_rng(0).normal(size=(30, 2))
    here = LowRankStack.from_kernel_set(kernel_set, index)
    there = LowRankStack.from_torch(TorchTiledStack.from_kernel_set(kernel_set), index)
    np.testing.assert_allclose(there.products(V), here.products(V), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(there.rows([3, 4]), here.rows([3, 4]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("n", "scaling", "widths"),  # beyond the exact mean distance, beyond all neighbours
    [(4200, "standard", (0.5, 1.0)), (1100, "none", "auto"), (1100, "auto", "auto")],
)
def test_a_bank_fitted_on_the_device_is_that_of_the_host(n, scaling, widths, constant):
    X = np.random.default_rng(0).normal(size=(n, 5)) * 4 + 30
    X[:50] = X[50:100]  # copies are no neighbours
    if constant:
        X[:, 1] = 7.0
    options = {"widths": widths, "scaling": scaling}
    here = KernelSet.fit(X, VIEWS, **options)
    there = TorchKernelSet.fit(torch.as_tensor(X), VIEWS, **options).to_kernel_set()
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
    there = TorchKernelSet.fit(torch.as_tensor(X), views, **options).kernels[0][0]
    assert there.width == here.width


def test_values_that_cannot_be_squared_are_refused_on_the_device_too():
    X = np.ones((30, 2))
    X[3, 1] = 1e200
    with pytest.raises(ValueError, match=r"'all' is 1e\+200 \(row 3, column 1\)"):
        TorchKernelSet.fit(torch.as_tensor(X), {"all": np.arange(2)})


def test_functions_cannot_run_on_torch():
    kernel_set = KernelSet.fit(some_rows(), VIEWS, kernels=lambda X, Y: X @ Y.T)
    with pytest.raises(MissingCapabilityError, match="cannot run on torch"):
        TorchTiledStack.from_kernel_set(kernel_set)

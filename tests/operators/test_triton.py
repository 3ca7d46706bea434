"""The fused kernel: rows in two float16 parts (tested on the CPU), and its products on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from kernull.views import KernelSet
from tests.needs import NO_TORCH
from tests.operators.contract import StackContract
from tests.operators.test_tiled import VIEWS

torch = pytest.importorskip("torch", reason=NO_TORCH)

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


@pytest.mark.cuda
class TestFused(StackContract):
    """The fused kernel, for rbf kernels in float32."""

    rtol = 3e-6
    offers = frozenset({"slicing", "diagonal"})

    @pytest.fixture
    def kernel_set(self):
        X = np.random.default_rng(0).normal(size=(301, 5))
        return KernelSet.fit(X, VIEWS, widths=(0.5, 2.0), scaling="none")

    @pytest.fixture
    def truth(self, kernel_set):
        return DenseStack.of(kernel_set).kernels

    @pytest.fixture
    def stack(self, kernel_set):
        stack = TorchTiledStack(kernel_set, "cuda", torch.float32)
        assert stack.fused
        return stack

    # Sums over tiles are added in no fixed order, in float64.
    def test_products_change_nothing(self, stack, vectors):
        np.testing.assert_allclose(stack.products(vectors), stack.products(vectors), rtol=1e-9)


@pytest.mark.cuda
def test_float64_on_a_gpu_is_solved_in_float32_first():
    rng = np.random.default_rng(0)
    kernels = KernelSet.fit(
        rng.normal(size=(3000, 30)) + 1e3, {"all": np.arange(30)}, widths=(0.4,)
    )
    here = DenseStack.of(kernels)
    there = TorchTiledStack(kernels, "cuda")
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

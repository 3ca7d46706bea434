"""The scale of kernels: means over pairs of different rows, whichever stack holds them."""

import numpy as np
import pytest

from kernull.operators import DenseStack, LowRankStack, TiledStack
from kernull.operators.normalise import (
    MEAN_FLOOR,
    normalising_factors,
    off_diagonal_means,
    read_normalisation,
)
from kernull.views import KernelSet

N = 14


def some_kernel_set():
    X = np.random.default_rng(3).normal(size=(N, 4))
    views = {"a": np.array([0, 1]), "b": np.array([2, 3])}
    return KernelSet.fit(X, views, widths=(0.3, 1.0))


def naive(K):
    """Means of off-diagonal entries by loops."""
    return np.array(
        [np.mean([k[i, m] for i in range(len(k)) for m in range(len(k)) if i != m]) for k in K]
    )


def torch_stack(kernel_set):
    from kernull.operators.torch import TorchTiledStack

    return TorchTiledStack(kernel_set, "cpu")


@pytest.mark.parametrize(
    "build",
    [
        lambda kernel_set: DenseStack.of(kernel_set),
        TiledStack,
        lambda kernel_set: LowRankStack(TiledStack(kernel_set), np.arange(N)),
        pytest.param(torch_stack, marks=pytest.mark.torch),
        pytest.param(lambda kernel_set: torch_stack(kernel_set).dense(), marks=pytest.mark.torch),
    ],
    ids=["dense", "tiled", "lowrank", "torch", "torch dense"],
)
def test_means_of_every_stack_are_those_of_its_matrices(build):
    kernel_set = some_kernel_set()
    truth = naive(DenseStack.of(kernel_set).kernels)
    np.testing.assert_allclose(off_diagonal_means(build(kernel_set)), truth, rtol=1e-6)
    np.testing.assert_allclose(normalising_factors(build(kernel_set), 1.0), 1 / truth, rtol=1e-6)


def test_a_normalised_stack_has_off_diagonal_mean_one():
    stack = DenseStack.of(some_kernel_set())
    stack = stack.rescaled(normalising_factors(stack, 1.0))
    np.testing.assert_allclose(naive(stack.rows(slice(None))), 1.0, rtol=1e-12)


def test_a_weight_counts_as_copies():
    K = DenseStack.of(some_kernel_set()).kernels
    copies = np.array([1, 3, 2] + [1] * (N - 3))
    index = np.repeat(np.arange(N), copies)
    repeated = K[:, index][:, :, index]
    weighted = off_diagonal_means(DenseStack(K), copies.astype(float))
    np.testing.assert_allclose(weighted, naive(repeated), rtol=1e-12)


def test_rows_of_weight_zero_take_no_part():
    K = DenseStack.of(some_kernel_set()).kernels
    weight = np.r_[np.ones(N - 4), np.zeros(4)]
    part = naive(K[:, : N - 4, : N - 4])
    np.testing.assert_allclose(off_diagonal_means(DenseStack(K), weight), part, rtol=1e-12)


def test_the_exponent_lies_between():
    stack = DenseStack.of(some_kernel_set())
    half = normalising_factors(stack, 0.5)
    np.testing.assert_allclose(half**2, normalising_factors(stack, 1.0), rtol=1e-12)
    assert (normalising_factors(stack, 0.0) == 1.0).all()


def test_a_kernel_that_finds_no_rows_alike_is_not_blown_up():
    factors = normalising_factors(DenseStack(np.stack([np.eye(5), np.ones((5, 5))])), 1.0)
    np.testing.assert_allclose(factors, [1 / MEAN_FLOOR, 1.0], rtol=1e-12)


def test_kernels_of_centred_columns_are_divided_by_their_mean_size():
    x = np.array([-1.0, 0.0, 1.0, 2.0, -2.0])
    K = np.outer(x, x)
    off = np.abs(K)[~np.eye(5, dtype=bool)].mean()
    np.testing.assert_allclose(normalising_factors(DenseStack(K[None]), 1.0), [1 / off])
    weight = np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    pairs = np.outer(weight, weight)[~np.eye(5, dtype=bool)]
    expected = pairs.sum() / (pairs @ np.abs(K)[~np.eye(5, dtype=bool)])
    np.testing.assert_allclose(normalising_factors(DenseStack(K[None]), 1.0, weight), [expected])


@pytest.mark.parametrize("bad", ["mean", -0.1, 1.5, None, True, np.nan])
def test_bad_names_are_refused(bad):
    with pytest.raises(ValueError, match="normalize: got"):
        read_normalisation(bad)

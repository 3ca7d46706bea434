"""The Nystroem stack against its formula."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.operators import DenseStack, LowRankStack, TiledStack, choose_landmarks
from kernull.operators.landmarks import JITTER
from kernull.views import KernelSet
from tests.operators.contract import StackContract

VIEWS = {"a": np.array([0, 1]), "b": np.array([2, 3, 4])}


def some_kernel_set(n=12):
    X = np.random.default_rng(5).normal(size=(n, 5))
    return KernelSet.fit(X, VIEWS, widths=(0.3, 1.0))


class TestLowRank(StackContract):
    rtol = 1e-8  # W is solved with
    offers = frozenset({"diagonal"})
    index = np.array([1, 4, 5, 9])

    @pytest.fixture
    def truth(self):
        out = []
        for K in DenseStack.of(some_kernel_set()).kernels:
            W = K[np.ix_(self.index, self.index)] + JITTER["float64"] * np.eye(len(self.index))
            out.append(K[:, self.index] @ np.linalg.inv(W) @ K[self.index])
        return np.stack(out)

    @pytest.fixture
    def stack(self):
        return LowRankStack(TiledStack(some_kernel_set()), self.index)


class TestKeptFeatures(TestLowRank):
    @pytest.fixture
    def stack(self):
        return LowRankStack(TiledStack(some_kernel_set()), self.index, keep_bytes=10**9)


def test_kept_features_give_the_coefficients_of_the_landmarks():
    kernel_set, index = some_kernel_set(40), np.arange(0, 40, 3)
    kept = LowRankStack(TiledStack(kernel_set), index, keep_bytes=10**9)
    V = np.random.default_rng(0).normal(size=(40, 3))
    plain = LowRankStack(TiledStack(kernel_set), index)
    for v in (V, V[:, 0]):
        np.testing.assert_allclose(kept.project(v), plain.project(v), rtol=1e-6, atol=1e-8)
    too_little = LowRankStack(TiledStack(kernel_set), index, keep_bytes=8 * 4 * 40 * len(index) - 1)
    assert kept.keep_features
    assert not too_little.keep_features


def test_every_row_a_landmark_is_exact():
    kernel_set = some_kernel_set(60)
    low = LowRankStack(TiledStack(kernel_set), np.arange(60))
    V = np.random.default_rng(0).normal(size=(60, 2))
    np.testing.assert_allclose(low.products(V), DenseStack.of(kernel_set).products(V), atol=1e-7)


def test_more_landmarks_come_closer_and_never_overshoot():
    kernel_set = some_kernel_set(300)
    K = DenseStack.of(kernel_set).kernels
    errors = []
    for count in (5, 20, 80):
        index = choose_landmarks(kernel_set, count)
        assert len(np.unique(index)) == count
        low = LowRankStack(TiledStack(kernel_set), index).rows(slice(None))
        assert np.linalg.eigvalsh(K - low).min() > -1e-6  # the Nystroem kernel lies below
        errors.append(np.linalg.norm(K - low) / np.linalg.norm(K))
    assert errors[0] > errors[1] > errors[2]


def test_landmarks_are_reproducible_and_named():
    kernel_set = some_kernel_set(50)
    np.testing.assert_array_equal(choose_landmarks(kernel_set, 7), choose_landmarks(kernel_set, 7))
    np.testing.assert_array_equal(choose_landmarks(kernel_set, 99), np.arange(50))

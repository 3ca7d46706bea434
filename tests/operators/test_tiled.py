"""The tiled stack evaluates what the dense one stores."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from joblib import effective_n_jobs
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel, rbf_kernel

from kernull.errors import MemoryLimitError
from kernull.operators import CrossKernels, DenseStack, TiledStack, tiled
from kernull.views import KernelSet
from tests.operators.contract import StackContract

VIEWS = {"a": np.array([0, 1]), "b": np.array([2, 3, 4])}
KERNELS = ["rbf", "laplacian", "linear", "polynomial", "cosine"]


def some_rows(n=9, seed=3):
    return np.random.default_rng(seed).normal(size=(n, 5))


def naive_kernels(X, Y, train):
    """All kernels of the kernel_set by scikit-learn, with widths by loops over pairs of rows."""
    out = []
    pairs = [(i, k) for i in range(len(train)) for k in range(len(train)) if i != k]
    for columns in VIEWS.values():
        x, y, t = X[:, columns], Y[:, columns], train[:, columns]
        D2 = np.mean([np.linalg.norm(t[i] - t[k]) for i, k in pairs])
        D1 = np.mean([np.abs(t[i] - t[k]).sum() for i, k in pairs])
        out += [rbf_kernel(x, y, gamma=1 / (2 * (f * D2) ** 2)) for f in (0.5, 2.0)]
        out += [laplacian_kernel(x, y, gamma=1 / (f * D1)) for f in (0.5, 2.0)]
        out += [x @ y.T, (x @ y.T / x.shape[1] + 1) ** 3, cosine_similarity(x, y)]
    return np.stack(out)


def some_kernel_set(train):
    return KernelSet.fit(train, VIEWS, kernels=KERNELS, widths=(0.5, 2.0), scaling="none")


class TestTiled(StackContract):
    rtol = 1e-10
    offers = frozenset({"slicing", "diagonal", "pickle"})
    dtype = np.float64

    @pytest.fixture(autouse=True)
    def small_tiles(self, monkeypatch):
        """Tiles of four rows, so that nine rows make several of them, and two threads."""
        monkeypatch.setattr(tiled, "TILE_BYTES", 4 * 4 * np.dtype(self.dtype).itemsize)
        monkeypatch.setattr(tiled, "ONE_THREAD_VALUES", 0)

    @pytest.fixture
    def truth(self):
        X = some_rows()
        return naive_kernels(X, X, X)

    @pytest.fixture
    def stack(self):
        return TiledStack(some_kernel_set(some_rows()), dtype=self.dtype)

    def test_products_of_each_kernel_with_its_own_vectors(self, stack, truth):
        V = np.random.default_rng(0).normal(size=(len(truth), truth.shape[2], 2))
        self.close(stack.products_each(V), truth @ V)
        self.close(stack.products_each(V[:, :, 0]), np.einsum("jmn,jn->jm", truth, V[:, :, 0]))

    def test_a_limit_splits_the_vectors(self, stack, truth, vectors):
        one_vector = len(truth) * truth.shape[1] * 8 * (1 + effective_n_jobs(-1))
        stack.options["memory_limit"] = one_vector
        self.close(stack.products(vectors), truth @ vectors)
        stack.options["memory_limit"] = one_vector - 1
        with pytest.raises(MemoryLimitError, match="memory_limit: a pass over 14 kernels"):
            stack.products(vectors)


class TestTiled32(TestTiled):
    rtol = 1e-5
    dtype = np.float32


class TestTiledCross(TestTiled):
    """Rows that are not the training rows."""

    @pytest.fixture
    def truth(self):
        X = some_rows()
        return naive_kernels(X[[8, 1, 4, 0, 5, 5]], X, X)

    @pytest.fixture
    def stack(self):
        return TiledStack(some_kernel_set(some_rows()))[[8, 1, 4, 0, 5, 5]]

    def test_diagonal(self, stack):
        X = some_rows()
        everything = np.stack([np.diag(K) for K in naive_kernels(X, X, X)])
        self.close(stack.diagonal(), everything[:, [8, 1, 4, 0, 5, 5]])


class TestLazyCross(StackContract):
    rtol = 1e-10  # distances are expanded: |x|^2 + |y|^2 - 2x'y
    offers = frozenset({"combine", "select", "diagonal", "pickle"})

    @pytest.fixture
    def data(self, rng):
        return rng.normal(size=(9, 5)), rng.normal(size=(6, 5)), {"a": [0, 1], "b": [2, 3, 4]}

    @pytest.fixture
    def truth(self, data):
        """Two views x (rbf at two widths, laplacian at two widths, linear), by scikit-learn."""
        train, new, views = data
        out = []
        for columns in views.values():
            X, Y = new[:, columns], train[:, columns]
            d = np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(-1))
            D = d.sum() / (9 * 8)
            d1 = np.abs(Y[:, None] - Y[None]).sum(-1)
            D1 = d1.sum() / (9 * 8)
            out += [rbf_kernel(X, Y, gamma=1 / (2 * (f * D) ** 2)) for f in (0.5, 2.0)]
            out += [laplacian_kernel(X, Y, gamma=1 / (f * D1)) for f in (0.5, 2.0)]
            out.append(X @ Y.T)
        return np.stack(out)

    @pytest.fixture
    def stack(self, data):
        train, new, views = data
        views = {name: np.array(columns) for name, columns in views.items()}
        kernels = ["rbf", "laplacian", "linear"]
        kernel_set = KernelSet.fit(train, views, kernels=kernels, widths=(0.5, 2.0), scaling="none")
        return CrossKernels(kernel_set, new)

    def test_diagonal(self, stack, data):
        """That of the new rows."""
        _, new, views = data
        squares = [(new[:, columns] ** 2).sum(axis=1) for columns in views.values()]
        expected = [row for s in squares for row in (*np.ones((4, len(new))), s)]
        self.close(stack.diagonal(), expected)

    def test_pieces_cover_all_rows_once(self, stack, truth, monkeypatch):
        monkeypatch.setattr(tiled, "CROSS_BYTES", 8 * stack.n * stack.J * 2)  # two rows at a time
        pieces = list(stack.pieces())
        assert [rows for rows, _ in pieces] == [slice(0, 2), slice(2, 4), slice(4, 6)]
        self.close(np.concatenate([part.kernels for _, part in pieces], axis=1), truth)

    def test_chunks_do_not_change_products(self, stack, truth, vectors, monkeypatch):
        monkeypatch.setattr(tiled, "CROSS_BYTES", 8 * stack.n)  # one row at a time
        self.close(stack.products(vectors), truth @ vectors)


@pytest.mark.parametrize("n", [1, 361, 362, 363, 1000])
def test_tiled_equals_dense(n):
    """To 1e-10 of the largest entry, at sizes around the tile's."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(max(n, 2), 7)) * 3 + 100
    views = {"a": np.arange(4), "b": np.arange(4, 7)}
    kernel_set = KernelSet.fit(X, views, widths=(0.25, 1.0))
    V = rng.normal(size=(len(X), 3))
    dense = DenseStack.of(kernel_set).products(V)
    tiled = TiledStack(kernel_set).products(V)
    np.testing.assert_allclose(tiled, dense, rtol=0, atol=1e-10 * np.abs(dense).max())


def test_the_sum_does_not_depend_on_timing():
    kernel_set = KernelSet.fit(np.random.default_rng(0).normal(size=(1500, 4)), {"a": np.arange(4)})
    stack = TiledStack(kernel_set)
    v = np.random.default_rng(1).normal(size=1500)
    first = stack.products(v)
    for _ in range(3):
        np.testing.assert_array_equal(stack.products(v), first)


def test_identical_rows_have_kernel_one():
    """The expansion of distances rounds; a kernel must not leave [0, 1] by more than that."""
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 6)) * 1e3, 4, axis=0)
    stack = TiledStack(KernelSet.fit(X, {"a": np.arange(6)}, scaling="none"))
    K = stack.rows(slice(None))[0]
    assert K.max() <= 1 + 1e-9
    np.testing.assert_allclose(K[:4, :4], 1.0, atol=1e-9)


INTERRUPTED = """
import signal, threading, time
import numpy as np
from kernull.operators import (TiledStack)
from kernull.views import KernelSet

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
tiles = []

def slow(A, B):
    tiles.append(len(A))
    if len(tiles) == 10:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    time.sleep(0.02)
    return A @ B.T

X = np.random.default_rng(0).normal(size=(4000, 2))
stack = TiledStack(KernelSet.fit(X, {"a": [0, 1]}, kernels=slow))
tiles.clear()
try:
    stack.products(X[:, 0])
except KeyboardInterrupt:
    print(len(tiles))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_does_not_wait_for_the_rest_of_a_pass():
    """In a process of its own, whose handlers and threads no other test has touched."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=True
    )
    assert 10 <= int(done.stdout) < 30  # of 78 tiles

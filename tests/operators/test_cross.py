"""Kernels between new rows and training rows, never stored whole."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from kernull.operators import CrossKernels, cross
from kernull.views import KernelSet
from tests.operators.contract import StackContract


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
        bank = KernelSet.fit(train, views, kernels=kernels, widths=(0.5, 2.0), scaling="none")
        return CrossKernels(bank, new)

    def test_diagonal(self, stack, data):
        """That of the new rows."""
        _, new, views = data
        squares = [(new[:, columns] ** 2).sum(axis=1) for columns in views.values()]
        expected = [row for s in squares for row in (*np.ones((4, len(new))), s)]
        self.close(stack.diagonal(), expected)

    def test_blocks_cover_all_rows_once(self, stack, truth, monkeypatch):
        monkeypatch.setattr(cross, "CHUNK_BYTES", 8 * stack.n * stack.J * 2)  # two rows at a time
        blocks = list(stack.blocks())
        assert [rows for rows, _ in blocks] == [slice(0, 2), slice(2, 4), slice(4, 6)]
        self.close(np.concatenate([part.kernels for _, part in blocks], axis=1), truth)

    def test_chunks_do_not_change_products(self, stack, truth, vectors, monkeypatch):
        monkeypatch.setattr(cross, "CHUNK_BYTES", 8 * stack.n)  # one row at a time
        self.close(stack.products(vectors), truth @ vectors)

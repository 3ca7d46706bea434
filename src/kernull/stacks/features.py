r"""The Fisher problem on Nystroem kernels, solved in feature space from one sweep over the rows.

With :math:`\Phi_j = C_j W_j^{-1/2}` the kernels are :math:`\Phi_j \Phi_j'`, and for every b the
solution lies in the span of :math:`Z = [1, \Phi_1, \ldots, \Phi_J]`. The Gram matrix Z'Z, summed
block by block, therefore holds the whole problem: with Z'Z = U diag(s) U' and the orthonormal
:math:`Q = Z U s^{-1/2}`, the restriction to Q is exact. Neither Q nor any n-vector is formed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kernull._typing import Array
from kernull.stacks.dense import DenseStack
from kernull.stacks.kernel_set import KernelSet
from kernull.stacks.lowrank import JITTER
from kernull.stacks.tiled import TiledStack

#: Directions of the Gram matrix with a smaller share of the largest eigenvalue are rounding.
RANK_TOLERANCE = 1e-13


class Features:
    """Nystroem features of a bank whose training rows are the landmarks."""

    def __init__(self, bank: KernelSet) -> None:
        self.bank = bank
        self.roots = []
        for W in TiledStack(bank).rows(slice(None)):
            values, vectors = np.linalg.eigh(W)
            floor = JITTER["float64"] * float(np.trace(W)) / len(W)
            self.roots.append((vectors / np.sqrt(np.maximum(values, 0.0) + floor)) @ vectors.T)

    def __call__(self, X: Array) -> Array:
        """Features of new rows, kernel by kernel, of shape (m, J l)."""
        pairs = zip(self.roots, self.bank.matrices(X), strict=True)
        return np.hstack([K @ root for root, (_, K) in pairs])


class FeatureGram:
    """Sums Z'Z over blocks of rows and turns it into a small exact problem."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.n = 0
        size = 1 + features.bank.J * features.bank.n
        self.gram = np.zeros((size, size))

    def add(self, blocks: Iterable[Array]) -> FeatureGram:
        """One sweep over blocks of rows."""
        for block in blocks:
            Z = np.hstack([np.ones((len(block), 1)), self.features(block)])
            self.gram += Z.T @ Z
            self.n += len(block)
        return self

    def reduce(self) -> tuple[DenseStack, Array]:
        """The kernels Q'K_jQ and the right-hand side Q'1 of the exact reduced problem."""
        values, vectors = np.linalg.eigh(self.gram)
        kept = values > RANK_TOLERANCE * values[-1]
        # Q'Z, and with it Q'1 and Q'Phi_j.
        self._QZ = (vectors[:, kept] * np.sqrt(values[kept])).T
        J, count = self.features.bank.J, self.features.bank.n
        parts = self._QZ[:, 1:].reshape(-1, J, count).transpose(1, 0, 2)
        self._parts = parts
        return DenseStack(parts @ parts.transpose(0, 2, 1)), self._QZ[:, 0]

    def landmark_coefficients(self, y: Array) -> Array:
        """Coefficients of the landmark kernels of the solution a = Qy, of shape (J, l)."""
        coef = np.einsum("m,jml->jl", y, self._parts)  # of the features
        return np.stack([root @ c for root, c in zip(self.features.roots, coef, strict=True)])

    def inverse_entries(self, rows: Array, weights: Array, ridge: float) -> tuple[Array, Array]:
        """For some rows: the diagonal of (rho I + K_b)^-1 and the coefficients a, exactly.

        By Woodbury in feature space: with B the weighted features of a row,
        G_ii = (1 - B_i' (rho I + sum_i B_i B_i')^-1 B_i) / rho, and a likewise for 1.
        """
        count = self.features.bank.n
        root = np.repeat(np.sqrt(weights), count)
        core = root[:, None] * self.gram[1:, 1:] * root
        core.flat[:: len(core) + 1] += ridge
        B = self.features(rows) * root
        right = np.column_stack([B.T, root * self.gram[1:, 0]])
        solved = np.linalg.solve(core, right)
        inverse = (1.0 - np.einsum("if,fi->i", B, solved[:, :-1])) / ridge
        return inverse, (1.0 - B @ solved[:, -1]) / ridge

"""Kernels between new rows and the training rows, evaluated in chunks and never stored whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernull._typing import Array, Mask
from kernull.operators.base import SweptStack
from kernull.operators.dense import DenseStack
from kernull.operators.tiled import Tiles, tile_products
from kernull.views.kernel_set import KernelSet

#: Bytes of one kernel's chunk; a few times the cache, so BLAS is efficient and memory stays flat.
CHUNK_BYTES = 32 * 2**20


def device_cross(
    bank: KernelSet, X: Array, device: Any, dtype: Any = np.float64, scale: Array | None = None
) -> CrossKernels:
    """The stack between new rows and a bank's training rows on a torch device."""
    from kernull.operators.torch_cross import DeviceCross

    return DeviceCross(bank, X, scale, device, dtype)


class CrossKernels(SweptStack):
    """The stack between m new rows and the n training rows of a bank.

    Answers to the same protocol as a dense cross stack, in memory independent of m.
    """

    def __init__(self, bank: KernelSet, X: Array, scale: Array | None = None) -> None:
        self.bank = bank
        self.X = X
        self.scale = np.ones(bank.J) if scale is None else np.asarray(scale, dtype=float)
        self.shape = (len(X), bank.n)

    def _like(self, bank: KernelSet, scale: Array | None) -> CrossKernels:
        return CrossKernels(bank, self.X, scale)

    def chunks(self, kernels_at_once: int = 1) -> Iterator[slice]:
        """Slices of rows such that so many kernels' chunks fit `CHUNK_BYTES`."""
        step = max(1, CHUNK_BYTES // (8 * self.n * kernels_at_once))
        return (slice(i, i + step) for i in range(0, len(self.X), step))

    def _sweep(self, V: Array, weights: Array | None = None) -> Array:
        tiles = Tiles(self.bank)
        right = tiles.right()
        shape = (len(self), V.shape[-1])
        out = np.empty((self.J, *shape) if weights is None else shape)
        for rows in self.chunks():
            left = tiles.left(self.X[rows])
            out[..., rows, :] = tile_products(tiles, left, right, V, weights=weights)
        return out

    def columns(self, index: Any) -> CrossKernels:
        """The stack against some of the training rows."""
        return self._like(self.bank.take(index), self.scale)

    def against(self, bank: KernelSet) -> CrossKernels:
        """The same new rows against the rows of another set."""
        return self._like(bank, None)

    def combine(self, weights: Array) -> Array:
        """Sum of b_j K_j, of shape (m, n): meant for few new rows."""
        out = np.empty(self.shape)
        for rows in self.chunks():
            out[rows] = self.bank.combine(weights * self.scale, self.X[rows])
        return out

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        values = np.stack([K for _, K in self.bank.matrices(self.X[index])])
        return np.asarray(values * self.scale[:, None, None])

    def blocks(self) -> Iterator[tuple[slice, DenseStack]]:
        """The stack in dense pieces of a few rows each."""
        for rows in self.chunks(self.J):
            yield rows, DenseStack(self.rows(rows))  # scaled already

    def diagonal(self) -> Array:
        """k_j(x, x) of the new rows, of shape (J, m)."""
        return self.bank.diagonal(self.X) * self.scale[:, None]

    def select(self, mask: Mask) -> CrossKernels:
        """The stack of some of the kernels."""
        return self._like(self.bank.select(mask), self.scale[mask])

"""The tiled stack: kernels are evaluated on the fly, tile by tile, and never stored."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from kernull._threads import in_threads
from kernull._typing import Array
from kernull.errors import MemoryLimitError
from kernull.stacks.base import SweptStack
from kernull.stacks.kernel_set import KernelSet
from kernull.stacks.planner import format_bytes
from kernull.stacks.tiles import FEW_VALUES, Tiles, blocks_of, tile_products

#: Parts that the rows of kernels are evaluated in, by threads.
PARTS = 16


class TiledStack(SweptStack):
    r"""J kernels between the rows of a bank, none of them ever formed.

    A pass over all kernels evaluates :math:`J n (n + 1) / 2` values (tiles above the diagonal
    serve twice) on all cores and multiplies a whole block of vectors by them.

    The rows on the left are those of ``left``, or of the bank itself. Tiles are evaluated in
    ``dtype``, products summed in float64. A pass may take ``memory_limit`` bytes beyond its result;
    more vectors than fit are multiplied in several passes.
    """

    def __init__(
        self,
        bank: KernelSet,
        *,
        left: KernelSet | None = None,
        scale: Array | None = None,
        dtype: Any = np.float64,
        memory_limit: int | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.bank = bank
        self.left = left
        self.scale = np.ones(bank.J) if scale is None else np.asarray(scale, dtype=float)
        self.dtype = np.dtype(dtype)
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        #: Rows that a preconditioner of the solver may keep; none unless a plan allows for them.
        self.preconditioner_rows = 0
        self._tiles = Tiles(bank, dtype)
        self._right = self._tiles.right()
        self._left = (Tiles(left, dtype) if left is not None else self._tiles).left()
        self.shape = (len(self._left), bank.n)

    def __repr__(self) -> str:
        return f"TiledStack(J={self.J}, shape={self.shape}, dtype={self.dtype})"

    def __getitem__(self, index: Any) -> TiledStack:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        rows, columns = self._positions(index)
        bank = self.bank.take(columns)
        same = self.left is None and np.array_equal(rows, columns)
        left = None if same else (self.left or self.bank).take(rows)
        return self._like(bank, left, self.scale)

    def select(self, kernels: Any) -> TiledStack:
        """The stack of some of the kernels."""
        mask = self._mask(kernels)
        left = None if self.left is None else self.left.select(mask)
        return self._like(self.bank.select(mask), left, self.scale[mask])

    def _like(self, bank: KernelSet, left: KernelSet | None, scale: Array) -> TiledStack:
        return TiledStack(
            bank,
            left=left,
            scale=scale,
            dtype=self.dtype,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
        )

    def _sweep(self, V: Array, weights: Array | None = None) -> Array:
        alike = weights is None and V.shape == (self.n, 1) and (V[0] == V).all()
        return self._row_sums * V[0, 0] if alike else self._passes(V, weights)

    @cached_property
    def _row_sums(self) -> Array:
        """Of every kernel: normalisation asks for them, then the solver's first step."""
        return self._passes(np.ones((self.n, 1)), None)

    def _passes(self, V: Array, weights: Array | None) -> Array:
        J, m, k = (self.J if weights is None else 1), len(self), V.shape[-1]
        width = self._columns_at_once(J * m * 8)
        parts = [
            tile_products(
                self._tiles,
                self._left,
                self._right,
                V[..., start : start + width],
                symmetric=self.left is None,
                weights=weights,
                n_jobs=self.n_jobs,
            )
            for start in range(0, k, width)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def _columns_at_once(self, bytes_a_column: int) -> int:
        if self.memory_limit is None:
            return 2**31
        needed = bytes_a_column * (1 + effective_n_jobs(self.n_jobs))
        if needed > self.memory_limit:
            raise MemoryLimitError(
                f"memory_limit: a pass over {self.J} kernels of {self.n} rows needs "
                f"{format_bytes(needed)}, the limit is {format_bytes(self.memory_limit)}. Raise "
                "memory_limit, or use storage='nystroem'."
            )
        return int(self.memory_limit // needed)

    def diagonal(self) -> Array:
        """k_j(x_i, x_i) of the rows on the left, of shape (J, m)."""
        views = (self.left or self.bank).views
        values = [k.diagonal(view.train) for view in views for k in view.kernels]
        return np.stack(values) * self.scale[:, None]

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        picked = (self.left or self.bank).take(np.atleast_1d(np.arange(len(self))[index]))
        tiles = Tiles(self.bank, self.dtype)
        left = Tiles(picked, self.dtype).left()
        out = np.empty((self.J, len(left), self.n))
        height = max(1, min(tiles.size, len(left)))
        down, across = blocks_of(len(left), height), blocks_of(self.n, tiles.size**2 // height)
        todo = [(r, c) for r in down for c in across]

        def work(share: list[tuple[slice, slice]]) -> None:
            buffers = tiles.buffers()
            for rows, columns in share:
                for j, K in tiles.tile(left, rows, self._right, columns, buffers):
                    np.multiply(K, self.scale[j], out=out[j, rows, columns])

        few = out.size < FEW_VALUES
        parts = 1 if few else min(len(todo), PARTS)
        in_threads(work, [todo[part::parts] for part in range(parts)])
        return out

"""Kernel values tile by tile, in buffers that stay in cache.

For rbf kernels a tile is one matrix product and one exponential, both in place:

    -|x - y|^2 / 2 = (x, -|x|^2/2, 1) . (y, 1, -|y|^2/2)

Of what installs as a wheel, torch's vectorised exponential is twice as fast as NumPy's, and NumPy's
about four times as fast as numexpr's and numba's, whose wheels carry no vector library
(``python -m benchmarks.scale exponentials``). NumPy's needs nothing else installed, and releases
the interpreter's lock, so threads serve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from kernull._threads import one_blas_thread
from kernull._typing import Array
from kernull.kernels import Rbf
from kernull.stacks.kernel_set import KernelSet

#: Bytes of a tile: about what one core's second-level cache holds.
TILE_BYTES = 2**20
#: Below so many kernel values a second thread costs more than it saves.
FEW_VALUES = 2_000_000


@dataclass(frozen=True)
class Side:
    """Rows of every view, ready to meet other rows: scaled, and augmented for rbf kernels."""

    rows: tuple[Array, ...]
    augmented: tuple[Any, ...]  # None for views without rbf kernels

    def __len__(self) -> int:
        return len(self.rows[0])

    def part(self, rows: slice) -> Side:
        """Some of the rows."""
        augmented = tuple(None if part is None else part[rows] for part in self.augmented)
        return Side(tuple(part[rows] for part in self.rows), augmented)


class Tiles:
    """Evaluates tiles of all kernels of a bank in a type; products are summed in float64."""

    def __init__(self, bank: KernelSet, dtype: Any = np.float64) -> None:
        self.bank = bank
        self.dtype = np.dtype(dtype)
        self.size = math.isqrt(TILE_BYTES // self.dtype.itemsize)

    def left(self, X: Array | None = None) -> Side:
        """Rows on the left of a kernel: of X, or the training rows."""
        return self._side(X, left=True)

    def right(self) -> Side:
        """The training rows on the right of a kernel."""
        return self._side(None, left=False)

    def _side(self, X: Array | None, *, left: bool) -> Side:
        rows = tuple(v.train if X is None else v.transform(X) for v in self.bank.views)
        augmented: list[Any] = []
        for part, view in zip(rows, self.bank.views, strict=True):
            centre = next((k.centre for k in view.kernels if isinstance(k, Rbf)), None)
            if centre is None:
                augmented.append(None)
                continue
            # Centred: distances do not feel it, and the expansion is accurate near the origin.
            centred = part - centre
            norms = -0.5 * np.einsum("ij,ij->i", centred, centred)
            ends = (norms, np.ones(len(part))) if left else (np.ones(len(part)), norms)
            both = np.column_stack([centred, *ends])
            augmented.append(np.ascontiguousarray(both, dtype=self.dtype))
        return Side(rows, tuple(augmented))

    def buffers(self) -> Array:
        """Room for one tile's exponents and its kernel values; one such a thread."""
        return np.empty((2, self.size * self.size), dtype=self.dtype)

    def tile(
        self, left: Side, rows: slice, right: Side, columns: slice, buffers: Array
    ) -> Iterator[tuple[int, Array]]:
        """Yield (j, K_j[rows, columns]); a value is valid until the next is asked for."""
        j = 0
        shape = (len(range(*rows.indices(len(left)))), len(range(*columns.indices(len(right)))))
        exponents, values = (b[: shape[0] * shape[1]].reshape(shape) for b in buffers)
        for v, view in enumerate(self.bank.views):
            known = False
            for kernel in view.kernels:
                if isinstance(kernel, Rbf):
                    if not known:
                        x, y = left.augmented[v][rows], right.augmented[v][columns]
                        np.matmul(x, y.T, out=exponents)
                        known = True
                    width: Any = kernel.width
                    np.multiply(exponents, self.dtype.type(width**-2.0), out=values)
                    yield j, np.exp(values, out=values)
                else:
                    part = kernel(left.rows[v][rows], right.rows[v][columns])
                    yield j, part.astype(self.dtype, copy=False)
                j += 1


def blocks_of(n: int, size: int) -> list[slice]:
    """Slices of at most ``size`` that cover range(n)."""
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def tile_products(
    tiles: Tiles,
    left: Side,
    right: Side,
    V: Array,
    *,
    symmetric: bool = False,
    weights: Array | None = None,
    n_jobs: int | None = -1,
) -> Array:
    """K_j V for every j, (J, m, k), or sum_j b_j K_j V, in one sweep over the tiles by all cores.

    V has shape (n, k), or (J, n, k) where each kernel has its own. Where it is ``symmetric``, left
    and right are the same rows and every tile above the diagonal serves twice. With ``weights``
    kernels are summed tile by tile before they meet V, which costs a J-th of the multiplications
    when k is large.
    """
    height = min(tiles.size, len(left))
    width = height if symmetric else tiles.size**2 // height  # few rows: long tiles
    down, across = blocks_of(len(left), height), blocks_of(len(right), width)
    todo = [(r, c) for a, r in enumerate(down) for c in (across[a:] if symmetric else across)]
    few = len(left) * len(right) * tiles.bank.J < FEW_VALUES
    workers = 1 if few else max(1, min(effective_n_jobs(n_jobs), len(todo)))
    V = np.ascontiguousarray(V, dtype=tiles.dtype)
    J = tiles.bank.J if weights is None else 1

    stopped = Event()

    def work(share: Sequence[tuple[slice, slice]]) -> Array:
        out, buffers = np.zeros((J, len(left), V.shape[-1])), tiles.buffers()
        for rows, columns in share:
            if stopped.is_set():
                break
            values = tiles.tile(left, rows, right, columns, buffers)
            for j, K in values if weights is None else _combined(values, weights):
                mine = V if V.ndim == 2 else V[j]
                out[j, rows] += K @ mine[columns]
                if symmetric and rows != columns:
                    out[j, columns] += K.T @ mine[rows]
        return out

    if workers == 1:
        total = work(todo)
    else:
        # Fixed shares, summed in order: the result depends on the number of threads alone.
        shares = [todo[w::workers] for w in range(workers)]
        with one_blas_thread() as limit, limit, ThreadPoolExecutor(workers) as pool:
            try:
                parts = list(pool.map(work, shares))  # BLAS gets one thread: the others are ours
            except BaseException:  # an interrupt, say: nobody waits for the rest of the pass
                stopped.set()
                raise
        total = parts[0]
        for part in parts[1:]:
            total += part
    return total if weights is None else total[0]


def tile_pair(
    tiles: Tiles,
    left: Side,
    right: Side,
    V_left: Array,
    V_right: Array,
    weights: Array | None = None,
) -> tuple[Array, Array]:
    """K_j V_right and K_j' V_left for every j, evaluating each tile once, in this thread.

    With weights, the sums over j of b_j times these, as kernels of their own (J = 1).
    """
    J, k = (tiles.bank.J if weights is None else 1), V_left.shape[-1]
    V_left, V_right = (np.ascontiguousarray(V, dtype=tiles.dtype) for V in (V_left, V_right))
    out_left, out_right = np.zeros((J, len(left), k)), np.zeros((J, len(right), k))
    buffers = tiles.buffers()
    for rows in blocks_of(len(left), tiles.size):
        for columns in blocks_of(len(right), tiles.size):
            values = tiles.tile(left, rows, right, columns, buffers)
            for j, K in values if weights is None else _combined(values, weights):
                x, y = (V if V.ndim == 2 else V[j] for V in (V_left, V_right))
                out_left[j, rows] += K @ y[columns]
                out_right[j, columns] += K.T @ x[rows]
    return out_left, out_right


def _combined(values: Iterator[tuple[int, Array]], weights: Array) -> Iterator[tuple[int, Array]]:
    total: Array | None = None
    for j, K in values:
        total = weights[j] * K if total is None else np.add(total, weights[j] * K, out=total)
    assert total is not None
    yield 0, total

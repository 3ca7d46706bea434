"""Stacks that store no kernel: values are evaluated tile by tile, in buffers that stay in cache.

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
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs

from kernull._runtime import in_threads
from kernull._typing import Array, Mask
from kernull.errors import MemoryLimitError
from kernull.kernels import Rbf
from kernull.operators.base import Stack, SweptStack
from kernull.operators.dense import DenseStack
from kernull.operators.landmarks import LandmarkFactors
from kernull.operators.memory import format_bytes
from kernull.views.kernel_set import KernelSet

#: Bytes of a tile: about what one core's second-level cache holds.
TILE_BYTES = 2**20
#: Kernel values below which a second thread costs more than it saves.
ONE_THREAD_VALUES = 2_000_000
#: Parts that the rows of kernels are evaluated in, by threads.
ROW_PARTS = 16
#: Bytes of one kernel's chunk of new rows; a few times the cache, so that BLAS is efficient and
#: memory stays flat.
CROSS_BYTES = 32 * 2**20


def is_rbf(kernel_set: KernelSet) -> bool:
    """Whether all kernels are rbf: torch evaluates no others."""
    return all(isinstance(kernel, Rbf) for view in kernel_set.views for kernel in view.kernels)


@dataclass(frozen=True)
class Side:
    """Rows of every view, ready to meet other rows: scaled, and augmented for rbf kernels."""

    rows: tuple[Array, ...]
    augmented: tuple[Any, ...]  # None for views without rbf kernels

    def __len__(self) -> int:
        return len(self.rows[0])

    def part(self, rows: slice) -> Side:
        """The rows of a slice."""
        augmented = tuple(None if part is None else part[rows] for part in self.augmented)
        return Side(tuple(part[rows] for part in self.rows), augmented)


class Tiles:
    """Evaluates tiles of all kernels of a set in a type; products are summed in float64."""

    def __init__(self, kernel_set: KernelSet, dtype: Any = np.float64) -> None:
        self.kernel_set = kernel_set
        self.dtype = np.dtype(dtype)
        self.size = math.isqrt(TILE_BYTES // self.dtype.itemsize)

    def left(self, X: Array | None = None) -> Side:
        """Rows on the left of a kernel: of X, or the training rows."""
        return self._side(X, left=True)

    def right(self) -> Side:
        """The training rows on the right of a kernel."""
        return self._side(None, left=False)

    def _side(self, X: Array | None, *, left: bool) -> Side:
        views = self.kernel_set.views
        rows = tuple(v.train if X is None else v.transform(X) for v in views)
        augmented: list[Any] = []
        for part, view in zip(rows, views, strict=True):
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

    def blocks(self, m: int, n: int, *, symmetric: bool = False) -> tuple[list[slice], list[slice]]:
        """Rows and columns of tiles that cover m x n values; few rows have long tiles."""
        height = max(1, min(self.size, m))
        return blocks_of(m, height), blocks_of(n, height if symmetric else self.size**2 // height)

    def tile(
        self, left: Side, rows: slice, right: Side, columns: slice, buffers: Array
    ) -> Iterator[tuple[int, Array]]:
        """Yield (j, K_j[rows, columns]); a value is valid until the next is asked for."""
        j = 0
        shape = (len(range(*rows.indices(len(left)))), len(range(*columns.indices(len(right)))))
        exponents, values = (b[: shape[0] * shape[1]].reshape(shape) for b in buffers)
        for v, view in enumerate(self.kernel_set.views):
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
    workers: int | None = None,
) -> Array:
    """K_j V for every j in one sweep over the tiles by all cores.

    Parameters
    ----------
    tiles : Tiles
        Evaluates J kernels.
    left, right : Side
        The m rows and the n rows that meet.
    V : array of shape (n, k), or (J, n, k)
        Vectors, of all kernels or one block a kernel.
    symmetric : bool
        Whether left and right are the same rows: tiles above the diagonal serve twice then.
    workers : int, optional
        Threads; as many as there are cores by default.

    Returns
    -------
    array of shape (J, m, k)
    """
    down, across = tiles.blocks(len(left), len(right), symmetric=symmetric)
    todo = [(r, c) for a, r in enumerate(down) for c in (across[a:] if symmetric else across)]
    J = tiles.kernel_set.J
    few = len(left) * len(right) * J < ONE_THREAD_VALUES
    workers = 1 if few else min(workers or effective_n_jobs(-1), len(todo))
    V = np.ascontiguousarray(V, dtype=tiles.dtype)
    stopped = Event()

    def work(share: Sequence[tuple[slice, slice]]) -> Array:
        out, buffers = np.zeros((J, len(left), V.shape[-1])), tiles.buffers()
        try:
            for rows, columns in share:
                if stopped.is_set():
                    break
                for j, K in tiles.tile(left, rows, right, columns, buffers):
                    vectors = V if V.ndim == 2 else V[j]
                    out[j, rows] += K @ vectors[columns]
                    if symmetric and rows != columns:
                        out[j, columns] += K.T @ vectors[rows]
        except BaseException:  # an interrupt, say: nobody waits for the rest of the pass
            stopped.set()
            raise
        return out

    # Fixed shares, summed in order: the result depends on the number of threads alone.
    total, *parts = in_threads(work, [todo[w::workers] for w in range(workers)], workers)
    for part in parts:
        total += part
    return total


def tile_pair(
    tiles: Tiles, left: Side, right: Side, V_left: Array, V_right: Array
) -> tuple[Array, Array]:
    """K_j V_right and K_j' V_left for every j, evaluating each tile once, in this thread."""
    J, k = tiles.kernel_set.J, V_left.shape[-1]
    V_left, V_right = (np.ascontiguousarray(V, dtype=tiles.dtype) for V in (V_left, V_right))
    out_left, out_right = np.zeros((J, len(left), k)), np.zeros((J, len(right), k))
    buffers = tiles.buffers()
    for rows in blocks_of(len(left), tiles.size):
        for columns in blocks_of(len(right), tiles.size):
            for j, K in tiles.tile(left, rows, right, columns, buffers):
                x, y = (V if V.ndim == 2 else V[j] for V in (V_left, V_right))
                out_left[j, rows] += K @ y[columns]
                out_right[j, columns] += K.T @ x[rows]
    return out_left, out_right


class TiledStack(SweptStack):
    r"""J kernels between the rows of a kernel set, none of them ever formed.

    A pass over all kernels evaluates :math:`J n (n + 1) / 2` values (tiles above the diagonal
    serve twice) on all cores and multiplies a whole block of vectors by them.

    Parameters
    ----------
    kernel_set : KernelSet
        Kernels and their n training rows.
    left : KernelSet, optional
        The rows on the left, where these are others.
    scale : array of shape (J,), optional
        One factor per kernel.
    dtype : dtype
        Type in which tiles are evaluated; products are summed in float64.
    memory_limit : int, optional
        Bytes that a pass may take beyond its result; more vectors than fit are multiplied in
        several passes.
    """

    def __init__(
        self,
        kernel_set: KernelSet,
        *,
        left: KernelSet | None = None,
        scale: Array | None = None,
        dtype: Any = np.float64,
        memory_limit: int | None = None,
    ) -> None:
        self.kernel_set, self.left = kernel_set, left
        self.scale = np.ones(kernel_set.J) if scale is None else np.asarray(scale, dtype=float)
        self.dtype = np.dtype(dtype)
        self.options = {"dtype": dtype, "memory_limit": memory_limit}
        self.shape = ((left or kernel_set).n, kernel_set.n)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(J={self.J}, shape={self.shape}, dtype={self.dtype})"

    def __getitem__(self, index: Any) -> Self:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        both = index if isinstance(index, tuple) else (index, slice(None))
        rows, columns = (np.arange(s)[i].ravel() for s, i in zip(self.shape, both, strict=True))
        same = self.left is None and np.array_equal(rows, columns)
        left = None if same else (self.left or self.kernel_set).take(rows)
        return self._like(self.kernel_set.take(columns), left, self.scale)

    def _like(self, kernel_set: KernelSet, left: KernelSet | None, scale: Array) -> Self:
        return type(self)(kernel_set, left=left, scale=scale, **self.options)

    def landmark_factors(self) -> LandmarkFactors:
        """Factors of the kernels, which are those between landmarks."""
        return LandmarkFactors(self)

    @cached_property
    def _tiles(self) -> tuple[Tiles, Side, Side]:
        """Tiles, and the rows on the left and on the right of them."""
        tiles = Tiles(self.kernel_set, self.dtype)
        return tiles, Tiles(self.left or self.kernel_set, self.dtype).left(), tiles.right()

    def _sweep(self, V: Array) -> Array:
        alike = V.shape == (self.n, 1) and (V[0] == V).all()
        return self._row_sums * V[0, 0] if alike else self._passes(V)

    @cached_property
    def _row_sums(self) -> Array:
        """Of every kernel: normalisation asks for them, then the solver's first step."""
        return self._passes(np.ones((self.n, 1)))

    def _passes(self, V: Array) -> Array:
        symmetric, width = self.left is None, self._columns_at_once()
        parts = [
            tile_products(*self._tiles, V[..., start : start + width], symmetric=symmetric)
            for start in range(0, V.shape[-1], width)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def _columns_at_once(self) -> int:
        limit, needed = (
            self.options["memory_limit"],
            self.J * len(self) * 8 * (1 + effective_n_jobs(-1)),
        )
        if limit is not None and needed > limit:
            raise MemoryLimitError(
                f"memory_limit: a pass over {self.J} kernels of {self.n} rows needs "
                f"{format_bytes(needed)}, the limit is {format_bytes(limit)}. Raise "
                "memory_limit, or use storage='nystroem'."
            )
        return 2**31 if limit is None else int(limit // needed)

    def diagonal(self) -> Array:
        """k_j(x_i, x_i) of the rows on the left, of shape (J, m)."""
        views = (self.left or self.kernel_set).views
        values = [k.diagonal(view.train) for view in views for k in view.kernels]
        return np.stack(values) * self.scale[:, None]

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        picked = (self.left or self.kernel_set).take(np.atleast_1d(np.arange(len(self))[index]))
        tiles, _, right = self._tiles
        left = Tiles(picked, self.dtype).left()
        out = np.empty((self.J, len(left), self.n))
        down, across = tiles.blocks(len(left), self.n)
        todo = [(r, c) for r in down for c in across]

        def work(share: list[tuple[slice, slice]]) -> None:
            buffers = tiles.buffers()
            for rows, columns in share:
                for j, K in tiles.tile(left, rows, right, columns, buffers):
                    np.multiply(K, self.scale[j], out=out[j, rows, columns])

        parts = 1 if out.size < ONE_THREAD_VALUES else min(len(todo), ROW_PARTS)
        in_threads(work, [todo[part::parts] for part in range(parts)])
        return out


class CrossKernels(SweptStack):
    """The stack between m new rows and the n training rows of a kernel set.

    New rows are scaled, and kernels evaluated, in chunks: memory does not grow with m. Products
    of rbf kernels come from a ``device``, in ``dtype``, where there is one.
    """

    can_combine = True

    def __init__(
        self,
        kernel_set: KernelSet,
        X: Array,
        scale: Array | None = None,
        device: Any = None,
        dtype: Any = np.float64,
    ) -> None:
        self.kernel_set, self.X, self.device = kernel_set, X, device
        self.scale = np.ones(kernel_set.J) if scale is None else np.asarray(scale, dtype=float)
        self.dtype = np.dtype(dtype)
        self.shape = (len(X), kernel_set.n)

    def chunks(self, kernels_at_once: int = 1) -> Iterator[slice]:
        """Slices of rows such that so many kernels' chunks fit `CROSS_BYTES`."""
        step = max(1, CROSS_BYTES // (8 * self.n * kernels_at_once))
        return (slice(i, i + step) for i in range(0, len(self.X), step))

    def _sweep(self, V: Array) -> Array:
        if self.device is not None and is_rbf(self.kernel_set):
            from kernull.operators.torch import TorchTiledStack

            left, there = self.kernel_set.with_rows(self.X), (self.device, self.dtype)
            return TorchTiledStack(self.kernel_set, *there, left=left)._sweep(V)
        tiles = Tiles(self.kernel_set)
        right = tiles.right()
        out = np.empty((self.J, len(self), V.shape[-1]))
        for rows in self.chunks():
            out[:, rows] = tile_products(tiles, tiles.left(self.X[rows]), right, V)
        return out

    def combine(self, weights: Array) -> Array:
        """Sum of b_j K_j, of shape (m, n): meant for few new rows."""
        out = np.empty(self.shape)
        for rows in self.chunks():
            out[rows] = self.kernel_set.combine(weights * self.scale, self.X[rows])
        return out

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        values = np.stack([K for _, K in self.kernel_set.matrices(self.X[index])])
        return np.asarray(values * self.scale[:, None, None])

    def pieces(self) -> Iterator[tuple[slice, Stack]]:
        """The stack in dense pieces of a few rows each."""
        for rows in self.chunks(self.J):
            yield rows, DenseStack(self.rows(rows))  # scaled already

    def diagonal(self) -> Array:
        """k_j(x, x) of the new rows, of shape (J, m)."""
        return self.kernel_set.diagonal(self.X) * self.scale[:, None]

    def select(self, mask: Mask) -> CrossKernels:
        """The stack of the kernels that a mask picks."""
        kernel_set, scale = self.kernel_set.select(mask), self.scale[mask]
        return CrossKernels(kernel_set, self.X, scale, self.device, self.dtype)

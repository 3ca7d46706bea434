"""Row sources: tables that are read block by block and never held whole.

A source has a ``shape`` and yields blocks of rows. Arrays, ``np.memmap`` and Zarr arrays are read
by slices, Parquet files by record batches (extra ``tables``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kernull._typing import Array, Indices
from kernull.errors import need

#: Rows of a block.
BLOCK_ROWS = 8192


class Source(Protocol):
    """A table that can be read again and again, block by block."""

    shape: tuple[int, int]

    def blocks(self) -> Iterator[Array]:
        """Blocks of rows in order, float64, together all rows."""
        ...


class ArraySource:
    """Anything with ``shape`` that slices to rows: arrays, memory maps, Zarr."""

    def __init__(self, rows: Any, block: int = BLOCK_ROWS) -> None:
        if len(rows.shape) != 2:
            raise ValueError(f"X: got an array of shape {rows.shape}; expected (n, d).")
        self.rows, self.block = rows, block
        self.shape = (int(rows.shape[0]), int(rows.shape[1]))

    def blocks(self) -> Iterator[Array]:
        """Slices of rows."""
        for start in range(0, self.shape[0], self.block):
            yield np.asarray(self.rows[start : start + self.block], dtype=float)


class ParquetSource:
    """A Parquet file, or a folder of them, read by record batches."""

    def __init__(self, path: Any) -> None:
        wanted = "reading Parquet needs pyarrow: pip install 'kernull[tables]'."
        self.table = need("pyarrow.dataset", wanted).dataset(path, format="parquet")
        self.shape = (int(self.table.count_rows()), len(self.table.schema.names))

    def blocks(self) -> Iterator[Array]:
        """Record batches, in the order of the file."""
        for batch in self.table.to_batches(batch_size=BLOCK_ROWS):
            if batch.num_rows:
                yield np.column_stack([np.asarray(c, dtype=float) for c in batch.columns])


def open_source(X: Any) -> Source:
    """A source from a source, an array-like, or the path of a Parquet or .npy file."""
    if callable(getattr(X, "blocks", None)) and hasattr(X, "shape"):
        return X  # type: ignore[no-any-return]
    if isinstance(X, str | Path):
        if Path(X).suffix == ".npy":
            return ArraySource(np.load(X, mmap_mode="r"))
        return ParquetSource(X)
    return ArraySource(X)


def sample_rows(source: Source, count: int) -> Array:
    """A uniform sample without replacement, in one sweep."""
    n = source.shape[0]
    index: Indices = np.sort(np.random.default_rng(0).choice(n, min(count, n), replace=False))
    picked, start = [], 0
    for block in source.blocks():
        inside = index[(index >= start) & (index < start + len(block))] - start
        picked.append(block[inside])
        start += len(block)
    return np.concatenate(picked)

"""Parquet files as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernull._text import first_line
from kernull.errors import TableError, need
from kernull.tables.table import Source, pieced_source


def open_parquet(label: str, file: Any, chunk_rows: int) -> Source:
    """Open a Parquet file."""
    wanted = f"{label}: Parquet files need pyarrow: pip install 'kernull[tables]'."
    parquet = need("pyarrow.parquet", wanted)
    try:
        opened = parquet.ParquetFile(file)
        names, rows = opened.schema_arrow.names, opened.metadata.num_rows
    except (need("pyarrow", wanted).ArrowException, OSError, ValueError) as error:
        raise TableError(f"{label}: is not a Parquet file ({first_line(error)}).") from None
    return pieced_source(label, names, _pieces(label, opened, chunk_rows), rows)


def _pieces(label: str, opened: Any, chunk_rows: int) -> Iterator[dict[str, Any]]:
    """Rows by column, as NumPy arrays, so many at a time."""
    import pyarrow

    try:
        for batch in opened.iter_batches(batch_size=chunk_rows):
            # Offsets and dictionary indices come from the file: unchecked, cells may be whatever
            # lies elsewhere in memory.
            batch.validate(full=True)
            arrays = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            yield dict(zip(batch.schema.names, arrays, strict=True))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{label}: cannot be read ({first_line(error)}).") from None

"""Tables from files, in chunks: CSV, Parquet, Arrow and NPZ.

CSV and NPZ need nothing but NumPy; Parquet and Arrow need pyarrow (``kernull[tables]``).
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from kernull.cli._chunks import Chunk, Source, is_number
from kernull.cli._errors import DataError, UsageError

__all__ = ["CHUNK_ROWS", "open_table"]

#: Rows read at once: a few megabytes of text for ordinary tables.
CHUNK_ROWS = 20_000

_ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow", b"PK\x03\x04": "npz"}


def open_table(path: str, chunk_rows: int = CHUNK_ROWS) -> Source:
    """Open a table by its suffix, or standard input (``-``) by its first bytes.

    Parameters
    ----------
    path : str
        A file, or ``-``.
    chunk_rows : int
        Rows a chunk.

    Returns
    -------
    Source
    """
    if path == "-":
        return _open_stdin(chunk_rows)
    file = Path(path)
    if not file.exists():
        raise UsageError(f"{path}: no such file; check the path, or use - for standard input.")
    if file.is_dir():
        raise UsageError(f"{path}: is a folder; expected a CSV, Parquet, Arrow or NPZ file.")
    try:
        if file.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty; expected a header line and rows.")
        suffix = file.suffix.lower()
        if suffix in (".parquet", ".pq"):
            return _parquet(path, path, chunk_rows)
        if suffix in _ARROW_SUFFIXES:
            return _arrow(path, file.open("rb"), chunk_rows)
        if suffix == ".npz":
            return _npz(path, file.open("rb"), chunk_rows)
        raw: IO[bytes] = file.open("rb")
        if suffix == ".gz":
            return _csv(path, gzip.open(raw), chunk_rows, None)  # type: ignore[arg-type]
        return _csv(path, raw, chunk_rows, file.stat().st_size)
    except PermissionError:
        raise DataError(f"{path}: may not be read; check its permissions.") from None


def _open_stdin(chunk_rows: int) -> Source:
    label, stream = "standard input", cast(Any, sys.stdin.buffer)
    raw = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    head = raw.peek(4)[:4]
    if not head:
        raise DataError(f"{label}: is empty; expected a table.")
    kind = _MAGIC.get(head)
    if kind is None:
        return _csv(label, raw, chunk_rows, None)
    content = io.BytesIO(raw.read())  # these formats are read from their end
    if kind == "parquet":
        return _parquet(label, content, chunk_rows)
    return (_arrow if kind == "arrow" else _npz)(label, content, chunk_rows)


# -- CSV -------------------------------------------------------------------------------------


def _csv(label: str, raw: IO[bytes], chunk_rows: int, size: int | None) -> Source:
    text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    try:
        first = text.readline()
        while first.count('"') % 2 and (more := text.readline()):  # a name may span lines
            first += more
        delimiter = _delimiter(first, label)
        head = next(csv.reader(first.splitlines(keepends=True), delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise DataError(f"{label}: is not a CSV file in UTF-8 ({error}).") from None
    if not any(cell.strip() for cell in head):
        raise DataError(f"{label}: the first line is empty; expected a header line and rows.")
    headless = all(map(is_number, head))
    given = [" ".join(cell.strip().splitlines()) for cell in head]
    names = [f"x{i}" for i in range(len(head))] if headless else given
    _check_names(label, names)
    before = [first] if headless else []
    header = 0 if headless else first.count("\n")
    rows = _csv_chunks(label, raw, text, names, delimiter, chunk_rows, before, header)
    return Source(label, tuple(names), rows, size, "bytes", headless)


def _csv_chunks(
    label: str,
    raw: IO[bytes],
    text: IO[str],
    names: list[str],
    delimiter: str,
    chunk_rows: int,
    before: list[str],
    offset: int,
) -> Iterator[tuple[Chunk, int]]:
    def lines() -> Iterator[str]:
        yield from before
        yield from text

    reader = csv.reader(lines(), delimiter=delimiter)
    start, width = 0, len(names)
    with text:
        while True:
            rows: list[list[str]] = []
            numbers: list[int] = []
            try:
                # blank lines count as lines, not as rows
                for row in islice(filter(None, reader), chunk_rows):
                    rows.append(row)
                    numbers.append(reader.line_num + offset)
            except (UnicodeDecodeError, csv.Error, OSError, EOFError) as error:
                line = reader.line_num + offset + 1
                raise DataError(f"{label}: cannot be read near line {line} ({error}).") from None
            if not rows:
                return
            for row, line in zip(rows, numbers, strict=True):
                if len(row) != width:
                    raise DataError(
                        f"{label}: line {line} has {len(row)} cells, the header has {width}."
                    )
            columns: dict[str, Sequence[Any]] = dict(
                zip(names, zip(*rows, strict=True), strict=True)
            )
            done = raw.tell() if raw.seekable() else start + len(rows)
            yield Chunk(label, start, columns, numbers), done
            start += len(rows)


def _delimiter(line: str, label: str) -> str:
    if label.endswith((".tsv", ".tsv.gz")):
        return "\t"
    counts = {mark: line.count(mark) for mark in ",;\t"}
    return max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else ","


# -- Parquet, Arrow, NPZ ---------------------------------------------------------------------


def _pyarrow(label: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise DataError(
            f"{label}: Parquet and Arrow files need pyarrow: pip install 'kernull[tables]'."
        ) from None
    return pyarrow


def _parquet(label: str, file: Any, chunk_rows: int) -> Source:
    pyarrow = _pyarrow(label)
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{label}: is not a Parquet file ({_first_line(error)}).") from None
    batches = opened.iter_batches(batch_size=chunk_rows)
    return _of_batches(label, opened.schema_arrow.names, batches, opened.metadata.num_rows)


def _arrow(label: str, file: Any, chunk_rows: int) -> Source:
    pyarrow = _pyarrow(label)
    from pyarrow import ipc

    try:
        try:
            opened = ipc.open_file(file)
            batches = (opened.get_batch(i) for i in range(opened.num_record_batches))
        except pyarrow.ArrowInvalid:
            file.seek(0)
            opened = ipc.open_stream(file)
            batches = iter(opened)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{label}: is not an Arrow file ({_first_line(error)}).") from None
    small = (
        batch.slice(i, chunk_rows) for batch in batches for i in range(0, len(batch), chunk_rows)
    )
    return _of_batches(label, opened.schema.names, small, None)


def _of_batches(label: str, names: list[str], batches: Any, size: int | None) -> Source:
    _check_names(label, names)

    def chunks() -> Iterator[tuple[Chunk, int]]:
        start = 0
        for batch in batches:
            if not len(batch):
                continue
            columns = {
                name: column.to_numpy(zero_copy_only=False)
                for name, column in zip(names, batch.columns, strict=True)
            }
            yield Chunk(label, start, columns), start + len(batch)
            start += len(batch)

    return Source(label, tuple(names), chunks(), size)


def _npz(label: str, file: Any, chunk_rows: int) -> Source:
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError) as error:
        raise DataError(f"{label}: is not an NPZ file of plain arrays ({error}).") from None
    except Exception as error:  # zipfile has errors of its own
        raise DataError(f"{label}: is not an NPZ file ({_first_line(error)}).") from None
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2):
            raise DataError(f"{label}: the array {name!r} has {array.ndim} axes; expected 1 or 2.")
        if array.ndim == 1:
            columns[name] = array
        else:  # an array of several columns: name_0, name_1, ...
            columns |= {f"{name}_{i}": array[:, i] for i in range(array.shape[1])}
    rows = {len(column) for column in columns.values()}
    if len(rows) != 1:
        raise DataError(f"{label}: arrays must have the same number of rows; got {sorted(rows)}.")
    n = rows.pop()

    def chunks() -> Iterator[tuple[Chunk, int]]:
        for i in range(0, n, chunk_rows):
            part = {name: column[i : i + chunk_rows] for name, column in columns.items()}
            yield Chunk(label, i, part), min(i + chunk_rows, n)

    return Source(label, tuple(columns), chunks(), n)


def _check_names(label: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{label}: two columns are called {name!r}; names must differ.")
        seen.add(name)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

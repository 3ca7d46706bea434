"""One reader for all tables: by the suffix of a file, or by the first bytes of a stream."""

from __future__ import annotations

import gzip
import io
import os
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from kernull._text import first_line
from kernull.errors import TableError, need
from kernull.tables.excel_files import open_excel
from kernull.tables.table import Source, Table, pieced_source
from kernull.tables.text_files import TextFormat, open_text

#: Rows read at once: a few megabytes of text for ordinary tables.
CHUNK_ROWS = 20_000

#: What files hold by their suffixes, and streams by their first bytes; all others hold text.
BY_ENDING = {
    ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel", ".xlsm": "excel", ".xls": "excel",
    ".ods": "excel", ".gz": "gzip",
}  # fmt: skip
MAGIC = {
    b"PAR1": "parquet", b"PK\x03\x04": "excel", b"\xd0\xcf\x11\xe0": "excel",
    b"\x1f\x8b": "gzip",
}  # fmt: skip


def read_table(
    path: str | os.PathLike[str],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Table:
    r"""Read a table from a file, as the command line does.

    Parameters
    ----------
    path : path-like
        CSV (also ``.tsv``, ``.gz``), JSON lines (one object per line), Excel (``.xlsx``,
        ``.xls``), OpenDocument (``.ods``) or Parquet; ``"-"`` is standard input.
    sep, decimal, encoding : str, optional
        Of text files: what separates cells, the decimal mark (``"."`` or ``","``) and the
        encoding. By default they are found out; a warning says so where that was a guess.
    sheet : str, optional
        Of Excel and OpenDocument files; the first one by default.

    Returns
    -------
    Table
        For `TableViews`; ``to_pandas()`` makes a data frame of it. A file that cannot be used is a
        `TableError`, whose message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("a;b\n1;x\n2;y\n")
    >>> table = read_table(path)
    >>> table.names, table.numbers("a").tolist()
    (['a', 'b'], [1.0, 2.0])
    """
    source = open_table(os.fspath(path), form=TextFormat(sep, decimal, encoding), sheet=sheet)
    for said in source.notes:
        warnings.warn(f"{source.label}: {said}", UserWarning, stacklevel=2)
    return source.read()


def open_table(
    path: str,
    chunk_rows: int = CHUNK_ROWS,
    form: TextFormat | None = None,
    sheet: str | None = None,
) -> Source:
    """Open a table to read it in chunks; see `read_table`."""
    form = form or TextFormat()
    if path == "-":
        return _open_stdin(chunk_rows, form, sheet)
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(
            f"{path}: no such file; check the path, or use - for standard input."
        )
    if file.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; expected a file with a table.")
    size = file.stat().st_size
    if size == 0 and file.is_file():
        raise TableError(f"{path}: the file is empty; expected a header line and rows.")
    try:
        with ExitStack() as opened:  # closes a file that turns out to be no table
            raw, kind = (
                opened.enter_context(io.FileIO(path)),
                BY_ENDING.get(file.suffix.lower(), ""),
            )
            source = _open(kind, path, raw, chunk_rows, form, sheet, size)
            # Rows are read later, or never: the file is closed once nobody can ask for them.
            weakref.finalize(source._chunks, opened.pop_all().close)
            return source
    except PermissionError:
        raise TableError(f"{path}: may not be read; check its permissions.") from None


def _open_stdin(chunk_rows: int, form: TextFormat, sheet: str | None) -> Source:
    label, stream = "standard input", cast(Any, sys.stdin.buffer)
    raw = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    head = raw.peek(8)[:8]
    if not head:
        raise TableError(f"{label}: is empty; expected a table.")
    kind = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "")
    if kind not in ("", "gzip"):
        raw = io.BytesIO(raw.read())  # these formats are read from their end
    return _open(kind, label, raw, chunk_rows, form, sheet, None)


def _open(
    kind: str, label: str, file: Any, chunk_rows: int, form: TextFormat, sheet: str | None,
    size: int | None,
) -> Source:  # fmt: skip
    if kind == "excel":
        return open_excel(label, file, chunk_rows, sheet)
    if kind == "parquet":
        return _open_parquet(label, file, chunk_rows)
    if kind == "gzip":
        file, size = gzip.GzipFile(fileobj=file), None
    return open_text(label, file, form, chunk_rows, size)


def _open_parquet(label: str, file: Any, chunk_rows: int) -> Source:
    """Open a Parquet file."""
    wanted = f"{label}: Parquet files need pyarrow: pip install 'kernull[tables]'."
    parquet = need("pyarrow.parquet", wanted)
    try:
        opened = parquet.ParquetFile(file)
        schema, rows = opened.schema_arrow, opened.metadata.num_rows
    except (need("pyarrow", wanted).ArrowException, OSError, ValueError) as error:
        raise TableError(f"{label}: is not a Parquet file ({first_line(error)}).") from None
    notes = [
        f"column {field.name!r} holds {field.type}, which is read as text"
        for field in schema
        if any(kind in str(field.type) for kind in ("list", "struct", "map<", "binary"))
    ]
    return pieced_source(label, schema.names, _pieces(label, opened, chunk_rows), rows, notes)


def _pieces(label: str, opened: Any, chunk_rows: int) -> Iterator[dict[str, Any]]:
    """Rows by column, as NumPy arrays, so many at a time."""
    import pyarrow

    try:
        for batch in opened.iter_batches(batch_size=chunk_rows):
            # Offsets and dictionary indices come from the file: unchecked, cells may be whatever
            # lies elsewhere in memory.
            batch.validate(full=True)
            yield {
                field.name: column.to_pylist()  # NumPy's times have no zone
                if getattr(field.type, "tz", None)
                else column.to_numpy(zero_copy_only=False)
                for field, column in zip(batch.schema, batch.columns, strict=True)
            }
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{label}: cannot be read ({first_line(error)}).") from None

"""One reader for all tables: by the suffix of a file, or by the first bytes of a stream."""

from __future__ import annotations

import gzip
import io
import os
import sys
import warnings
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from kernull.errors import TableError
from kernull.tables.binary_files import open_arrow, open_excel, open_npz, open_parquet
from kernull.tables.table import Source, Table
from kernull.tables.text_files import TextFormat, open_text

#: Rows read at once: a few megabytes of text for ordinary tables.
CHUNK_ROWS = 20_000

_ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_EXCEL_SUFFIXES = (".xlsx", ".xlsm")


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
        CSV (also ``.tsv``, ``.gz``), Excel, Parquet, Arrow or NPZ; ``"-"`` is standard input.
    sep, decimal, encoding : str, optional
        Of text files: what separates cells, the decimal mark (``"."`` or ``","``) and the
        encoding. By default they are found out; a warning says so where that was a guess.
    sheet : str, optional
        Of Excel files; the first one by default.

    Returns
    -------
    Table
        For `TableViews`; ``to_pandas()`` makes a data frame of it.

    Raises
    ------
    TableError
        If the file cannot be used; the message names the line.
    FileNotFoundError
        If there is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("a;b\n1;x\n2;y\n")
    >>> table = read_table(path)
    >>> table.names, table.numbers("a").tolist()
    (['a', 'b'], [1.0, 2.0])
    """
    form = TextFormat(sep, decimal, encoding)
    source = open_table(os.fspath(path), form=form, sheet=sheet)
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
    try:
        size = file.stat().st_size
        if size == 0 and file.is_file():
            raise TableError(f"{path}: the file is empty; expected a header line and rows.")
        suffix = file.suffix.lower()
        if suffix in (".parquet", ".pq"):
            return open_parquet(path, path, chunk_rows)
        with ExitStack() as opened:  # closes a file that turns out to be no table
            if suffix in _ARROW_SUFFIXES:
                source = open_arrow(path, opened.enter_context(file.open("rb")), chunk_rows)
            elif suffix == ".npz":
                source = open_npz(path, opened.enter_context(file.open("rb")), chunk_rows)
            elif suffix in _EXCEL_SUFFIXES:
                source = open_excel(path, opened.enter_context(file.open("rb")), chunk_rows, sheet)
            elif suffix == ".gz":
                unpacked = opened.enter_context(gzip.GzipFile(path))
                source = open_text(path, unpacked, form, chunk_rows, None)
            else:
                raw = opened.enter_context(io.FileIO(path))
                source = open_text(path, raw, form, chunk_rows, size)
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
    binary = (b"PAR1", b"ARRO", b"\xff\xff\xff\xff", b"PK\x03\x04")
    if head.startswith(b"\x1f\x8b"):
        return open_text(label, cast(Any, gzip.GzipFile(fileobj=raw)), form, chunk_rows, None)
    if not head.startswith(binary):
        return open_text(label, raw, form, chunk_rows, None)
    content = io.BytesIO(raw.read())  # these formats are read from their end
    if head.startswith(b"PAR1"):
        return open_parquet(label, content, chunk_rows)
    if head.startswith(b"PK"):
        names = _members(content)
        if any(name.startswith("xl/") for name in names):
            return open_excel(label, content, chunk_rows, sheet)
        return open_npz(label, content, chunk_rows)
    return open_arrow(label, content, chunk_rows)


def _members(content: io.BytesIO) -> list[str]:
    import zipfile

    try:
        with zipfile.ZipFile(content) as archive:
            return archive.namelist()
    except zipfile.BadZipFile as error:
        raise TableError(f"standard input: is a damaged ZIP file ({error}).") from None
    finally:
        content.seek(0)

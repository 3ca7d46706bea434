"""Parquet and Excel files as tables."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from kernull._text import first_line
from kernull.errors import TableError, need
from kernull.tables.table import Source, Table, _check_names

#: Uncompressed content of an Excel file that is read at most.
MAX_EXCEL = 2 * 2**30


def open_parquet(label: str, file: Any, chunk_rows: int) -> Source:
    """Open a Parquet file."""
    pyarrow = _pyarrow(label)
    try:
        opened = pyarrow.parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{label}: is not a Parquet file ({first_line(error)}).") from None
    batches = opened.iter_batches(batch_size=chunk_rows)
    return _of_batches(label, opened.schema_arrow.names, batches, opened.metadata.num_rows)


def _pyarrow(label: str) -> Any:
    wanted = f"{label}: Parquet files need pyarrow: pip install 'kernull[tables]'."
    need("pyarrow.parquet", wanted)
    return need("pyarrow", wanted)


def _of_batches(label: str, names: list[str], batches: Any, size: int | None) -> Source:
    pieces = (
        dict(zip(names, (c.to_numpy(zero_copy_only=False) for c in batch.columns), strict=True))
        for batch in batches
    )
    return _source(label, names, pieces, size)


def _source(
    label: str, names: Sequence[str], pieces: Iterator[Any], size: int | None, notes: Any = ()
) -> Source:
    """Rows that come in pieces, by column."""
    _check_names(label, names)

    def chunks() -> Iterator[tuple[Table, int]]:
        start = 0
        try:
            for columns in pieces:
                rows = Table(label, start, columns)
                start += len(rows)
                if len(rows):
                    yield rows, start
        except OSError as error:
            raise TableError(f"{label}: cannot be read ({first_line(error)}).") from None

    return Source(label, tuple(names), chunks(), size, list(notes))


def open_excel(label: str, file: Any, chunk_rows: int, sheet: str | None = None) -> Source:
    """Open a sheet of an Excel file (.xlsx): the first one, or the one named."""
    openpyxl = need(
        "openpyxl", f"{label}: Excel files need openpyxl: pip install 'kernull[excel]'."
    )
    try:
        with zipfile.ZipFile(file) as archive:
            total = sum(item.file_size for item in archive.infolist())
        if total > MAX_EXCEL:
            raise TableError(f"{label}: holds {total:,} bytes, more than {MAX_EXCEL:,}; use CSV.")
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except TableError:
        raise
    except Exception as error:  # zipfile's, openpyxl's and the XML parser's own
        raise TableError(f"{label}: is not an Excel file ({first_line(error)}).") from None
    if sheet is not None and sheet not in book.sheetnames:
        raise TableError(f"{label}: has no sheet {sheet!r}; it has {', '.join(book.sheetnames)}.")
    page = book[sheet] if sheet is not None else book.worksheets[0]
    rows: Iterator[Any] = (
        row for row in page.iter_rows(values_only=True) if any(c is not None for c in row)
    )
    start = list(islice(rows, 10))
    if not start:
        raise TableError(f"{label}: the sheet {page.title!r} is empty.")
    titles = _titles(start)
    if any(None in row for row in start[titles + 1 :]):
        formulas = openpyxl.load_workbook(file, read_only=True)[page.title]
        _refuse_formulas(label, page.iter_rows(max_row=20), formulas.iter_rows(max_row=20))
    head, rows = start[titles], chain(start[titles + 1 :], rows)
    width = max(i + 1 for i, cell in enumerate(head) if cell is not None)
    names = ["" if cell is None else " ".join(str(cell).split()) for cell in head[:width]]
    notes = []
    if titles:
        notes.append(f"titles before the header are skipped (rows: {titles})")
    if sheet is None and len(book.sheetnames) > 1:
        notes.append(f"the sheet {page.title!r} is read, of {len(book.sheetnames)} (sheet=)")
    return _source(label, names, _pieces(names, rows, chunk_rows), None, notes)


def _refuse_formulas(label: str, found: Iterator[Any], written: Iterator[Any]) -> None:
    """Refuse a sheet whose formulas nobody has computed: their cells would count as empty."""
    for values, row in zip(found, written, strict=False):
        for value, cell in zip(values, row, strict=False):
            formula = isinstance(cell.value, str) and cell.value.startswith("=")
            if formula and value.value is None:
                raise TableError(
                    f"{label}: {cell.coordinate} holds the formula {cell.value[:30]!r} and no "
                    "value; open the file in Excel and save it, or save values only."
                )


def _titles(rows: Sequence[Any]) -> int:
    """How many rows before the header are titles: one cell alone, above rows of several."""
    filled = [sum(cell is not None for cell in row) for row in rows]
    if max(filled) < 3:
        return 0
    return next(i for i, count in enumerate(filled) if count > 1)


def _pieces(names: Sequence[str], rows: Iterator[Any], count: int) -> Iterator[dict[str, Any]]:
    """Rows of a sheet by column, so many at a time; rows that end early have empty cells."""
    width = len(names)
    while part := [(*row[:width], *[None] * (width - len(row))) for row in islice(rows, count)]:
        yield {name: list(cells) for name, cells in zip(names, zip(*part), strict=True)}  # noqa: B905

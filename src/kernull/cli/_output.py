"""Writing results: whole or not at all, to a file or to standard output."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernull._runtime import atomic_write
from kernull._text import visible
from kernull._typing import Array
from kernull.cli._console import finite
from kernull.errors import need

#: Suffixes of the files that rows are written to.
SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
#: Colour of flagged rows in Excel files, and rows that one may have.
FLAGGED, MOST_EXCEL_ROWS = "FFD9D6", 1_048_575
#: What a formula begins with, in spreadsheets of any language.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Control characters, which Excel files cannot hold.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def check_writable(path: str, suffixes: Sequence[str] = (), inputs: Sequence[str] = ()) -> None:
    """Refuse, before any work, a file that cannot be written or is one of the inputs."""
    if path == "-":
        return
    file = Path(path)
    if any(Path(name).exists() and file.exists() and file.samefile(name) for name in inputs):
        raise ValueError(f"--out: {path}: is an input of this command; choose another name.")
    if suffixes and file.suffix.lower() not in suffixes:
        raise ValueError(f"--out: {path}: expected a name that ends in {', '.join(suffixes)}.")
    if file.is_dir():
        raise ValueError(f"--out: {path}: is a folder; expected a file name.")
    if file.exists() and not file.is_file():
        return  # a pipe or a device
    try:  # asking the system is not enough: root, containers and network folders differ
        with tempfile.TemporaryFile(dir=file.resolve().parent):
            pass
    except OSError as error:
        raise OSError(f"--out: {path}: cannot write there ({error.strerror}).") from None


def plain_cell(value: Any) -> Any:
    """A cell that spreadsheets take for text, where they would take it for a formula.

    Text that begins with one of ``= + - @`` (or a control character before it) runs when a table
    is opened there; an apostrophe in front keeps it text. Numbers written as text stay.

    Examples
    --------
    >>> plain_cell("=HYPERLINK(1)"), plain_cell("-12.5"), plain_cell("a=b")
    ("'=HYPERLINK(1)", '-12.5', 'a=b')
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


class RowWriter:
    """Rows in chunks, to CSV, TSV or JSON lines."""

    def __init__(self, file: IO[str], names: Sequence[str], kind: str = ".csv") -> None:
        self.file, self.names, self.kind = file, tuple(names), kind
        tab = "\t" if kind == ".tsv" else ","
        self.csv = csv.writer(file, delimiter=tab, lineterminator="\n")
        self.for_people = file.isatty()
        self.started = False

    def write(self, columns: Sequence[Any]) -> None:
        """Write rows, by column."""
        # Python numbers print their shortest exact form; NumPy's print their type.
        lists = [c.tolist() if isinstance(c, np.ndarray) else list(c) for c in columns]
        if self.kind == ".jsonl":
            rows = (dict(zip(self.names, row, strict=True)) for row in zip(*lists, strict=True))
            self.file.writelines(json.dumps(finite(row)) + "\n" for row in rows)
            return
        if not self.started:  # with the first rows: an error before them leaves nothing
            self.csv.writerow(self._cells(self.names))
        self.started = True
        self.csv.writerows(zip(*map(self._cells, lists), strict=True))

    def close(self, facts: dict[str, Any]) -> None:
        """End; facts on all rows have no place in text."""
        self.file.flush()

    def _cells(self, cells: Sequence[Any]) -> Sequence[Any]:
        # A bare carriage return would end a row: csv quotes line feeds alone.
        cells = [plain_cell(c).replace("\r", "\n") if isinstance(c, str) else c for c in cells]
        if self.for_people:  # a terminal obeys what is in them
            cells = [visible(cell, "\n") if isinstance(cell, str) else cell for cell in cells]
        return cells


class _Collector:
    """Rows that are kept, and written to Parquet or Excel at the end."""

    def __init__(self, path: Path, names: Sequence[str], kind: str) -> None:
        self.path, self.kind = path, kind
        self.parts: dict[str, list[Any]] = {name: [] for name in names}

    def write(self, columns: Sequence[Any]) -> None:
        """Take rows, by column."""
        for part, column in zip(self.parts.values(), columns, strict=True):
            part.append(np.asarray(column))

    def close(self, facts: dict[str, Any]) -> None:
        """Write the file."""
        columns = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        if self.kind == ".xlsx":
            _write_excel(self.path, columns, facts)
            return
        wanted = "--out: Parquet files need pyarrow: pip install 'kernull[tables]'."
        need("pyarrow.parquet", wanted).write_table(
            need("pyarrow", wanted).table(columns), self.path
        )


def _write_excel(path: Path, columns: dict[str, Array], facts: dict[str, Any]) -> None:
    """A sheet of rows, flagged ones coloured, and a sheet that sums them up."""
    openpyxl = need("openpyxl", "--out: Excel files need openpyxl: pip install openpyxl.")
    styles = need("openpyxl.styles", "")
    flags = columns["flag"].tolist()
    n = len(flags)
    if n > MOST_EXCEL_ROWS:
        raise ValueError(f"--out: {n:,} rows are more than a sheet holds; write .parquet or .csv.")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title, bold = "rows", styles.Font(bold=True)
    fill = styles.PatternFill("solid", fgColor=FLAGGED)
    for c, (name, values) in enumerate(columns.items(), start=1):
        cells = values.tolist()
        _set(sheet.cell(1, c), name).font = bold
        width = max([len(name), *(len(str(cell)) for cell in cells[:200] if cell is not None)])
        sheet.column_dimensions[sheet.cell(1, c).column_letter].width = min(width + 2, 60)
        for r, cell in enumerate(cells):
            written = _set(sheet.cell(r + 2, c), cell)
            if flags[r]:
                written.fill = fill
    sheet.freeze_panes, sheet.auto_filter.ref = "B2", sheet.dimensions
    summary = book.create_sheet("summary")
    for r, (name, value) in enumerate(facts.items(), start=1):
        _set(summary.cell(r, 1), name).font = bold
        _set(summary.cell(r, 2), value)
    summary.column_dimensions["A"].width = summary.column_dimensions["B"].width = 24
    book.save(path)


def _set(cell: Any, value: Any) -> Any:
    """Write a value into a cell of Excel; text stays text, whatever it begins with."""
    if isinstance(value, str):
        cell.value = _UNPRINTABLE.sub("", value)[:32_767]
        cell.data_type = "s"
    elif value is not None and not (isinstance(value, float) and not math.isfinite(value)):
        cell.value = value
    return cell


@contextlib.contextmanager
def row_writer(path: str, names: Sequence[str], json: bool = False) -> Iterator[Any]:
    """A writer for rows, by the suffix of a file or for standard output (``-``)."""
    if path == "-":
        yield RowWriter(sys.stdout, names, ".jsonl" if json else ".csv")
        return
    kind = Path(path).suffix.lower()
    with atomic_write(path) as part:
        if kind in (".parquet", ".xlsx"):
            yield _Collector(part, names, kind)
        else:
            with part.open("w", encoding="utf-8", newline="") as file:
                yield RowWriter(file, names, kind)

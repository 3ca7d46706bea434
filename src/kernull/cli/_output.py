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
from kernull.cli._console import DataError, StoppedError, UsageError
from kernull.errors import need

#: What is written by the suffix of a file.
BY_SUFFIX = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet", ".pq": "parquet",
    ".xlsx": "excel",
}  # fmt: skip
SUFFIXES = tuple(BY_SUFFIX)
#: Colour of flagged rows in Excel files, and rows that one may have.
FLAGGED, MOST_EXCEL_ROWS = "FFD9D6", 1_048_575
#: What a formula begins with, in spreadsheets of any language.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Control characters, which Excel files cannot hold.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def check_writable(path: str, suffixes: Sequence[str] = (), inputs: Sequence[str] = ()) -> None:
    """Say early, before any work, that a file cannot be written, or is one of the inputs."""
    if path == "-":
        return
    file = Path(path)
    for given in inputs:
        if given != "-" and file.exists() and Path(given).exists() and file.samefile(given):
            raise UsageError(f"--out: {path}: is an input of this command; choose another name.")
    if suffixes and file.suffix.lower() not in suffixes:
        raise UsageError(f"--out: {path}: expected a name that ends in {', '.join(suffixes)}.")
    if file.is_dir():
        raise UsageError(f"--out: {path}: is a folder; expected a file name.")
    if file.exists() and not file.is_file():
        return  # a pipe or a device
    folder = file.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"--out: {path}: there is no folder {str(folder)!r}; create it first.")
    try:  # asking the system is not enough: root, containers and network folders differ
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(f"--out: {path}: cannot write there ({error.strerror}).") from None


def finite(value: Any) -> Any:
    """What JSON can hold: numbers that are none, or infinite, become null."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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


class _Lines:
    r"""Lines that end in ``\n``, for a writer of CSV that takes them to end in ``\r\n``.

    It quotes cells that hold a character of the line's end: a bare ``\r`` splits a row as well.
    """

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, line: str) -> None:
        self.file.write(line.removesuffix("\r\n") + "\n")


class RowWriter:
    """Rows in chunks, to CSV, TSV or JSON lines; ``formulas`` leaves those as they are."""

    def __init__(
        self, file: IO[str], names: Sequence[str], kind: str = "csv", *, formulas: bool = False
    ) -> None:
        self.file, self.names, self.kind, self.formulas = file, tuple(names), kind, formulas
        if kind != "jsonl":
            delimiter = "\t" if kind == "tsv" else ","
            self.csv = csv.writer(_Lines(file), delimiter=delimiter, lineterminator="\r\n")
        self.for_people = file.isatty()
        self.started = False
        self.rows = 0

    def write(self, columns: Sequence[Any]) -> None:
        """Write some rows, given by column."""
        # Python numbers print their shortest exact form; NumPy's print their type.
        lists = [c.tolist() if isinstance(c, np.ndarray) else list(c) for c in columns]
        begins, self.started = not self.started, True
        if self.kind == "jsonl":
            rows = (dict(zip(self.names, row, strict=True)) for row in zip(*lists, strict=True))
            self.file.writelines(json.dumps(finite(row)) + "\n" for row in rows)
        else:
            if begins:  # with the first rows: an error before them leaves nothing
                self.csv.writerow(self._cells(self.names))
            self.csv.writerows(zip(*map(self._cells, lists), strict=True))
        self.rows += len(lists[0])

    def summary(self, facts: dict[str, Any]) -> None:
        """Facts on all rows have no place here."""

    def _cells(self, cells: Sequence[Any]) -> Sequence[Any]:
        if not self.formulas:
            cells = [plain_cell(cell) for cell in cells]
        if self.for_people:  # a terminal obeys what is in them
            cells = [visible(cell, "\n") if isinstance(cell, str) else cell for cell in cells]
        return cells


class _Collector:
    """Rows that are kept and written at the end, by column."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names = path, tuple(names)
        self.parts: list[list[Any]] = [[] for _ in names]
        self.facts: dict[str, Any] = {}

    def write(self, columns: Sequence[Any]) -> None:
        """Take some rows, by column."""
        for part, column in zip(self.parts, columns, strict=True):
            part.append(np.asarray(column))

    def summary(self, facts: dict[str, Any]) -> None:
        """Take facts on all rows, for a sheet of their own."""
        self.facts = facts

    @property
    def columns(self) -> dict[str, Any]:
        """All rows, by column."""
        return {n: np.concatenate(p) for n, p in zip(self.names, self.parts, strict=True)}

    def close(self) -> None:
        """Write the file."""
        raise NotImplementedError


class _ParquetWriter(_Collector):
    def close(self) -> None:
        wanted = "--out: Parquet files need pyarrow: pip install 'kernull[tables]'."
        table = need("pyarrow", wanted).table(self.columns)
        need("pyarrow.parquet", wanted).write_table(table, self.path)


class _ExcelWriter(_Collector):
    """A sheet of rows, flagged ones coloured, and a sheet that sums them up."""

    def close(self) -> None:
        openpyxl = need("openpyxl", "--out: Excel files need openpyxl: pip install openpyxl.")
        styles = need("openpyxl.styles", "")
        columns = {name: cells.tolist() for name, cells in self.columns.items()}
        if (n := len(next(iter(columns.values()), ()))) > MOST_EXCEL_ROWS:
            raise DataError(
                f"--out: {n:,} rows are more than a sheet holds; write .parquet or .csv."
            )
        book = openpyxl.Workbook()
        sheet = book.active
        sheet.title, bold = "rows", styles.Font(bold=True)
        fill = styles.PatternFill("solid", fgColor=FLAGGED)
        flags = columns.get("flag", [0] * n)
        for c, (name, cells) in enumerate(columns.items(), start=1):
            _set(sheet.cell(1, c), name).font = bold
            width = max([len(name), *(len(str(cell)) for cell in cells[:200] if cell is not None)])
            sheet.column_dimensions[sheet.cell(1, c).column_letter].width = min(width + 2, 60)
            for r, cell in enumerate(cells):
                written = _set(sheet.cell(r + 2, c), cell)
                if flags[r]:
                    written.fill = fill
        sheet.freeze_panes, sheet.auto_filter.ref = "B2", sheet.dimensions
        facts = book.create_sheet("summary")
        for name, value in self.facts.items():
            facts.append([None, None])
            _set(facts.cell(facts.max_row, 1), name).font = bold
            _set(facts.cell(facts.max_row, 2), value)
        facts.column_dimensions["A"].width = facts.column_dimensions["B"].width = 24
        book.save(self.path)


def _set(cell: Any, value: Any) -> Any:
    """Write a value into a cell of Excel; text stays text, whatever it begins with."""
    if isinstance(value, str):
        cell.value = _UNPRINTABLE.sub("", value)[:32_767]
        cell.data_type = "s"
    elif value is not None and not (isinstance(value, float) and not math.isfinite(value)):
        cell.value = value
    return cell


@contextlib.contextmanager
def row_writer(
    path: str, names: Sequence[str], as_json: bool = False, formulas: bool = False
) -> Iterator[RowWriter | _Collector]:
    """A writer for rows, by the suffix of a file or for standard output (``-``)."""
    if path == "-":
        kind = "jsonl" if as_json else "csv"
        writer = RowWriter(sys.stdout, names, kind, formulas=formulas)
        try:
            yield writer
            sys.stdout.flush()
        except KeyboardInterrupt:
            if not writer.started:
                raise
            raise StoppedError(
                f"stopped; at least {writer.rows:,} rows are on standard output, not all."
            ) from None
        return
    kind = BY_SUFFIX.get(Path(path).suffix.lower(), "csv")
    with atomic_write(path) as part:
        if kind in ("parquet", "excel"):
            collected = (_ParquetWriter if kind == "parquet" else _ExcelWriter)(part, names)
            yield collected
            collected.close()
        else:
            with part.open("w", encoding="utf-8", newline="") as file:
                yield RowWriter(file, names, kind, formulas=formulas)

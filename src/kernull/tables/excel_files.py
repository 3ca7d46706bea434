"""Spreadsheets as tables: Excel's .xlsx and .xls, and OpenDocument's .ods.

python-calamine reads them, in a process of its own with limits on memory and time.
"""

from __future__ import annotations

import io
import marshal
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

from kernull._text import first_line, listed
from kernull.errors import TableError, need
from kernull.tables import excel_process
from kernull.tables.cells import is_missing
from kernull.tables.table import Source, pieced_source

#: What a file may unpack to: so many bytes, or so many times its own size where that is more.
MAX_CONTENT = 2**28
MAX_RATIO = 100
#: Memory of the process that reads: so many bytes, and so many for each byte of the file. A cell
#: takes 72 bytes in the process and 5 to 7 in a file of numbers.
MEMORY = 768 * 2**20
MEMORY_PER_BYTE = 50
#: Seconds of the processor, and bytes (unpacked) for which there is one more. Python starts in
#: 0.1 s and 40 million bytes take 1 s; some .ods files that are cut off would be read for ever.
SECONDS = 1
BYTES_PER_SECOND = 5_000_000
#: First bytes of a ZIP archive (.xlsx, .ods) and of a compound file (.xls).
STARTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
#: Cells of .xlsx and .ods files with a formula and no value. (One that gives the empty text has an
#: empty value, of type str.)
FORMULAS = (
    rb'<c (?![^>]*t="str")[^>]*>\s*<f(?:[^>]*/>|[^>]*>[^<]*</f>)\s*(?:<v\s*/>|<v></v>)?\s*</c>'
    rb"|<table:table-cell (?=[^>]*table:formula=)(?![^>]*office:value-type)[^>]*>"
)
NOT_COMPUTED = "formulas that were never computed are read as empty (open it in Excel and save it)"
#: What a compound file has that holds an .xlsx file under a password.
PROTECTED = "EncryptedPackage".encode("utf-16-le")


def open_excel(label: str, file: Any, chunk_rows: int, sheet: str | None = None) -> Source:
    """Open a sheet of an .xlsx, .xls or .ods file: the first one, or the one named."""
    calamine = need(
        "python_calamine",
        f"{label}: Excel files need python-calamine: pip install 'kernull[excel]'.",
    )
    content = file.read()
    seconds = SECONDS + _unpacked(label, content) // BYTES_PER_SECOND
    batches = _read(label, content, sheet, str(Path(calamine.__file__).parents[1]), seconds)
    head = next(batches)
    if "error" in head:
        if PROTECTED in content or "password" in head["error"].lower():
            raise TableError(
                f"{label}: is protected by a password; open it in Excel and save it without one."
            )
        raise TableError(f"{label}: is damaged, cut off or no Excel file ({head['error']}).")
    if "sheet" not in head:
        raise TableError(f"{label}: has no sheet {sheet!r}; it has {', '.join(head['sheets'])}.")
    rows: Iterator[Any] = chain.from_iterable(batches)
    start = list(islice(rows, 10))
    if not start:
        others = [name for name in head["sheets"] if name != head["sheet"]]
        more = f"; name another one (sheet={others[0]!r}): it has {listed(others)}" * bool(others)
        raise TableError(f"{label}: the sheet {head['sheet']!r} is empty{more}.")
    titles = _titles([cells for _, cells in start])
    header = start[titles][1]
    names = ["" if cell is None else " ".join(str(cell).split()) for cell in header]
    notes = [NOT_COMPUTED] if _has_formulas_without_values(content) else []
    if titles:
        notes.append(f"titles before the header are skipped (rows: {titles})")
    if sheet is None and len(head["sheets"]) > 1:
        notes.append(f"the sheet {head['sheet']!r} is read, of {len(head['sheets'])} (sheet=)")
    rows = chain(start[titles + 1 :], rows)
    return pieced_source(label, names, _pieces(label, names, rows, chunk_rows), None, notes)


def _unpacked(label: str, content: bytes) -> int:
    """Bytes that a file unpacks to; an error where they are too many, or it is another file."""
    if not content.startswith(STARTS):
        raise TableError(f"{label}: is not an Excel file (it is neither .xlsx, .xls nor .ods).")
    if not content.startswith(STARTS[0]):
        return len(content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            total = sum(item.file_size for item in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
        raise TableError(f"{label}: is damaged or cut off ({first_line(error)}).") from None
    most = max(MAX_CONTENT, MAX_RATIO * len(content))
    if total > most:
        raise TableError(f"{label}: unpacks to {total:,} bytes, more than {most:,}; use CSV.")
    return total


def _has_formulas_without_values(content: bytes) -> bool:
    """Whether any sheet has formulas that no program has computed; .xls files do not tell."""
    if not content.startswith(STARTS[0]):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            sheets = [n for n in archive.namelist() if "worksheets/" in n or n == "content.xml"]
            return any(re.search(FORMULAS, archive.read(name)) for name in sheets)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError):
        return False  # python-calamine read it, whatever is odd about it


def _read(
    label: str, content: bytes, sheet: str | None, folder: str, seconds: int
) -> Iterator[Any]:
    """What `excel_process` says of a file: what is in it, then lists of rows and their numbers."""
    memory = MEMORY + MEMORY_PER_BYTE * len(content)
    command = [sys.executable, "-I", "-S", excel_process.__file__, folder]
    # What it wrote until it ended tells all: how it ended does not matter.
    done = subprocess.run(
        [*command, str(memory), str(seconds)],
        input=marshal.dumps(sheet) + content,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    written = io.BytesIO(done.stdout)
    try:
        yield marshal.load(written)
        while (rows := marshal.load(written)) is not None:
            if isinstance(rows, dict):
                raise TableError(f"{label}: cannot be read ({rows['error']}).")
            yield [(number, [_cell(cell) for cell in row]) for number, row in rows]
    except EOFError:
        raise TableError(
            f"{label}: cannot be read within {memory / 2**20:,.0f} MB and {seconds:,} s; it is "
            "damaged, or has a cell far from all others: use CSV."
        ) from None


def _cell(cell: Any) -> Any:
    """A cell as it was before it was sent."""
    if type(cell) is not tuple:
        return cell
    if len(cell) == 7:
        return datetime(*cell)
    return time(*cell) if len(cell) == 4 else timedelta(*cell)


def _titles(rows: Sequence[Any]) -> int:
    """How many rows before the header are titles: one cell alone, above rows of several."""
    filled = [sum(cell is not None for cell in row) for row in rows]
    if max(filled) < 3:
        return 0
    return next(i for i, count in enumerate(filled) if count > 1)


def _pieces(
    label: str, names: Sequence[str], rows: Iterator[Any], count: int
) -> Iterator[dict[str, Any]]:
    """Rows of a sheet by column, so many at a time; rows that end early have empty cells."""
    width = len(names)
    while part := list(islice(rows, count)):
        for number, row in part:
            if not all(map(is_missing, row[width:])):
                raise TableError(
                    f"{label}: row {number} has {len(row)} cells, the header has {width}; name the "
                    "column in the header, or remove what is beside the table."
                )
        whole = [(*row, *[None] * (width - len(row))) for _, row in part]
        yield {name: list(cells) for name, cells in zip(names, zip(*whole), strict=True)}  # noqa: B905

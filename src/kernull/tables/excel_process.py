"""The program that reads one spreadsheet for `kernull.tables.excel_files`, in its own process.

It is run by its path, without kernull and without site packages: Rust ends the process where memory
cannot be had, and a file of 5 kB can name a cell so far away that no machine has the memory for the
cells in between. Marshalled values go both ways.
"""

from __future__ import annotations

import contextlib
import io
import marshal
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree

#: Cells of a batch of rows.
BATCH_CELLS = 50_000
#: Rows of a sheet that are searched for formulas without values.
FORMULA_ROWS = 20
#: Whole numbers up to here have one form as a double; files do not tell them from integers.
LARGEST_INTEGER = 2**53


def _limit(memory: int, seconds: int) -> None:
    """Limit the address space and the processor time of this process, where a system can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _number(cell: float) -> float:
    return int(cell) if cell.is_integer() and abs(cell) < LARGEST_INTEGER else cell


#: What is sent for a cell: dates, times and spans as tuples of seven, four and three numbers.
_FORMS: dict[type, Callable[[Any], Any]] = {
    str: lambda cell: cell or None,
    float: _number,
    date: lambda cell: (cell.year, cell.month, cell.day, 0, 0, 0, 0),
    datetime: lambda cell: (*cell.timetuple()[:6], cell.microsecond),
    time: lambda cell: (cell.hour, cell.minute, cell.second, cell.microsecond),
    timedelta: lambda cell: (cell.days, cell.seconds, cell.microseconds),
}


def _rows(sheet: Any) -> Iterator[list[Any]]:
    """Rows that are not empty, without the empty cells at their end."""
    before = [None] * (sheet.start or (0, 0))[1]
    for cells in sheet.iter_rows():
        width = len(cells)
        if cells.count("") < width:
            while cells[width - 1] == "":
                width -= 1
            del cells[width:]
            yield before + [_FORMS.get(type(cell), _same)(cell) for cell in cells]


def _same(cell: Any) -> Any:
    return cell


def _local(name: str) -> str:
    """The name of an element or attribute without its namespace."""
    return name.rpartition("}")[2]


def uncomputed(content: bytes, sheet: str) -> tuple[str, str] | None:
    """The first cell of a sheet with a formula and no value, and the formula; None without any.

    Only the first rows are searched, and in .xlsx and .ods files alone: .xls files do not tell.
    """
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if "content.xml" in archive.namelist():
            with archive.open("content.xml") as file:
                return _uncomputed_ods(file, sheet)
        with archive.open(_part(archive, sheet)) as file:
            return _uncomputed_xlsx(file)


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """The file of a sheet in an .xlsx file."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    key = next(
        value
        for element in book.iter()
        if _local(element.tag) == "sheet" and element.get("name") == sheet
        for name, value in element.items()
        if name.endswith("}id")
    )
    target = next(str(link.get("Target")) for link in links if link.get("Id") == key)
    return target[1:] if target.startswith("/") else f"xl/{target}"


def _uncomputed_xlsx(file: Any) -> tuple[str, str] | None:
    rows = 0
    for _, element in ElementTree.iterparse(file):
        tag = _local(element.tag)
        if tag == "c":
            parts = {_local(part.tag): part for part in element}
            value = parts.get("v")
            # A formula that gives the empty text has an empty value, of a cell of type str.
            computed = value is not None and (value.text or element.get("t") == "str")
            if "f" in parts and not computed:
                return element.get("r", "a cell"), f"={parts['f'].text or ''}"
        elif tag == "row":
            rows += 1
            if rows == FORMULA_ROWS:
                break
            element.clear()
    return None


def _uncomputed_ods(file: Any, sheet: str) -> tuple[str, str] | None:
    inside, rows = False, 0
    for event, element in ElementTree.iterparse(file, ("start", "end")):
        tag = _local(element.tag)
        found = {_local(name): value for name, value in element.items()}
        if event == "start":
            if tag == "table":
                inside = found.get("name") == sheet
        elif inside and tag == "table-cell":
            if "formula" in found and "value-type" not in found:
                return f"row {rows + 1}", found["formula"].removeprefix("of:")
        elif inside and tag == "table-row":
            rows += 1
            if rows == FORMULA_ROWS:
                break
    return None


def main() -> None:
    """Read the name of a sheet and a file from standard input; write its rows."""
    folder, memory, seconds = sys.argv[1:]
    source, target = sys.stdin.buffer, sys.stdout.buffer
    wanted, content = marshal.load(source), source.read()
    _limit(int(memory), int(seconds))
    sys.path.append(folder)
    try:
        import python_calamine as calamine

        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        pages = calamine.SheetTypeEnum.WorkSheet
        names = [page.name for page in book.sheets_metadata if page.typ == pages]
        name = names[0] if wanted is None else wanted
        if name not in names:
            marshal.dump({"sheets": names}, target)
            return
        sheet = book.get_sheet_by_name(name)
        formula = None
        with contextlib.suppress(Exception):  # calamine read it, whatever is odd about it
            formula = uncomputed(content, name)
        marshal.dump({"sheets": names, "sheet": name, "formula": formula}, target)
        batch: list[list[Any]] = []
        count = 0
        for row in _rows(sheet):
            batch.append(row)
            count += len(row)
            if count >= BATCH_CELLS:
                marshal.dump(batch, target)
                batch, count = [], 0
        marshal.dump(batch, target)
        marshal.dump(None, target)
    except BaseException as error:  # panics of Rust are no exceptions
        said = str(error).strip().splitlines() or [type(error).__name__]
        marshal.dump({"error": said[0]}, target)


if __name__ == "__main__":
    main()

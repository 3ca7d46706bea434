"""The program that reads one spreadsheet for `kernull.tables.excel_files`, in its own process.

It is run by its path, without kernull and without site packages: Rust ends the process where memory
cannot be had, and a file of 5 kB can name a cell so far away that no machine has the memory for the
cells in between. Marshalled values go both ways.
"""

from __future__ import annotations

import contextlib
import io
import marshal
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree

#: Cells of a batch of rows.
BATCH_CELLS = 50_000
#: Characters of a formula that are told.
FORMULA_LENGTH = 30
#: Whole numbers up to here have one form as a double; files do not tell them from integers.
LARGEST_INTEGER = 2**53

#: Texts of formulas by row and column, both from 1.
Formulas = dict[int, dict[int, str]]


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


def _rows(sheet: Any, formulas: Formulas) -> Iterator[tuple[int, list[Any]]]:
    """Rows that are not empty, each with its number and without the empty cells at its end.

    A formula without a value counts as a cell: a tuple of its place and text.
    """
    before = [""] * (sheet.start or (0, 0))[1]
    for row, cells in enumerate(sheet.iter_rows(), 1):
        found = formulas.pop(row, None)
        width = len(cells)
        if found is None and cells.count("") == width:
            continue
        cells = before + cells
        if found is not None:
            _insert(cells, row, found)
        while cells[-1] == "":
            del cells[-1]
        yield row, [_FORMS.get(type(cell), _same)(cell) for cell in cells]
    for row in sorted(formulas):
        cells = []
        _insert(cells, row, formulas[row])
        yield row, [cell or None for cell in cells]


def _insert(cells: list[Any], row: int, found: dict[int, str]) -> None:
    """Put formulas of a row, by column, where its cells are empty."""
    cells += [""] * (max(found) - len(cells))
    for column, formula in found.items():
        if cells[column - 1] == "":
            cells[column - 1] = (f"{_letters(column)}{row}", formula)


def _same(cell: Any) -> Any:
    return cell


def _local(name: str) -> str:
    """The name of an element or attribute without its namespace."""
    return name.rpartition("}")[2]


def _uncomputed(content: bytes, sheet: str) -> Formulas:
    """Formulas of a sheet whose cells have no value; .xls files do not tell."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if "content.xml" in archive.namelist():
            return _uncomputed_ods(archive.read("content.xml"), sheet)
        return _uncomputed_xlsx(archive.read(_part(archive, sheet)))


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


def _uncomputed_xlsx(content: bytes) -> Formulas:
    found: Formulas = {}
    if not re.search(rb"<(\w+:)?f[\s/>]", content):
        return found
    row = 0
    for _, element in ElementTree.iterparse(io.BytesIO(content)):
        if _local(element.tag) != "row":
            continue
        row, column = int(element.get("r", row + 1)), 0
        for cell in element:
            column = _column(cell.get("r", "")) or column + 1
            parts = {_local(part.tag): part for part in cell}
            value = parts.get("v")
            # A formula that gives the empty text has an empty value, of a cell of type str.
            computed = value is not None and (value.text or cell.get("t") == "str")
            if "f" in parts and not computed and "is" not in parts:
                text = f"={parts['f'].text or ''}"
                found.setdefault(row, {})[column] = text[:FORMULA_LENGTH]
        element.clear()
    return found


def _uncomputed_ods(content: bytes, sheet: str) -> Formulas:
    found: Formulas = {}
    if not re.search(rb":formula\s*=", content):
        return found
    inside, row = False, 1
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):
        tag = _local(element.tag)
        if event == "start":
            if tag == "table":
                inside = _attributes(element).get("name") == sheet
        elif tag == "table-row":
            column = 1
            for cell in element if inside else ():
                known = _attributes(cell)
                if "formula" in known and "value-type" not in known:
                    text = known["formula"].removeprefix("of:")
                    found.setdefault(row, {})[column] = text[:FORMULA_LENGTH]
                column += int(known.get("number-columns-repeated", 1))
            row += int(_attributes(element).get("number-rows-repeated", 1)) * inside
            element.clear()
    return found


def _attributes(element: Any) -> dict[str, str]:
    return {_local(name): value for name, value in element.items()}


def _column(place: str) -> int:
    """The number of a cell's column, from 1: 28 for AB7; 0 without a place."""
    number = 0
    for letter in place.rstrip("0123456789"):
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _letters(column: int) -> str:
    """The name of a column by its number: AB for 28."""
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


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
        formulas: Formulas = {}
        try:
            formulas = _uncomputed(content, name)
        except MemoryError:
            raise
        except Exception:  # calamine read it, whatever is odd about it
            pass
        marshal.dump({"sheets": names, "sheet": name}, target)
        batch: list[tuple[int, list[Any]]] = []
        count = 0
        for row in _rows(sheet, formulas):
            batch.append(row)
            count += len(row[1])
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

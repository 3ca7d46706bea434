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
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

#: Cells of a batch of rows.
BATCH_CELLS = 50_000
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


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Rows that are not empty, each with its number and without the empty cells at its end."""
    before = [""] * (sheet.start or (0, 0))[1]
    for row, cells in enumerate(sheet.iter_rows(), 1):
        if cells.count("") == len(cells):
            continue
        cells = before + cells
        while cells[-1] == "":
            del cells[-1]
        yield row, [_FORMS[type(cell)](cell) if type(cell) in _FORMS else cell for cell in cells]


def answer() -> None:
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
        marshal.dump({"sheets": names, "sheet": name}, target)
        batch: list[tuple[int, list[Any]]] = []
        count = 0
        for row in _rows(sheet):
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
    answer()

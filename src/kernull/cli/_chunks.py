"""A table that has been opened: chunks of rows, and what their cells hold.

CSV cells stay text until a column is asked for as numbers, so that an error can name the row and
the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.cli._errors import DataError

__all__ = ["Chunk", "Source", "is_number"]


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table, by column.

    Attributes
    ----------
    source : str
        Name of the file, for messages.
    start : int
        Number of rows before this chunk.
    columns : dict of str -> sequence
        Cells of each column: text (CSV) or a NumPy array.
    lines : sequence of int, optional
        Line of the file of each row (CSV), for messages.
    """

    source: str
    start: int
    columns: dict[str, Sequence[Any]]
    lines: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def numbers(self, name: str) -> Array:
        """One column as finite numbers, or an error with the first row that is none."""
        cells = self.columns[name]
        try:
            values = _to_numbers(cells)
        except (TypeError, ValueError):
            row = next(i for i, cell in enumerate(cells) if not is_number(cell))
            raise DataError(self._complaint(name, row)) from None
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.flatnonzero(~finite)[0])
            raise DataError(self._complaint(name, row))
        return values

    def text(self, name: str) -> list[str]:
        """One column as text."""
        return [str(cell).strip() for cell in self.columns[name]]

    def is_numeric(self, name: str) -> bool:
        """Whether a column is meant to hold numbers: most of its cells that are filled do."""
        filled = [cell for cell in islice(self.columns[name], 1000) if not _is_missing(cell)]
        return sum(map(is_number, filled)) * 2 > len(filled)

    def where(self, row: int) -> str:
        """Name a row of this chunk: row 17 (line 18)."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        return f"row {self.start + row + 1}{line}"

    def _complaint(self, name: str, row: int) -> str:
        cell = self.columns[name][row]
        place = f"{self.source}: column {name!r}, {self.where(row)}"
        if _is_missing(cell):
            return f"{place}: the cell is empty or NaN; fill it in or remove the row."
        if is_number(cell):
            return f"{place}: {str(cell)!r} is not a finite number."
        return (
            f"{place}: {_short(cell)!r} is not a number; correct it, or leave the column out "
            f"(--drop {name!r}) or turn it into categories (--encode {name!r}) when fitting."
        )


@dataclass
class Source:
    """A table that is read chunk by chunk, once.

    Attributes
    ----------
    label : str
        Name of the file, for messages.
    names : tuple of str
        Names of the columns.
    size : int, optional
        Bytes (CSV) or rows (other formats) in total, where known.
    unit : {"bytes", "rows"}
        What ``size`` counts.
    """

    label: str
    names: tuple[str, ...]
    _chunks: Iterator[tuple[Chunk, int]]
    size: int | None = None
    unit: str = "rows"
    headless: bool = False

    def chunks(self) -> Iterator[tuple[Chunk, int]]:
        """Chunks, each with how far the file was read (in ``unit``)."""
        empty = True
        for chunk, done in self._chunks:
            empty = False
            yield chunk, done
        if empty:
            raise DataError(f"{self.label}: has columns but no rows.")

    def read(self) -> Chunk:
        """The whole table as one chunk."""
        parts = [chunk for chunk, _ in self.chunks()]
        if len(parts) == 1:
            return parts[0]
        columns: dict[str, Sequence[Any]] = {}
        for name in self.names:
            pieces = [part.columns[name] for part in parts]
            if isinstance(pieces[0], np.ndarray):
                columns[name] = np.concatenate(pieces)
            else:
                columns[name] = [cell for piece in pieces for cell in piece]
        lines = None
        if parts[0].lines is not None:
            lines = [line for part in parts for line in part.lines or ()]
        return Chunk(self.label, 0, columns, lines)


def _to_numbers(cells: Sequence[Any]) -> Array:
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "mM":
        raise TypeError
    return np.fromiter(map(float, cells), np.float64, len(cells))


def is_number(cell: Any) -> bool:
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return False
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _is_missing(cell: Any) -> bool:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return True
    return is_number(cell) and bool(np.isnan(float(cell)))


def _short(cell: Any) -> str:
    text = str(cell)
    return text if len(text) <= 30 else text[:29] + "…"

"""Some rows of a table, by column, and tables that are read chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any

import numpy as np
from scipy.sparse import issparse

from kernull._text import first_line
from kernull._typing import Array, Mask
from kernull.errors import TableError, need
from kernull.tables.cells import as_numbers, as_text, is_missing

#: Bad cells that a message lists at most.
LISTED = 10


@dataclass(frozen=True)
class Table:
    """Some rows of a table, by column.

    Cells of a text file stay text until they are asked for as numbers, so that an error can name
    the column, the row and the line.

    Examples
    --------
    >>> table = Table("t.csv", 0, {"a": ["1.5", ""], "b": ["x", "y"]})
    >>> len(table), table.names, table.numbers("a").tolist()
    (2, ['a', 'b'], [1.5, nan])
    """

    source: str  #: Name of the file, for messages.
    start: int  #: Number of rows before these.
    columns: Mapping[str, Sequence[Any]]  #: Cells of each column: text or a NumPy array.
    lines: Sequence[int] | None = None  #: Line of the file of each row, for messages.
    #: Decimal mark of cells that are text; by column, where columns differ.
    decimal: str | Mapping[str, str] = "."
    #: Rows with too few or too many cells, which are all empty here, and how many they had.
    broken: Mapping[int, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Table({self.source!r}, {len(self):,} rows, {len(self.columns):,} columns)"

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def numbers(self, name: str) -> Array:
        """One column as numbers, NaN where a cell is empty; other cells are an error."""
        values, _, bad = self.parse(name)
        if bad.any():
            raise self.error([(name, bad)])
        return values

    def parse(self, name: str) -> tuple[Array, Mask, Mask]:
        """One column as numbers, with masks of empty and of bad cells."""
        return as_numbers(self.columns[name], self.mark(name))

    def mark(self, name: str) -> str:
        """The decimal mark of a column of text."""
        return self.decimal if isinstance(self.decimal, str) else self.decimal[name]

    def text(self, name: str) -> list[str]:
        """One column as text; empty cells are empty."""
        return [cell or "" for cell in as_text(self.columns[name])]

    def error(self, bad: Sequence[tuple[str, Mask]], of: str = "training") -> TableError:
        """What to say of cells that cannot be used: how many, and the first ten.

        ``of`` says what to do about it: cells of training rows, of new rows, or empty ones.
        """
        places = sorted(
            (int(row), c, name)
            for c, (name, mask) in enumerate(bad)
            for row in np.flatnonzero(mask)
        )
        what = "a date" if of == "empty" else "a number"  # of numbers, only empty cells are gaps
        complaints = "; ".join(self._complaint(name, row, what) for row, _, name in places[:LISTED])
        row, _, name = places[0]
        cell = str(self.columns[name][row])[:30]
        advice = {
            "training": f"correct it, leave the column out (kinds={{{name!r}: 'left out'}}), say "
            f"that it stands for an empty cell (empty=[{cell!r}]), or say "
            f"what the column is: kinds={{{name!r}: 'category'}}",
            "new": "correct it, or leave the cell empty",
            "empty": "fill in what is empty, remove these rows, or use missing='impute'",
        }[of]
        if len(places) == 1:
            return TableError(f"{self.source}: {complaints}; {advice}.")
        more = "" if len(places) <= LISTED else f"; and {len(places) - LISTED:,} more"
        return TableError(
            f"{self.source}: {len(places):,} cells cannot be used: {complaints}{more}; {advice}."
        )

    def where(self, row: int) -> str:
        """Name a row of these: row 17 (line 18)."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        return f"row {self.start + row + 1}{line}"

    def _complaint(self, name: str, row: int, what: str = "a number") -> str:
        """Where a cell is, and why it is not what it should be."""
        return f"column {name!r}, {self.where(row)}: {self.flaw(name, row, what)}"

    def flaw(self, name: str, row: int, what: str = "a number") -> str:
        """Why a cell is not a number, or a date."""
        cell = self.columns[name][row]
        if is_missing(cell):
            return "the cell is empty or NaN"
        text = str(cell)
        shown = text if len(text) <= 30 else text[:29] + "…"
        other = "." if self.mark(name) == "," else ","
        if np.isfinite(as_numbers([text], other)[0]).all():
            return f"{shown!r} has another decimal mark (decimal={other!r} if all have it)"
        try:
            float(text)
        except ValueError:
            return f"{shown!r} is not {what}"
        if any(digit in text for digit in "123456789"):
            return f"{shown!r} is too large: numbers go up to 1.8e308"
        return f"{shown!r} is not a finite number"

    def emptied(self, texts: Sequence[str]) -> Table:
        """The same with some more texts (or numbers, such as -999) for empty cells."""
        columns = dict(self.columns) if texts else {}
        for name, cells in columns.items():
            gone = _stand_for(cells, texts, self.mark(name))
            if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
                columns[name] = np.where(gone, np.nan, cells) if gone.any() else cells
            elif gone.any():
                columns[name] = [None if g else c for c, g in zip(cells, gone, strict=True)]
        return replace(self, columns=columns) if texts else self

    def without(self, texts: Sequence[str]) -> list[str]:
        """Those of some texts for empty cells that stand in no cell."""
        cells = [(column, self.mark(name)) for name, column in self.columns.items()]
        return [t for t in texts if not any(_stand_for(c, [t], mark).any() for c, mark in cells)]

    def tear(self, row: int) -> str:
        """What is wrong with a broken row."""
        place = self.where(row) if self.lines is None else f"line {self.lines[row]}"
        return f"{place} has {self.broken[row]} cells, the header has {len(self.columns)}"

    def check_whole(self) -> Table:
        """The same, or an error where rows have too few or too many cells."""
        if self.broken:
            said = "; ".join(map(self.tear, list(self.broken)[:LISTED]))
            more = f"; and {len(self.broken) - LISTED:,} more" * (len(self.broken) > LISTED)
            raise TableError(f"{self.source}: {said}{more}; complete or remove what is broken.")
        return self

    def rows(self, index: Any) -> Table:
        """A table of rows in the order of an index, with their lines and broken rows.

        Parameters
        ----------
        index : slice, boolean array of shape (n,) or array of positions
        """
        picked = np.arange(len(self))[index].tolist()
        columns = {name: _take(cells, picked) for name, cells in self.columns.items()}
        lines = None if self.lines is None else _take(self.lines, picked)
        broken = {k: self.broken[i] for k, i in enumerate(picked) if i in self.broken}
        return replace(self, columns=columns, lines=lines, broken=broken)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame; columns of numbers as numbers."""
        pandas = need("pandas", "to_pandas needs pandas: pip install 'kernull[tables]'.")
        return pandas.DataFrame({name: self._plain(name) for name in self.columns})

    def _plain(self, name: str) -> Any:
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            return cells
        values, _, bad = self.parse(name)
        return as_text(cells) if bad.any() else values


@dataclass
class Source:
    """A table that is read chunk by chunk, once."""

    label: str  #: Name of the file, for messages.
    names: tuple[str, ...]  #: Names of the columns.
    _chunks: Iterator[tuple[Table, int]]
    size: int | None = None  #: Bytes (CSV) or rows (other formats) in total, where known.
    notes: list[str] = field(default_factory=list)  #: What was guessed while reading, in words.

    def chunks(self) -> Iterator[tuple[Table, int]]:
        """Chunks, each with how far the file was read (as ``size`` counts)."""
        empty = True
        for chunk, done in self._chunks:
            empty = False
            yield chunk, done
        if empty:
            raise TableError(f"{self.label}: has columns but no rows.")

    def read(self, broken: bool = False) -> Table:
        """The whole table at once; an error where lines are broken, unless asked for."""
        parts = [chunk if broken else chunk.check_whole() for chunk, _ in self.chunks()]
        if len(parts) == 1:
            return parts[0]
        columns = {n: _join([part.columns[n] for part in parts]) for n in self.names}
        lines = [line for part in parts for line in part.lines or ()]
        torn = {part.start + i: count for part in parts for i, count in part.broken.items()}
        return Table(self.label, 0, columns, lines or None, parts[0].decimal, broken=torn)


def pieced_source(
    label: str, names: Sequence[str], pieces: Iterator[Any], size: int | None, notes: Any = ()
) -> Source:
    """A source of rows that come in pieces, each a mapping of columns."""
    _check_names(label, names)

    def chunks() -> Iterator[tuple[Table, int]]:
        start = 0
        for columns in pieces:
            rows = Table(label, start, columns)
            start += len(rows)
            if len(rows):
                yield rows, start

    return Source(label, tuple(names), chunks(), size, list(notes))


def as_table(X: Any, label: str = "X") -> Table:
    """A table from pandas, polars, pyarrow, a mapping of columns, records, or an array (n, d).

    Columns of an array are called x0, x1 and so on; ``label`` is its name in messages.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, str | PathLike):
        raise TypeError(f"{label}: got a path; read it first: kernull.read_table({fspath(X)!r}).")
    if issparse(X):  # some of which are mappings
        raise TypeError(f"{label}: sparse tables are not supported; pass X.toarray().")
    if isinstance(X, Mapping):
        return _checked(label, {str(name): _cells(cells) for name, cells in X.items()})
    if isinstance(X, list) and X and all(isinstance(row, Mapping) for row in X):
        found = dict.fromkeys(name for row in X for name in row)
        return _checked(label, {str(n): [row.get(n) for row in X] for n in found})
    import narwhals as nw

    frame = nw.from_native(_with_text_names(X, label), pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"{label}: got a lazy table; pass X.collect().")
    if isinstance(frame, nw.DataFrame):
        _check_arrow(X, label)
        zoned = {n for n, kind in frame.schema.items() if getattr(kind, "time_zone", None)}
        series = ((name, frame.get_column(name)) for name in frame.columns)
        # NumPy's times have no zone.
        return _checked(label, {n: s.to_list() if n in zoned else s.to_numpy() for n, s in series})
    values = np.asarray(X)
    if values.dtype.kind == "c":
        raise ValueError(f"{label}: Complex data not supported; pass its parts as columns.")
    if values.ndim != 2:
        raise ValueError(
            f"{label}: got an array of shape {values.shape}; expected a table of shape (n, d). "
            "Reshape your data: X.reshape(1, -1) is one row."
        )
    if values.shape[1] == 0:
        raise ValueError(
            f"{label}: 0 feature(s) (shape={values.shape}) while a minimum of 1 is required."
        )
    return _checked(label, {f"x{i}": values[:, i] for i in range(values.shape[1])})


def _check_arrow(X: Any, label: str) -> None:
    """Refuse Arrow data whose offsets or indices lead out of it, to whatever lies in memory."""
    parts = [X] if type(X).__module__.partition(".")[0] == "pyarrow" else []
    if hasattr(X, "set_axis"):  # a table of pandas
        arrays = [column.array for _, column in X.items()]
        parts = [a.__arrow_array__() for a in arrays if type(a).__name__.startswith("Arrow")]
    for part in parts:
        try:
            part.validate(full=True)
        except ValueError as error:
            raise TableError(
                f"{label}: its Arrow data is not valid ({first_line(error)})."
            ) from None


def _stand_for(cells: Sequence[Any], texts: Sequence[str], mark: str) -> Mask:
    """Cells that are one of some texts, or the same number: -999.0 for -999."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "bmM":
        return np.zeros(len(cells), dtype=bool)
    numbers = as_numbers(list(texts))[0]
    same = np.isin(as_numbers(cells, mark)[0], numbers[np.isfinite(numbers)])
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
        return np.asarray(same)
    said = [isinstance(cell, str) and cell.strip() in texts for cell in cells]
    return np.asarray(same | np.array(said, dtype=bool))


def _with_text_names(X: Any, label: str) -> Any:
    """A table of pandas whose columns have texts for names, as those of other libraries do."""
    if not (hasattr(X, "set_axis") and getattr(X, "ndim", 1) == 2):
        return X
    names = [
        " ".join(map(str, name)).strip() if isinstance(name, tuple) else str(name)
        for name in X.columns
    ]
    _check_names(label, names)
    return X.set_axis(names, axis=1)


def _cells(cells: Any) -> Any:
    return cells if isinstance(cells, list | tuple) else np.asarray(cells)


def _checked(label: str, columns: dict[str, Any]) -> Table:
    for name, cells in columns.items():
        if isinstance(cells, np.ndarray) and cells.ndim != 1:
            raise TableError(
                f"{label}: column {name!r} has {'one value' if cells.ndim == 0 else 'several'} "
                f"{'for all rows' if cells.ndim == 0 else 'per row'}; expected one cell per row."
            )
    sizes = {name: len(cells) for name, cells in columns.items()}
    if len(set(sizes.values())) != 1:
        raise TableError(f"{label}: columns must have the same number of rows; got {sizes}.")
    return Table(label, 0, columns)


def _check_names(label: str, names: Sequence[str], where: str = "") -> None:
    place: dict[str, int] = {}
    for i, name in enumerate(names, start=1):
        if name in place:
            what = f"are called {name!r}" if name else "have no name"
            raise TableError(
                f"{label}: columns {place[name]} and {i} {what}{where}; name them apart."
            )
        place[name] = i


def _take(cells: Sequence[Any], index: Any) -> Sequence[Any]:
    return cells[index] if isinstance(cells, np.ndarray) else [cells[i] for i in index]


def _join(pieces: list[Sequence[Any]]) -> Sequence[Any]:
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces)
    return [cell for piece in pieces for cell in piece]

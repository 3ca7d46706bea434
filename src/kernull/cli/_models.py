"""What the commands share: tables with their labels, and judges from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array
from kernull.cli._console import DataError, UsageError, note
from kernull.cli._options import FileForm, RowsAsked
from kernull.cli._settings import check_column, matching
from kernull.errors import MissingDependencyError, ModelFileError, TableError
from kernull.tables.kinds import EMPTY, did_you_mean, listed
from kernull.tables.reading import CHUNK_ROWS
from kernull.tables.table import LISTED, Source, Table
from kernull.tables.text_files import is_model_file
from kernull.tables.transformer import MISSING

if TYPE_CHECKING:  # scikit-learn is slow to load, and --help needs none
    from kernull.judge import Judge, Verdicts


def open_table(path: str, form: FileForm, quiet: bool, chunk_rows: int = CHUNK_ROWS) -> Source:
    """Open a table, and print what was guessed about it."""
    from kernull.tables import open_table as open_

    text = form.text()
    try:
        source = open_(path, chunk_rows, text, form.sheet)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError(str(error)) from None
    except (TableError, MissingDependencyError) as error:
        raise DataError(str(error)) from None
    for guess in source.notes:
        note(f"{source.label}: {guess}", quiet)
    return source


# -- labels ----------------------------------------------------------------------------------


def check_labels(label: str | None, normal: str | None) -> None:
    """Refuse a normal label where no column of labels is named."""
    if normal is not None and label is None:
        raise UsageError(f"--normal: got {normal!r} without --label; say which column holds it.")


def labels(table: Table, column: str, normal: str | None) -> Array:
    """+1 for normal rows and -1 for others, from a column of labels."""
    check_column(column, table.names, table.source, "--label")
    cells = table.text(column)
    values = sorted(set(cells))
    if normal is None:
        numbers = {cell: _as_number(cell) for cell in values}
        if not set(numbers.values()) <= {1.0, -1.0}:
            shown = ", ".join(map(repr, values[:6]))
            raise UsageError(
                f"--label: the column {column!r} holds {shown}; say which value is normal with "
                "--normal VALUE."
            )
        return np.array([int(numbers[cell] or 0) for cell in cells])
    wanted = _as_number(normal)
    same = {  # as text, or as numbers: 1 and 1.0 are one label
        cell: cell == normal or (wanted is not None and _as_number(cell) == wanted)
        for cell in values
    }
    if not any(same.values()):
        raise UsageError(f"--normal: no row of {table.source} has {column} = {normal!r}.")
    return np.array([1 if same[cell] else -1 for cell in cells])


def _as_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


# -- judging ---------------------------------------------------------------------------------


@dataclass
class Judging:
    """A judge, and what the options ask of it, for a table that comes in chunks."""

    judge: Judge
    quiet: bool
    rate: float
    missing_views: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    empty: Sequence[str] = ()  #: Texts of --empty that no cell had so far.
    rows: int = 0
    learned: bool = True
    filled: dict[str, int] = field(default_factory=dict)

    def see(self, rows: Table) -> Verdicts:
        """Judge some rows; print what cannot be read."""
        self.empty = rows.without(self.empty)
        found = self.judge.verdicts(
            rows, self.rate, missing_views=self.missing_views, absent=self.absent
        )
        self._print_unreadable(found)
        self.rows += len(rows)
        self.learned = self.learned and found.learned
        for c, column in enumerate(self.judge.table_.encoder_.columns):
            if column.why == EMPTY and (count := int(found.reading.unseen[:, c].sum())):
                self.filled[column.name] = self.filled.get(column.name, 0) + count
        return found

    def _print_unreadable(self, found: Verdicts) -> None:
        """The first ten cells and lines that cannot be read; remarks have them all."""
        rows, used = found.rows, self.judge.table_.looked_at_
        bad = np.argwhere(found.reading.unreadable).tolist()
        lines = [rows.tear(i) for i in rows.broken]
        lines += [rows.complaint(used[c], i) for i, c in bad if i not in rows.broken]
        for line in lines[:LISTED]:
            note(f"{rows.source}: {line}; the row is not judged.", self.quiet)

    def end(self) -> None:
        """Print what only all rows show.

        Columns that were always empty in training flag every row with a number there, alike. Texts
        of ``--empty`` may be in no cell. Rows that were learned from are not flagged.
        """
        import warnings

        for name, count in self.filled.items():
            rows = "1 row is" if count == 1 else f"{count:,} rows are"
            why = f"{rows} flagged for a value in {name!r}, which was always empty in training"
            note(f"{why}; to do without it, use --drop {name!r}.", self.quiet)
        if self.empty:
            warnings.warn(f"--empty: no cell is {listed(sorted(set(self.empty)))}.", stacklevel=2)
        kernels = self.judge.kernel_set
        if self.learned and kernels is not None and self.rows == kernels.n:
            from kernull.detector import cautions

            cautions.tell_training_rows()


def open_rows(
    model: str, data: str, how: RowsAsked, quiet: bool, chunk_rows: int = CHUNK_ROWS
) -> tuple[Judging, Source]:
    """A judge, ready for the rows of a table, and the table."""
    if not is_model_file(model) and is_model_file(data):
        raise UsageError(f"{data}: is a model, which comes first: {data} {model}.")
    judge = load_judge(model)
    table = judge.table_
    if how.missing is not None:
        if how.missing not in MISSING:
            near, words = did_you_mean(how.missing, MISSING), "impute or error"
            raise UsageError(f"--missing: got {how.missing!r}{near}; expected {words}.")
        table.missing = how.missing
    if how.empty:
        table.empty = (*table.empty, *how.empty)
    views = tuple(how.missing_view or ())
    for name in views:
        if name not in judge.view_names:
            raise UsageError(
                f"--missing-view: no view {name!r}{did_you_mean(name, judge.view_names)}; the "
                f"model has {', '.join(judge.view_names)}."
            )
    if views and set(views) >= set(judge.view_names):
        raise UsageError("--missing-view: at least one view must be there.")
    source = open_table(data, how, quiet, chunk_rows)
    known = [*source.names, *(name for name in table.used_ if name not in source.names)]
    dropped = tuple(matching(how.drop or [], known, "--drop"))
    if set(dropped) >= set(table.used_):
        raise UsageError("--drop: no column of the model is left.")
    rate = judge.false_alarm_rate if how.false_alarm_rate is None else how.false_alarm_rate
    return Judging(judge, quiet, rate, views, dropped, tuple(how.empty or ())), source


def load_judge(path: str) -> Judge:
    """The judge of a file."""
    from kernull.judge import Judge

    if not Path(path).exists():
        raise UsageError(f"{path}: no such model file; make one with: kernull fit DATA -o {path}")
    if Path(path).is_dir():
        raise UsageError(f"{path}: is a folder; expected a model file.")
    try:
        return Judge.load(path)
    except ModelFileError as error:
        raise DataError(str(error)) from None


@dataclass(frozen=True)
class TrainingRows:
    """Normal rows to learn from, and their places in the file, from 0."""

    rows: Table
    places: Any

    def sample(self, count: int | None) -> TrainingRows:
        """So many of the rows, drawn at random; all where None."""
        n = len(self.rows)
        if count is None or count >= n:
            return self
        kept = np.sort(np.random.default_rng(0).permutation(n)[:count])
        return replace(self, rows=self.rows.rows(kept), places=self.places[kept])


def training_rows(
    path: str, form: FileForm, label: str | None, normal: str | None, quiet: bool
) -> TrainingRows:
    """Read a table to learn from: its normal rows, without the column of labels."""
    check_labels(label, normal)
    source = open_table(path, form, quiet)
    check_column(label, source.names, source.label, "--label")
    table = source.read()
    y = np.ones(len(table)) if label is None else labels(table, label, normal)
    columns = {name: cells for name, cells in table.columns.items() if name != label}
    if not columns:
        raise DataError(f"{source.label}: no column is left to learn from.")
    places = np.flatnonzero(y == 1)
    if not len(places):
        raise DataError(f"{path}: no row is labelled normal.")
    if len(places) < 2:
        raise DataError(f"{path}: 1 normal row to learn from; expected at least 2.")
    rows = replace(table, columns=columns)
    return TrainingRows(rows if label is None else rows.rows(places), places)

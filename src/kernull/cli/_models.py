"""What the commands share: tables with their labels, and judges from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array
from kernull.cli._console import DataError, UsageError, note
from kernull.cli._options import FileForm, RowsAsked, check_words
from kernull.cli._settings import check_column, matching
from kernull.tables.kinds import EMPTY, did_you_mean, listed
from kernull.tables.reading import CHUNK_ROWS, open_table
from kernull.tables.table import LISTED, Source, Table
from kernull.tables.text_files import is_model_file
from kernull.tables.transformer import MISSING

if TYPE_CHECKING:  # scikit-learn is slow to load, and --help needs none
    from kernull.judge import Judge, Verdicts


def opened(path: str, form: FileForm, quiet: bool, chunk_rows: int = CHUNK_ROWS) -> Source:
    """Open a table, and print what was guessed about it."""
    source = open_table(path, chunk_rows, form.text(), form.sheet)
    for guess in source.notes:
        note(f"{source.label}: {guess}", quiet)
    return source


def labels(
    table: Table, column: str | None, normal: str | None, quiet: bool = False
) -> Array | None:
    """+1 for normal rows, -1 for others, 0 without a label, from a column; None without one."""
    if column is None:
        if normal is not None:
            raise UsageError(f"--normal: got {normal!r} without --label; say which column has it.")
        return None
    check_column(column, table.names, table.source, "--label")
    cells = table.text(column)
    values = sorted(set(cells) - {""})
    if "" in cells and values:
        note(f"rows left out without a label in {column!r}: {cells.count(''):,}.", quiet)
    if not values:
        raise UsageError(f"--label: the column {column!r} of {table.source} is empty.")
    if normal is None:
        numbers = {cell: _as_number(cell) for cell in values}
        if not set(numbers.values()) <= {1.0, -1.0}:
            shown = ", ".join(map(repr, values[:6]))
            raise UsageError(
                f"--label: the column {column!r} holds {shown}; say which value is normal with "
                "--normal VALUE."
            )
        return np.array([int(numbers[cell] or 0) if cell else 0 for cell in cells])
    wanted = _as_number(normal)
    same = {  # as text, or as numbers: 1 and 1.0 are one label
        cell: cell == normal or (wanted is not None and _as_number(cell) == wanted)
        for cell in values
    }
    if not any(same.values()):
        raise UsageError(f"--normal: no row of {table.source} has {column} = {normal!r}.")
    return np.array([(1 if same[cell] else -1) if cell else 0 for cell in cells])


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
        self.rows += len(rows)
        self.learned = self.learned and found.learned
        for c, column in enumerate(self.judge.table_.encoder_.columns):
            if column.why == EMPTY and (count := int(found.reading.unseen[:, c].sum())):
                self.filled[column.name] = self.filled.get(column.name, 0) + count
        bad = np.argwhere(found.reading.unreadable).tolist()
        names = self.judge.table_.looked_at_
        lines = [rows.tear(i) for i in rows.broken]
        lines += [rows.complaint(names[c], i) for i, c in bad if i not in rows.broken]
        for line in lines[:LISTED]:  # remarks have them all
            note(f"{rows.source}: {line}; the row is not judged.", self.quiet)
        return found

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

            cautions.warn_of_training_rows()


def open_rows(
    model: str, data: str, how: RowsAsked, quiet: bool, chunk_rows: int = CHUNK_ROWS
) -> tuple[Judging, Source]:
    """A judge, ready for the rows of a table, and the table."""
    if not is_model_file(model) and is_model_file(data):
        raise UsageError(f"{data}: is a model, which comes first: {data} {model}.")
    judge = load_judge(model)
    table = judge.table_
    if how.missing is not None:
        check_words("missing", how.missing, MISSING)
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
    source = opened(data, how, quiet, chunk_rows)
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
    return Judge.load(path)


def training_rows(
    path: str,
    form: FileForm,
    label: str | None,
    normal: str | None,
    sample: int | None,
    quiet: bool,
) -> tuple[Table, Any]:
    """Normal rows to learn from without the column of labels, and their places in the file."""
    table = opened(path, form, quiet).read()
    y = labels(table, label, normal, quiet)
    columns = {name: cells for name, cells in table.columns.items() if name != label}
    if not columns:
        raise DataError(f"{table.source}: no column is left to learn from.")
    places = np.arange(len(table)) if y is None else np.flatnonzero(y == 1)
    if not len(places):
        raise DataError(f"{path}: no row is labelled normal.")
    if len(places) < 2:
        raise DataError(f"{path}: 1 normal row to learn from; expected at least 2.")
    if sample is not None and sample < len(places):
        places = places[np.sort(np.random.default_rng(0).permutation(len(places))[:sample])]
    rows = replace(table, columns=columns)
    return rows if len(places) == len(rows) else rows.rows(places), places

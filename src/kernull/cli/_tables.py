"""Tables with their labels, and judges from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._text import listed
from kernull._typing import Array
from kernull.cli._console import note
from kernull.cli._options import FileForm, RowsToJudge
from kernull.tables.kinds import did_you_mean, match_columns
from kernull.tables.reading import CHUNK_ROWS, open_table
from kernull.tables.table import LISTED, Source, Table
from kernull.tables.text_files import is_model_file

if TYPE_CHECKING:  # scikit-learn is slow to load, and --help needs none
    from kernull.judge import Judge, Verdicts


def opened(path: str, form: FileForm, quiet: bool, chunk_rows: int = CHUNK_ROWS) -> Source:
    """Open a table, and print what was guessed about it."""
    source = open_table(path, chunk_rows, form.text(), form.sheet)
    for guess in source.notes:
        note(f"{source.label}: {guess}", quiet)
    return source


def labels(table: Table, column: str | None, normal: str | None, quiet: bool) -> Array:
    """+1 for normal rows, -1 for others, 0 without a label; all are normal without a column."""
    if column is None:
        if normal is not None:
            raise ValueError(
                f"--normal: got {normal!r} without --label; name the column of labels."
            )
        return np.ones(len(table), dtype=int)
    check_column(column, table.names, table.source, "--label")
    cells = table.text(column)
    values = {cell: _plain(cell) for cell in cells if cell}
    if not values:
        raise ValueError(f"--label: the column {column!r} of {table.source} is empty.")
    if normal is None and not set(values.values()) <= {1.0, -1.0}:
        raise ValueError(
            f"--label: the column {column!r} holds {listed(sorted(values), 6)}; name the normal "
            "one with --normal VALUE."
        )
    wanted = 1.0 if normal is None else _plain(normal)
    if normal is not None and wanted not in values.values():
        raise ValueError(f"--normal: no row of {table.source} has {column} = {normal!r}.")
    if "" in cells:
        note(f"rows left out without a label in {column!r}: {cells.count(''):,}.", quiet)
    signs = {cell: 1 if value == wanted else -1 for cell, value in values.items()} | {"": 0}
    return np.array([signs[cell] for cell in cells])


def _plain(cell: str) -> str | float:
    """A label as a number where it is one: 1 and 1.0 are one label."""
    try:
        return float(cell)
    except ValueError:
        return cell


def check_column(name: str | None, names: Sequence[str], where: str, option: str) -> None:
    """Refuse the name of a column that a table has not; None names none."""
    if name is not None and name not in names:
        raise ValueError(
            f"{option}: {where} has no column {name!r}{did_you_mean(name, names)}; it has "
            f"{listed(names)}."
        )


def open_judge(
    model: str, data: str, how: RowsToJudge, quiet: bool, chunk_rows: int = CHUNK_ROWS
) -> tuple[Judge, Source, dict[str, Any]]:
    """A judge, the table to judge, and what `Judge.verdicts` is asked for."""
    if not is_model_file(model) and is_model_file(data):
        raise FileNotFoundError(
            f"{model}: no model; {data} is one and comes first: {data} {model}."
        )
    judge = load_judge(model)
    judge.table_.empty = (*judge.table_.empty, *(how.empty or ()))
    source = opened(data, how, quiet, chunk_rows)
    known = list(dict.fromkeys([*source.names, *judge.table_.used_]))
    asked = {
        "false_alarm_rate": how.false_alarm_rate,
        "absent": match_columns(how.drop or [], known, "--drop"),
        "missing_views": how.missing_view or (),
    }
    return judge, source, asked


def load_judge(path: str) -> Judge:
    """The judge of a file."""
    from kernull.judge import Judge

    if not Path(path).exists():
        raise FileNotFoundError(
            f"{path}: no such model file; make one with: kernull fit DATA -o {path}"
        )
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path}: is a folder; expected a model file.")
    return Judge.load(path)


def training_rows(
    path: str, form: FileForm, label: str | None, normal: str | None, quiet: bool
) -> tuple[Table, Any]:
    """Normal rows to learn from without the column of labels, and their places in the file."""
    table = opened(path, form, quiet).read()
    places = np.flatnonzero(labels(table, label, normal, quiet) == 1)
    if len(places) < 2:
        raise ValueError(f"{path}: {len(places)} normal row(s) to learn from; expected 2 or more.")
    columns = {name: cells for name, cells in table.columns.items() if name != label}
    rows = replace(table, columns=columns)
    return rows if len(places) == len(rows) else rows.rows(places), places


def verdicts_on(judge: Judge, rows: Table, quiet: bool, asked: dict[str, Any]) -> Verdicts:
    """Judge rows; print why a row is not judged, and warn of rows that were learned from."""
    verdicts = judge.verdicts(rows, **asked)
    verdicts.check_unseen()
    for i in np.flatnonzero(verdicts.lost)[:LISTED].tolist():  # remarks have them all
        note(f"{rows.source}: {rows.where(i)} is {verdicts.notes[i]}.", quiet)
    return verdicts

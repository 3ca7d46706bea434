"""What the commands do with models: read tables for them, load, judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.cli._console import DataError, UsageError, note
from kernull.cli._options import FileForm, Gaps, NewRows
from kernull.cli._settings import by_option, check_column, features_of_model, matching
from kernull.errors import MissingDependencyError, ModelFileError, TableError
from kernull.tables.kinds import did_you_mean
from kernull.tables.reading import CHUNK_ROWS
from kernull.tables.table import Source, Table
from kernull.tables.text_files import is_model_file

if TYPE_CHECKING:  # scikit-learn is slow to load, and --help needs none
    from kernull.tables import Reading, TableViews


@dataclass(frozen=True)
class TrainingTable:
    """A table to learn from: numbers, how they were made, and labels where there are some."""

    X: Array
    table: TableViews
    y: Array | None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [str(name) for name in self.table.get_feature_names_out()]

    @property
    def normal(self) -> Array:
        """Rows that are labelled normal; all where there are no labels."""
        return self.X if self.y is None else self.X[self.y == 1]

    @property
    def places(self) -> Indices:
        """Positions of the normal rows among all."""
        return np.arange(len(self.X)) if self.y is None else np.flatnonzero(self.y == 1)

    def sample(self, count: int | None) -> TrainingTable:
        """The table with so many of its normal rows, drawn at random; all where None."""
        if count is None or count >= len(self.places):
            return self
        kept = np.ones(len(self.X), dtype=bool)
        kept[np.random.default_rng(0).permutation(self.places)[count:]] = False
        return replace(self, X=self.X[kept], y=None if self.y is None else self.y[kept])


def open_table(path: str, form: FileForm, quiet: bool, chunk_rows: int = CHUNK_ROWS) -> Source:
    """Open a table, and say what was guessed about it."""
    from kernull.tables import open_table as open_

    text = form.text()
    try:
        source = open_(path, chunk_rows, text, form.sheet)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError(str(error)) from None
    except (TableError, MissingDependencyError) as error:
        raise DataError(str(error)) from None
    for said in source.notes:
        note(f"{source.label}: {said}", quiet)
    return source


def training(
    path: str, form: FileForm, label: str | None, normal: str | None, quiet: bool,
    **parameters: Any,
) -> TrainingTable:  # fmt: skip
    """Read a table to learn from, and say what its columns are.

    ``parameters`` are those of `kernull.tables.TableViews`; where they are None, its own hold.
    """
    from kernull.tables import TableViews

    check_labels(label, normal)
    source = open_table(path, form, quiet)
    check_column(label, source.names, source.label, "--label")
    for pattern in parameters.get("kinds") or ():
        matching([pattern], source.names, "--kind, --drop or --encode")
    table = source.read()
    y = None if label is None else labels(table, label, normal)
    columns = {name: cells for name, cells in table.columns.items() if name != label}
    if not columns:
        raise DataError(f"{source.label}: no column is left to learn from.")
    rows = Table(table.source, table.start, columns, table.lines, table.decimal)
    learned = rows if y is None else rows.rows(y == 1)
    if y is not None and len(learned) == 0:
        raise DataError(f"{path}: no row is labelled normal.")
    if len(learned) < 2:
        raise DataError(f"{path}: {len(learned)} normal row to learn from; expected at least 2.")
    reader = TableViews(**{name: value for name, value in parameters.items() if value is not None})
    try:
        reader.fit(learned)
    except ValueError as error:
        raise by_option(error) from None
    note(f"Columns of {source.label}:\n{indent(reader.summary(), '  ')}", quiet)
    codes = [c.name for c in reader.columns_ if c.kind == "number" and c.why.endswith("numbers")]
    if codes:
        shown = ", ".join(codes[:6]) + (", ..." if len(codes) > 6 else "")
        note(f"Codes, not amounts? Of {shown}, say so: --kind '{codes[0]}=category'.", quiet)
    return TrainingTable(reader._filled(rows.emptied(reader.empty)).X, reader, y)


def check_labels(label: str | None, normal: str | None) -> None:
    """Refuse a normal label where no column of labels is named."""
    if normal is not None and label is None:
        raise UsageError(f"--normal: got {normal!r} without --label; say which column holds it.")


def labels(table: Table, column: str, normal: str | None) -> Array:
    """+1 for normal rows and -1 for others, from a column of labels."""
    check_column(column, table.names, table.source, "--label")
    cells = table.text(column)
    found = sorted(set(cells))
    if normal is None:
        numbers = {cell: _as_number(cell) for cell in found}
        if not set(numbers.values()) <= {1.0, -1.0}:
            shown = ", ".join(map(repr, found[:6]))
            raise UsageError(
                f"--label: the column {column!r} holds {shown}; say which value is normal with "
                "--normal VALUE."
            )
        return np.array([int(numbers[cell] or 0) for cell in cells])
    same = {cell: _same(cell, normal) for cell in found}
    if not any(same.values()):
        raise UsageError(f"--normal: no row of {table.source} has {column} = {normal!r}.")
    return np.array([1 if same[cell] else -1 for cell in cells])


def _as_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _same(cell: str, wanted: str) -> bool:
    """Equal as text, or as numbers: 1 and 1.0 are one label."""
    number = _as_number(wanted)
    return cell == wanted or (number is not None and _as_number(cell) == number)


# -- fitted models ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """A model and how it reads tables."""

    model: Any
    #: None for models that were fitted on an array: columns are then plain numbers.
    table: TableViews | None
    missing_views: tuple[str, ...] = ()
    #: Columns of the table at hand, where there is no TableViews.
    features: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    #: Whether a cell that cannot be used is an error; else its row is not judged.
    strict: bool = False
    #: Texts of --empty, which are among those of the table.
    empty: tuple[str, ...] = ()

    def for_source(self, source: Source, drop: Sequence[str]) -> Fitted:
        """The same for the columns of one table; those that are dropped count as empty."""
        if self.table is not None:
            known = [*source.names, *(n for n in self.table.used_ if n not in source.names)]
            gone = set(matching(drop, known, "--drop"))
            if gone.issuperset(self.table.used_):
                raise UsageError("--drop: no column of the model is left.")
            return replace(self, dropped=tuple(gone))
        wanted = getattr(self.model, "feature_names_in_", None)
        names = None if wanted is None else [str(name) for name in wanted]
        count = int(self.model.n_features_in_)
        features = features_of_model(names, count, source.names, source.label, drop)
        return replace(self, features=tuple(features))

    @property
    def absent(self) -> list[str]:
        """Columns that were dropped, and those that only views read that are missing."""
        if self.table is None:
            return []
        names = [column.name for column in self.table.columns_]
        views = self.table._view_columns() | (self.table._groups(names) or {})
        kept = {n for view, ns in views.items() if view not in self.missing_views for n in ns}
        gone = {n for ns in views.values() for n in ns if n not in kept} | set(self.dropped)
        return [name for name in names if name in gone]

    def emptied(self, rows: Table) -> Table:
        """Rows with everything empty that the model takes for empty."""
        return rows if self.table is None else rows.emptied(tuple(self.table.empty))

    @property
    def columns(self) -> list[str]:
        """Columns that are looked at."""
        if self.table is not None:
            return list(self.table.used_)
        return list(self.features)

    def read(self, rows: Table) -> Reading:
        """Numbers of some rows, with what was empty or new."""
        if self.strict:
            rows.check_whole()
        if self.table is not None:
            reading = self.table.read(rows, self.absent, self.strict)
        else:
            from kernull.tables import Reading

            X = np.column_stack([rows.parse(name)[0] for name in self.features])
            bad = np.isnan(X)
            if self.strict and bad.any():
                raise rows.error(list(zip(self.features, bad.T, strict=True)), "new")
            none = np.zeros_like(bad)
            reading = Reading(np.nan_to_num(X), none, none, bad, none[:, 0])
        reading.unreadable[list(rows.broken)] = True
        return reading

    def left_out(self, reading: Reading) -> Mask:
        """Views that are left out in each row, of shape (rows, views); see `view_names`.

        All, where a cell should be a number and is not: nobody knows what it means.
        """
        from kernull.report import can_explain

        out = np.zeros((len(reading.X), len(self.view_names)), dtype=bool)
        gaps = {}
        # A score that is no sum over views needs them all: gaps stay filled in.
        if self.table is not None and can_explain(self.model):
            gaps = self.table.missing_views(reading.missing)
        for v, view in enumerate(self.view_names):
            out[:, v] = view in self.missing_views or gaps.get(view, False)
        out[reading.unreadable.any(axis=1)] = True
        return out

    @property
    def view_names(self) -> list[str]:
        """Names of the model's views."""
        return list(dict.fromkeys(map(str, self.model.bank_.kernel_views)))


def open_rows(
    model: str, data: str, how: NewRows, quiet: bool, chunk_rows: int = CHUNK_ROWS
) -> tuple[Fitted, Source]:
    """A model, ready to judge the rows of a table, and the table."""
    check_order(model, data)
    fitted = load_fitted(model, how, how.missing_view or ())
    source = open_table(data, how, quiet, chunk_rows)
    return fitted.for_source(source, how.drop or ()), source


def check_order(model: str, data: str) -> None:
    """Refuse a table where a model is expected, and the other way round."""
    if not is_model_file(model) and is_model_file(data):
        raise UsageError(f"{data}: is a model, which comes first: {data} {model}.")


def load_fitted(path: str, gaps: Gaps, missing_views: Sequence[str] = ()) -> Fitted:
    """Load a model file with its table.

    ``gaps.missing`` replaces what the model was fitted with; texts of ``gaps.empty`` join those.
    """
    from kernull.files import load_views

    missing, empty = gaps.missing, gaps.empty
    try:
        model, table = load_model(path), load_views(path)
    except ModelFileError as error:
        raise DataError(str(error)) from None
    if table is not None and len(table.get_feature_names_out()) != int(model.n_features_in_):
        raise DataError(f"{path}: its table does not fit its model.")
    if table is not None and not hasattr(model, "feature_names_in_"):  # of a pipeline
        model.feature_names_in_ = table.get_feature_names_out()
    if missing is not None:
        if missing not in ("impute", "error", "flag"):
            near = did_you_mean(missing, ("impute", "error", "flag"))
            raise UsageError(f"--missing: got {missing!r}{near}; expected impute, error or flag.")
        if table is None and missing != "error":
            raise UsageError("--missing: this model was fitted without a table; it takes no gaps.")
        if table is not None:
            table.missing = missing
    if empty and table is None:
        raise UsageError("--empty: this model was fitted without a table; it takes no gaps.")
    if empty and table is not None:
        table.empty = (*table.empty, *empty)
    strict = (missing if table is None else table.missing) == "error"
    said = tuple(empty or ())
    fitted = Fitted(model, table, tuple(missing_views), strict=strict, empty=said)
    unknown = [name for name in missing_views if name not in fitted.view_names]
    if unknown:
        raise UsageError(
            f"--missing-view: no view {unknown[0]!r}{did_you_mean(unknown[0], fitted.view_names)}; "
            f"the model has {', '.join(fitted.view_names)}."
        )
    if set(missing_views) >= set(fitted.view_names):
        raise UsageError("--missing-view: at least one view must be there.")
    return fitted


def load_model(path: str) -> Any:
    """The model of a file, of one table; a `ModelFileError` where it cannot be read."""
    from kernull import load

    if not Path(path).exists():
        raise UsageError(f"{path}: no such model file; make one with: kernull fit DATA -o {path}")
    if Path(path).is_dir():
        raise UsageError(f"{path}: is a folder; expected a model file.")
    model = load(path)
    model = model[-1] if hasattr(model, "steps") else model  # load_views gives the table
    if not hasattr(model, "calibration_"):
        raise DataError(f"{path}: the model is not fitted, or is not for one table.")
    if getattr(model, "bank_", None) is None:
        raise DataError(f"{path}: the model was fitted on precomputed kernels, not on a table.")
    return model

"""Tables as people have them, made into numbers and views for the estimators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array, Mask
from kernull.errors import GapsWarning, TableError
from kernull.tables.categories import category_codes, category_places
from kernull.tables.cells import as_dates, as_numbers, as_text
from kernull.tables.gaps import GapFiller
from kernull.tables.kinds import (
    KINDS,
    MAX_CATEGORIES,
    USED,
    Column,
    decide_kinds,
    listed,
    match_columns,
)
from kernull.tables.table import Table, as_table

__all__ = ["Reading", "TableViews"]

MISSING = ("error", "impute", "flag")
DATES = ("drop", "parts")
#: What rows with gaps get under missing="flag": so many spreads from the mean.
FAR = 1e3
#: A view with a larger share of empty cells in a row is left out for that row.
MOST_MISSING = 0.5


@dataclass(frozen=True, eq=False)
class Reading:
    """New rows as a model takes them, and what was done to them.

    Attributes
    ----------
    X : array of shape (m, d)
        Numbers, without gaps.
    missing, unseen : boolean arrays of shape (m, columns)
        Cells that were empty, and cells with a category that no training row had; by column that
        is learned from, see ``TableViews.used_``. Both were filled in from the other columns.
    """

    X: Array
    missing: Mask
    unseen: Mask


class TableViews(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, text, dates and gaps into numbers for an estimator.

    Each column gets a kind when it is fitted: numbers stay, categories become places in one or
    two dimensions that weigh as much as a column of numbers (`kernull.tables.categories`), dates
    are left out unless asked for, and identifiers, constants and copies of other columns are left
    out. ``summary()`` says what was decided, and why.

    Parameters
    ----------
    views : None, "features" or mapping of name -> column patterns, default=None
        Groups of columns, such as ``{"vibration": ["vib_*"]}``; columns that no view takes are
        left out. Pass the fitted ``views_`` on to the estimator. None: all columns, one view;
        ``"features"``: one view per column.
    kinds : mapping of column pattern -> kind, optional
        What you know better: ``"number"``, ``"category"``, ``"date"``, ``"identifier"`` or
        ``"left out"``.
    dates : {"drop", "parts"}, default="drop"
        ``"parts"``: the hour of the day and the day of the week, as places on a circle.
    missing : {"impute", "error", "flag"}, default="impute"
        Empty cells: filled with what the other cells of the row say (`kernull.tables.gaps`);
        refused; or, in new rows, put far away, so that any estimator flags these rows. A category
        that was never seen is filled in as an empty cell is, and told by `read`.
    max_categories : int, default=50
        A column of text with more values is a name, and left out.
    empty : sequence of str, default=()
        Texts and numbers that stand for an empty cell, such as ``("off", "-999")``, beside the
        usual ones (``NA``, ``n/a``, ``-``, ``NULL``, ``#DIV/0!``, ...).

    Attributes
    ----------
    columns_ : list of Column
        Kind of each column, with the reason.
    used_ : list of str
        Columns that are learned from.
    views_ : dict of str -> list of int, or None
        Positions of each view in what `transform` gives.
    filler_ : GapFiller
        Mean, spread and correlation of what `transform` gives, to fill gaps with.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernull import MultiKernelFisherNull, TableViews
    >>> rng = np.random.default_rng(0)
    >>> table = {"part": [f"A{i}" for i in range(60)], "machine": ["M1", "M2", "M3"] * 20,
    ...          "force": rng.normal(size=60), "speed": rng.normal(size=60)}
    >>> print(TableViews().fit(table).summary())
    number      2  force, speed
    category    1  machine (3 values)
    identifier  1  part (60 different texts): left out
    >>> model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(table)
    >>> new = {"machine": ["M1", "M9"], "force": [0.0, 9.0], "speed": [None, 9.0]}
    >>> model.predict(new).tolist()
    [1, -1]
    """

    def __init__(
        self,
        views: Any = None,
        *,
        kinds: Mapping[str, str] | None = None,
        dates: str = "drop",
        missing: str = "impute",
        max_categories: int = MAX_CATEGORIES,
        empty: Sequence[str] = (),
    ) -> None:
        self.views = views
        self.kinds = kinds
        self.dates = dates
        self.missing = missing
        self.max_categories = max_categories
        self.empty = empty

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what each column is, and learn how to fill gaps.

        Parameters
        ----------
        X : Table, data frame, mapping of columns, or array of shape (n, d)
            Training rows.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        table = as_table(X).emptied(self.empty)
        if len(table) < 2:
            raise TableError(
                f"{table.source}: {len(table)} sample(s) (shape={(len(table), len(table.names))}) "
                f"while a minimum of 2 is required; n_samples={len(table)}."
            )
        asked = self._asked(table.names)
        groups = self._groups(table.names)
        names = table.names if groups is None else _in_order(table.names, groups)
        columns = decide_kinds(table, names, asked, self.max_categories)
        decided = {column.name: column for column in columns}
        taken = [c for c in columns if c.kind in USED and (c.kind != "date" or self._dates(c))]
        if not taken:
            why = "; ".join(f"{c.name!r} is {c.why or 'a ' + c.kind}" for c in columns[:6])
            more = "; ..." if len(columns) > 6 else ""
            raise TableError(f"{table.source}: no column is left to learn from: {why}{more}.")
        self.columns_ = [
            decided.get(name, Column(name, "left out", "in no view")) for name in table.names
        ]
        self.used_ = [column.name for column in taken]
        self._used = taken
        self._named = not isinstance(X, np.ndarray)
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        self._places = self._learn_places(table)
        self.filler_ = GapFiller.fit(self._numbers(table)[0])
        self._blocks = self._positions()
        self.views_ = self._view_positions(groups)
        self._tell_views()
        self._tell_gaps(table)
        return self

    def _check_parameters(self) -> None:
        if isinstance(self.empty, str):
            raise ValueError(f"empty: got {self.empty!r}; expected a list of texts.")
        for name, value, known in (
            ("missing", self.missing, MISSING), ("dates", self.dates, DATES),
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{name}: got {value!r}; expected one of {', '.join(known)}.")

    def _asked(self, names: Sequence[str]) -> dict[str, str]:
        asked: dict[str, str] = {}
        for pattern, kind in (self.kinds or {}).items():
            if kind not in KINDS:
                raise ValueError(
                    f"kinds: got {kind!r} for {pattern!r}; expected one of {', '.join(KINDS)}."
                )
            asked |= dict.fromkeys(match_columns([pattern], names, "kinds"), kind)
        return asked

    def _groups(self, names: Sequence[str]) -> dict[str, list[str]] | None:
        if self.views is None:
            return None
        if isinstance(self.views, str) and self.views == "features":
            return {name: [name] for name in names}
        if not isinstance(self.views, Mapping) or not self.views:
            raise ValueError(
                f"views: got {self.views!r}; expected None, 'features' or a mapping of name -> "
                "column patterns."
            )
        return {
            str(view): match_columns(_as_list(patterns), names, f"view {view!r}")
            for view, patterns in self.views.items()
        }

    def _dates(self, column: Column) -> bool:
        return self.dates == "parts" or column.why == "as asked"

    def _learn_places(self, table: Table) -> dict[str, Array]:
        blocks, codes = [], {}
        if not any(column.kind == "category" for column in self._used):
            return {}
        for column in self._used:
            if column.kind == "number":
                values = table.parse(column.name)[0]
                spread = np.nanstd(values) or 1.0
                scaled = (values - np.nanmean(values)) / spread
                blocks.append(np.nan_to_num(scaled)[:, None])
            elif column.kind == "category":
                found = category_codes(as_text(table.columns[column.name]), column.values)
                codes[column.name] = found
                hot = (found[:, None] == np.arange(len(column.values))).astype(float)
                hot -= hot.mean(axis=0)
                blocks.append(hot / (np.linalg.norm(hot) / np.sqrt(len(hot))))
        places = {}
        order = {c.name: i for i, c in enumerate(c for c in self._used if c.kind != "date")}
        for column in self._used:
            if column.kind == "category":
                own = order[column.name]
                others = np.hstack([np.zeros((len(table), 0)), *blocks[:own], *blocks[own + 1 :]])
                places[column.name] = category_places(
                    codes[column.name], len(column.values), others
                )
        return places

    def _tell_views(self) -> None:
        """Warn of views of nothing but categories: their kernels take few values."""
        kinds = {column.name: column.kind for column in self._used}
        alone = [
            view
            for view, names in self._view_columns().items()
            if all(kinds[name] == "category" for name in names)
        ]
        if alone and self.views_ is not None:
            warnings.warn(
                f"views: nothing but categories in {listed(alone)}. They say little by themselves, "
                "and with decision='sum' a kernel of few different rows takes most of the weight; "
                "put categories in a view with the numbers they belong to.",
                UserWarning,
                stacklevel=3,
            )

    def _tell_gaps(self, table: Table) -> None:
        empty = sum(column.missing for column in self._used)
        if not empty:
            return
        if self.missing == "error":
            raise self._gaps_error(table)
        affected = [column.name for column in self._used if column.missing]
        warnings.warn(
            f"{table.source}: {empty:,} empty cells of the training rows (in {listed(affected)}) "
            "were filled in from the other columns.",
            GapsWarning,
            stacklevel=3,
        )

    def _gaps_error(self, table: Table) -> TableError:
        masks = [(c.name, _missing(table, c)) for c in self._used]
        return table.error([item for item in masks if item[1].any()], empty=True)

    # -- new rows ----------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Numbers for an estimator.

        Parameters
        ----------
        X : Table, data frame, mapping of columns, or array
            Columns are found by name; those that are not learned from may be absent.

        Returns
        -------
        array of shape (m, d)
        """
        return self.read(X).X

    def read(self, X: Any, absent: Sequence[str] = ()) -> Reading:
        """Numbers for an estimator, and which cells were empty or new.

        Parameters
        ----------
        X : Table, data frame, mapping of columns, or array
        absent : sequence of str
            Columns that need not be there: all their cells count as empty.

        Returns
        -------
        Reading
        """
        check_is_fitted(self, "columns_")
        table = as_table(X).emptied(self.empty)
        self._check_columns(X, table, absent)
        values, missing, unseen = self._numbers(table, absent)
        if self.missing == "error" and missing.any():
            raise self._gaps_error(table)
        filled = self._snapped(self.filler_.fill(values), missing | unseen)
        if self.missing == "flag" and missing.any():
            filled[missing.any(axis=1)] = self.filler_.mean + FAR * self.filler_.scale
        return Reading(filled, missing, unseen)

    def fill(self, X: Array) -> Array:
        """Numbers of `transform` without gaps, from such with NaN; categories get a value."""
        filled = self.filler_.fill(X)
        if not self._places or filled is X:
            return filled
        gaps = np.column_stack([np.isnan(X[:, block]).any(axis=1) for block in self.blocks_])
        return self._snapped(filled, gaps)

    def _snapped(self, X: Array, filled: Mask) -> Array:
        """Put categories that were filled in at the nearest value: between them lies nothing."""
        for name, places in self._places.items():
            rows = np.flatnonzero(filled[:, self.used_.index(name)])
            if len(rows):
                block = np.ix_(rows, np.array(self._blocks[name]))
                apart = ((X[block][:, None] - places[None]) ** 2).sum(axis=2)
                X[block] = places[apart.argmin(axis=1)]
        return X

    def missing_views(self, missing: Mask) -> dict[str, Mask]:
        """Views of which more than half of the cells are empty, as masks over the rows."""
        out = {}
        places = {name: i for i, name in enumerate(self.used_)}
        for view, columns in self._view_columns().items():
            index = [places[name] for name in columns]
            out[view] = missing[:, index].mean(axis=1) > MOST_MISSING
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` gives."""
        check_is_fitted(self, "columns_")
        names: list[str] = []
        for column in self._used:
            names += self._out_names(column)
        return np.array(names, dtype=object)

    def column_of_output(self) -> list[str]:
        """Name of the table's column behind each column of `transform`."""
        return [c.name for c in self._used for _ in self._out_names(c)]

    @property
    def blocks_(self) -> list[list[int]]:
        """Positions in what `transform` gives, for each of ``used_``."""
        return [self._blocks[name] for name in self.used_]

    def category_values(self, name: str) -> tuple[str, ...] | None:
        """Values of a category; None where the column is another kind."""
        column = self._used[self.used_.index(name)]
        return column.values if column.kind == "category" else None

    def category_counts(self, name: str) -> tuple[int, ...]:
        """How many training rows have each of `category_values`."""
        return self._used[self.used_.index(name)].counts

    def expected_value(self, name: str, row: Array) -> str:
        """The value of a category that the other columns of a row (of `transform`) speak for."""
        gap = np.array(row, dtype=np.float64)[None]
        gap[:, self._blocks[name]] = np.nan
        place = self.filler_.fill(gap)[0, self._blocks[name]]
        nearest = int(((self._places[name] - place) ** 2).sum(axis=1).argmin())
        return self._used[self.used_.index(name)].values[nearest]

    def summary(self) -> str:
        """What was decided, one line per kind."""
        check_is_fitted(self, "columns_")
        from kernull.tables.summary import summarise

        return summarise(self.columns_, self.used_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _check_columns(self, X: Any, table: Table, absent: Sequence[str]) -> None:
        there = {*table.columns, *absent}
        lacking = [name for name in self.used_ if name not in there]
        if isinstance(X, np.ndarray) and len(table.names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(table.names)} features, but TableViews is expecting "
                f"{self.n_features_in_} features as input."
            )
        if lacking:
            raise TableError(
                f"{table.source}: lacks {listed(lacking)}, which the model was fitted on"
                f"{_resembling(lacking, table.names)}. To do without, add it as an empty column "
                f"(at the command line: --drop {lacking[0]!r})."
            )

    def _numbers(self, table: Table, absent: Sequence[str] = ()) -> tuple[Array, Mask, Mask]:
        """Numbers with gaps; masks of empty and of unseen cells, by used column."""
        blocks, empty, new, wrong = [], [], [], []
        n, none, gone = len(table), np.zeros(len(table), dtype=bool), set(absent)
        for column in self._used:
            width = len(self._out_names(column))
            if column.name not in table.columns or column.name in gone:
                blocks.append(np.full((n, width), np.nan))
                empty.append(~none)
                new.append(none)
                continue
            cells = table.columns[column.name]
            if column.kind == "number":
                values, missing, bad = as_numbers(cells, table.decimal)
                if bad.any():
                    wrong.append((column.name, bad))
                block, unseen = values[:, None], none
            elif column.kind == "category":
                codes = category_codes(as_text(cells), column.values)
                missing, unseen = codes == -1, codes == -2
                block = np.where((codes >= 0)[:, None], self._places[column.name][codes], np.nan)
            else:
                dates = as_dates(cells, column.form or "iso")
                missing, unseen, block = np.isnat(dates), none, _date_parts(dates)
            blocks.append(block)
            empty.append(missing)
            new.append(unseen)
        if wrong:
            raise table.error(wrong)
        return np.hstack(blocks), np.column_stack(empty), np.column_stack(new)

    # -- where things are --------------------------------------------------------------------

    def _out_names(self, column: Column) -> list[str]:
        if column.kind == "number":
            return [column.name]
        if column.kind == "date":
            return [f"{column.name} {part}" for part in ("hour 1", "hour 2", "day 1", "day 2")]
        count = self._places[column.name].shape[1]
        return [column.name] if count == 1 else [f"{column.name} {q + 1}" for q in range(count)]

    def _positions(self) -> dict[str, list[int]]:
        blocks: dict[str, list[int]] = {}
        start = 0
        for column in self._used:
            width = len(self._out_names(column))
            blocks[column.name] = list(range(start, start + width))
            start += width
        return blocks

    def _view_positions(self, groups: dict[str, list[str]] | None) -> dict[str, list[int]] | None:
        if groups is None:
            return None
        views = {}
        for view, names in groups.items():
            columns = [name for name in names if name in self._blocks]
            if columns:
                views[view] = [i for name in columns for i in self._blocks[name]]
            elif self.views != "features":
                kinds = {c.name: c.kind for c in self.columns_}
                said = ", ".join(f"{name!r} ({kinds[name]})" for name in names[:6])
                raise ValueError(f"view {view!r}: none of its columns is learned from: {said}.")
        return views

    def _view_columns(self) -> dict[str, list[str]]:
        """Columns of each view; the view of all columns is called "all", as the estimators do."""
        if self.views_ is None:
            return {"all": self.used_}
        of = self.column_of_output()
        return {view: list(dict.fromkeys(of[i] for i in at)) for view, at in self.views_.items()}


def _resembling(lacking: Sequence[str], names: Sequence[str]) -> str:
    """What the table has instead: columns of similar names, or the first ones."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in reversed(names)}
    close = {
        lower[match]
        for name in lacking[:20]
        for match in get_close_matches(name.lower(), lower, n=1, cutoff=0.8)
    }
    if close:
        return f"; it has {listed([name for name in names if name in close])}"
    return f"; it has {listed(names)}"


def _as_list(patterns: Any) -> list[str]:
    return [patterns] if isinstance(patterns, str) else [str(p) for p in patterns]


def _in_order(names: Sequence[str], groups: dict[str, list[str]]) -> list[str]:
    taken = {name for members in groups.values() for name in members}
    return [name for name in names if name in taken]


def _missing(table: Table, column: Column) -> Mask:
    if column.kind == "number":
        return table.parse(column.name)[1]
    return np.array([text is None for text in as_text(table.columns[column.name])], dtype=bool)


def _date_parts(dates: Array) -> Array:
    """Hour of the day and day of the week, each as a place on a circle."""
    seconds = dates.astype("datetime64[s]").astype(np.int64).astype(float)
    day = 2 * np.pi * (seconds % 86_400) / 86_400
    week = 2 * np.pi * ((seconds // 86_400) % 7) / 7
    parts = np.column_stack([np.sin(day), np.cos(day), np.sin(week), np.cos(week)])
    parts[np.isnat(dates)] = np.nan
    return parts

"""Tables as people have them, made into numbers and views for the estimators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernull._fields import Checked, Range, Shape, Size, stored
from kernull._typing import Array, Mask
from kernull.errors import GapsWarning, TableError
from kernull.tables.copies import breaches, mark_copies
from kernull.tables.encoder import Encoder, Reading
from kernull.tables.gaps import GapFiller
from kernull.tables.kinds import (
    KINDS,
    MAX_CATEGORIES,
    USED,
    Column,
    decide_kinds,
    did_you_mean,
    listed,
    match_columns,
    resembling,
    summarise,
    tell_doubts,
)
from kernull.tables.table import Table, as_table

MISSING = ("error", "impute", "flag")
DATES = ("drop", "parts")
#: What rows with gaps get under missing="flag": so many spreads from the mean.
FAR = 1e3
#: A view with a larger share of empty cells in a row is left out for that row.
MOST_MISSING = 0.5


class _ViewArray(np.ndarray):
    """What `TableViews` gives where it has views, so that an estimator without them can warn."""

    table_views: Mapping[str, list[int]] | None = None


@stored
@dataclass(eq=False, repr=False)
class TableViews(Checked, TransformerMixin, BaseEstimator):
    """Turn a table of numbers, text, dates and gaps into numbers for an estimator.

    Each column gets a kind when it is fitted: numbers stay, categories become places in one or
    two dimensions that weigh as much as a column of numbers (`kernull.tables.encoder`), dates
    are left out unless asked for, and identifiers, constants and copies of other columns are left
    out. ``summary()`` says what was decided, and why. A new row in which a constant number is
    another one, or a copy differs from what it copies, is flagged as it would be in an array: put
    far away. Of texts that is told (`read`), and flagged with ``missing="flag"``.

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
        Empty cells: filled with what the other cells of the row say, and the scatter of normal rows
        around it (`kernull.tables.gaps`); refused; or, in new rows, put far away, so that any
        estimator flags these rows. A category that was never seen is filled in, or flagged, as an
        empty cell is; `read` tells them apart.
        New rows without any value to judge by are always put far away, with a warning.
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

    views: Any = None
    _: KW_ONLY
    kinds: Mapping[str, str] | None = None
    dates: str = "drop"
    missing: str = "impute"
    max_categories: int = MAX_CATEGORIES
    empty: Sequence[str] = ()

    columns_: Annotated[list[Column], Shape("_columns")] = field(init=False)
    used_: list[str] = field(init=False)
    views_: dict[str, list[Annotated[int, Range(low=0)]]] | None = field(init=False)
    filler_: GapFiller = field(init=False)
    n_features_in_: Annotated[int, Size("_columns")] = field(init=False)
    feature_names_in_: Annotated[NDArray[np.object_], Shape("_columns")] = field(init=False)
    _encoder: Encoder = field(init=False)

    def contradiction(self) -> str | None:
        """What does not fit together in a file."""
        self._check_parameters()
        names = [column.name for column in self.columns_]
        if len(set(names)) < len(names) or names != list(self.feature_names_in_):
            return "two columns of one name"
        used = [column.name for column in self._encoder.columns]
        if used != self.used_ or not set(used) <= set(names):
            return "columns that are not there"
        d = len(self.filler_.mean)
        if sum(map(len, self.blocks_)) != d:
            return "columns of numbers that are not there"
        views = (self.views_ or {"all": [0]}).values()
        if not all(positions and max(positions) < d for positions in views):
            return "a view of no columns"
        return None

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what each column is, and learn how to fill gaps.

        X has the training rows: a Table, data frame, mapping of columns, or array of shape (n, d);
        y is ignored.
        """
        self._check_parameters()
        table = as_table(X)
        if idle := table.without(self.empty):
            said = f"{table.source}: empty: no cell is {listed(idle)}."
            warnings.warn(said, UserWarning, stacklevel=2)
        table = table.emptied(self.empty)
        if len(table) < 2:
            raise TableError(
                f"{table.source}: {len(table)} sample(s) (shape={(len(table), len(table.names))}) "
                f"while a minimum of 2 is required; n_samples={len(table)}."
            )
        asked = self._asked(table.names)
        groups = self._groups(table.names)
        seen = table.names if groups is None else {n for ns in groups.values() for n in ns}
        names = [name for name in table.names if name in seen]
        columns = decide_kinds(table, names, asked, self.max_categories)
        columns = mark_copies(table, columns, asked)
        decided = {column.name: column for column in columns}
        parts = self.dates == "parts"
        taken = [c for c in columns if c.kind in USED]
        taken = [c for c in taken if c.kind != "date" or parts or c.why == "as asked"]
        if not taken:
            why = "; ".join(f"{c.name!r} is {c.why or 'a ' + c.kind}" for c in columns[:6])
            more = "; ..." if len(columns) > 6 else ""
            raise TableError(f"{table.source}: no column is left to learn from: {why}{more}.")
        self.columns_ = [
            decided.get(name, Column(name, "left out", "in no view")) for name in table.names
        ]
        self.used_ = [column.name for column in taken]
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        self._encoder = Encoder.learn(taken, table)
        found = self._encoder.numbers(table)
        self.filler_ = GapFiller.fit(found.X)
        self.views_ = self._view_positions(groups)
        self._tell_views()
        numbers = {
            c.name: found.X[:, self._encoder.blocks[c.name][0]] for c in taken if c.kind == "number"
        }
        tell_doubts(table.source, self.columns_, numbers, self.max_categories)
        self._tell_gaps(table, found)
        return self

    def _check_parameters(self) -> None:
        if isinstance(self.empty, str):
            raise ValueError(f"empty: got {self.empty!r}; expected a list of texts.")
        for name, known in (("missing", MISSING), ("dates", DATES)):
            value = getattr(self, name)
            if value not in known:
                near, words = did_you_mean(str(value), known), ", ".join(known)
                raise ValueError(f"{name}: got {value!r}{near}; expected one of {words}.")

    def _asked(self, names: Sequence[str]) -> dict[str, str]:
        asked: dict[str, str] = {}
        for pattern, kind in (self.kinds or {}).items():
            if kind not in KINDS:
                raise ValueError(
                    f"kinds: got {kind!r} for {pattern!r}{did_you_mean(str(kind), KINDS)}; "
                    f"expected one of {', '.join(KINDS)}."
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
        groups = {}
        for view, patterns in self.views.items():
            wanted = [patterns] if isinstance(patterns, str) else [str(p) for p in patterns]
            groups[str(view)] = match_columns(wanted, names, f"view {view!r}")
        return groups

    def _tell_views(self) -> None:
        """Warn of views of nothing but categories: their kernels take few values."""
        categories = {c.name for c in self._encoder.columns if c.kind == "category"}
        alone = [v for v, names in self.view_columns().items() if categories.issuperset(names)]
        if alone and self.views_ is not None:
            warnings.warn(
                f"views: nothing but categories in {listed(alone)}. They say little by themselves, "
                "and with decision='sum' a kernel of few different rows takes most of the weight; "
                "put categories in a view with the numbers they belong to.",
                UserWarning,
                stacklevel=3,
            )

    def _tell_gaps(self, table: Table, found: Reading) -> None:
        used = self._encoder.columns
        empty = sum(column.missing for column in used)
        if not empty:
            return
        if self.missing == "error":
            raise table.error(list(zip(self.used_, found.missing.T, strict=True)), "empty")
        affected = [column.name for column in used if column.missing]
        warnings.warn(
            f"{table.source}: {empty:,} empty cell{'s' * (empty > 1)} of the training rows (in "
            f"{listed(affected)}) {'was' if empty == 1 else 'were'} filled in from the other "
            "columns.",
            GapsWarning,
            stacklevel=3,
        )

    # -- new rows ----------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Numbers for an estimator, of shape (m, d).

        Columns of X are found by name; those that are not learned from may be absent. Rows without
        any value are put far away, so that they are flagged, and counted in a warning.
        """
        found = self.read(X)
        lost = np.flatnonzero(_nothing_known(found))
        if len(lost):
            warnings.warn(
                f"X: {len(lost):,} of {len(found.X):,} rows have no value to judge by (first: row "
                f"{lost[0] + 1}): all is empty, or never seen in training. They are put far away, "
                "so that they are flagged.",
                GapsWarning,
                stacklevel=2,
            )
        return self._with_views(found.X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and the training rows as numbers: their gaps are filled in, none is put far away."""
        return self._with_views(self.fit(X, y).training_rows(X).X)

    def training_rows(self, X: Any) -> Reading:
        """The rows of the fit as numbers: their gaps are filled in, none is put far away."""
        return self._filled(as_table(X).emptied(self.empty))

    def _with_views(self, X: Array) -> Array:
        if self.views_ is None:
            return X
        out = X.view(_ViewArray)
        out.table_views = self.views_
        return out

    def read(self, X: Any, absent: Sequence[str] = (), strict: bool = True) -> Reading:
        """Numbers for an estimator, and which cells were empty or new.

        Columns that are called ``absent`` need not be there: all their cells count as empty.
        A cell that should be a number and is not is an error, or, where not ``strict``, is filled
        in as an empty one and told in ``unreadable``.
        """
        check_is_fitted(self, "columns_")
        table = as_table(X).emptied(self.empty)
        self._check_columns(X, table, absent)
        found = self._filled(table, absent, strict)
        by_rule = _nothing_known(found)
        if self.missing == "flag":
            asked_for = [name not in absent for name in self.used_]
            by_rule |= (found.missing | found.unseen)[:, asked_for].any(axis=1)
        broken = tuple(breaches(self.columns_, table, absent))
        by_rule[[b.row for b in broken if b.number or self.missing == "flag"]] = True
        if by_rule.any():
            found.X[by_rule] = self.filler_.mean + FAR * self.filler_.scale
        return replace(found, by_rule=by_rule, breaches=broken)

    def _filled(self, table: Table, absent: Sequence[str] = (), strict: bool = True) -> Reading:
        found = self._encoder.numbers(table, absent)
        if strict and found.unreadable.any():
            raise table.error(list(zip(self.used_, found.unreadable.T, strict=True)), "new")
        gaps = zip(self.used_, found.missing.T, strict=True)
        asked_for = [(name, mask) for name, mask in gaps if name not in absent]
        if self.missing == "error" and any(mask.any() for _, mask in asked_for):
            raise table.error(asked_for, "empty")
        filled = self._encoder.snapped(self.filler_.fill(found.X), found.missing | found.unseen)
        numbers = [
            c.kind == "number" for c in self._encoder.columns for _ in self._encoder.names(c)
        ]
        filled[np.isnan(found.X) & numbers] = np.nan  # others have no values in between
        return replace(found, X=self.filler_.fill(filled, scatter=True))

    def lacking(self, names: Sequence[str], absent: Sequence[str] = ()) -> list[str]:
        """Columns that are learned from and neither among these nor ``absent``."""
        there = {*names, *absent}
        return [name for name in self.used_ if name not in there]

    def missing_views(self, missing: Mask) -> dict[str, Mask]:
        """Views of which more than half of the cells are empty, as masks over the rows."""
        places = {name: i for i, name in enumerate(self.used_)}
        views = {view: [places[n] for n in names] for view, names in self.view_columns().items()}
        return {view: missing[:, at].mean(axis=1) > MOST_MISSING for view, at in views.items()}

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` gives."""
        check_is_fitted(self, "columns_")
        names = [name for column in self._encoder.columns for name in self._encoder.names(column)]
        return np.array(names, dtype=object)

    def column_of_output(self) -> list[str]:
        """Name of the table's column behind each column of `transform`."""
        return [name for name, block in self._encoder.blocks.items() for _ in block]

    @property
    def blocks_(self) -> list[list[int]]:
        """Positions in what `transform` gives, for each of ``used_``."""
        return list(self._encoder.blocks.values())

    def category_values(self, name: str) -> tuple[str, ...] | None:
        """Values of a category; None where the column is another kind."""
        column = self._encoder.columns[self.used_.index(name)]
        return column.values if column.kind == "category" else None

    def category_counts(self, name: str) -> tuple[int, ...]:
        """How many training rows have each of `category_values`."""
        return self._encoder.columns[self.used_.index(name)].counts

    def expected_value(self, name: str, row: Array) -> str:
        """The value of a category that the other columns of a row (of `transform`) speak for."""
        gap = np.array(row, dtype=np.float64)[None]
        block = self._encoder.blocks[name]
        gap[:, block] = np.nan
        place = self.filler_.fill(gap)[0, block]
        nearest = int(((self._encoder.places[name] - place) ** 2).sum(axis=1).argmin())
        return self._encoder.columns[self.used_.index(name)].values[nearest]

    def summary(self) -> str:
        """What was decided, one line per kind."""
        check_is_fitted(self, "columns_")
        return summarise(self.columns_, self.used_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _check_columns(self, X: Any, table: Table, absent: Sequence[str]) -> None:
        lacking = self.lacking(table.names, absent)
        if isinstance(X, np.ndarray) and len(table.names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(table.names)} features, but TableViews is expecting "
                f"{self.n_features_in_} features as input."
            )
        if lacking:
            raise TableError(
                f"{table.source}: lacks {listed(lacking)}, which the model was fitted on"
                f"{resembling(lacking, table.names)}. To do without, add it as an empty column."
            )

    # -- where things are --------------------------------------------------------------------

    def _view_positions(self, groups: dict[str, list[str]] | None) -> dict[str, list[int]] | None:
        if groups is None:
            return None
        views, blocks = {}, self._encoder.blocks
        for view, names in groups.items():
            columns = [name for name in names if name in blocks]
            if columns:
                views[view] = [i for name in columns for i in blocks[name]]
            elif self.views != "features":
                kinds = {c.name: c.kind for c in self.columns_}
                said = ", ".join(f"{name!r} ({kinds[name]})" for name in names[:6])
                raise ValueError(f"view {view!r}: none of its columns is learned from: {said}.")
        return views

    def view_columns(self) -> dict[str, list[str]]:
        """Columns of each view; the view of all columns is called "all", as the estimators do."""
        if self.views_ is None:
            return {"all": self.used_}
        of = self.column_of_output()
        return {view: list(dict.fromkeys(of[i] for i in at)) for view, at in self.views_.items()}


def _nothing_known(reading: Reading) -> Mask:
    return np.asarray((reading.missing | reading.unseen | reading.unreadable).all(axis=1))

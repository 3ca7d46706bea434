"""Tables as people have them, made into numbers and views for the estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernull._fields import Checked, Range, Shape, Size, stored
from kernull._text import listed
from kernull._typing import Array, Mask
from kernull.errors import GapsWarning, TableError, warn
from kernull.tables.cells import as_text
from kernull.tables.encoder import EncodedRows, Encoder, read_cells
from kernull.tables.gaps import GapFiller
from kernull.tables.kinds import (
    EMPTY,
    KINDS,
    MAX_CATEGORIES,
    USED,
    Column,
    decide_kinds,
    did_you_mean,
    match_columns,
    resembling,
    summarise,
    warn_of_doubts,
)
from kernull.tables.proposal import propose_views
from kernull.tables.table import Table, as_table

ON_GAPS = ("error", "impute")
DATES = ("drop", "parts")
#: With a larger share of its cells empty, `fit` names a column.
MOST_MISSING = 0.5


@dataclass(frozen=True, eq=False)
class Reading:
    """New rows as a model takes them, and what their cells are.

    Attributes
    ----------
    X : EncodedRows of shape (m, d)
        Numbers, without gaps.
    missing, unseen, unreadable : boolean arrays of shape (m, C)
        Cells that are empty, that have a value that no training row had (of categories, constants
        and numbers of few values), and that should be numbers and are not; by the columns of
        ``TableViews.looked_at_``.
    absent : tuple of str
        Columns that are not looked at in these rows.
    """

    X: Array
    missing: Mask
    unseen: Mask
    unreadable: Mask
    absent: tuple[str, ...] = ()


@stored
@dataclass(eq=False, repr=False)
class TableViews(Checked, TransformerMixin, BaseEstimator):
    """Turn a table of numbers, text, dates and gaps into numbers for an estimator.

    Each column gets a kind when it is fitted: numbers stay, categories become places in one or
    two dimensions that weigh as much as a column of numbers (`kernull.tables.encoder`), dates
    are left out unless asked for, and identifiers and constants are left out. ``summary()`` says
    what was decided, and why.

    Estimators that decide by evidence learn all this again in each fold, and judge one thing more:
    values that were never seen, those of constants included, and cells that never were empty
    (`kernull.tables.never_seen`). Where the decision is no evidence (``decision="sum"``,
    ``contamination``, a detector in `Calibrated`), an estimator sees numbers alone: a value never
    seen counts as a rare or an empty one, which remarks of a `Judge` name, and flags nothing.

    Parameters
    ----------
    views : None, "auto", "features" or mapping of name -> column patterns, default=None
        Groups of columns, such as ``{"vibration": ["vib_*"]}``; columns that no view takes are
        left out. Pass the fitted ``views_`` on to the estimator. None: all columns, one view;
        ``"features"``: one view per column; ``"auto"``: columns whose names begin alike, or that
        correlate (`proposal`).
    kinds : mapping of column pattern -> kind, optional
        What you know better: ``"number"``, ``"category"``, ``"date"``, ``"identifier"`` or
        ``"left out"``.
    dates : {"drop", "parts"}, default="drop"
        ``"parts"``: the hour of the day and the day of the week, as places on a circle.
    missing : {"impute", "error"}, default="impute"
        Empty cells: filled in from rows that are expected to have the same there
        (`kernull.tables.gaps`), or refused.
    max_categories : int, default=50
        A column of text with more values is a name, and left out; if ``kinds`` calls it a
        category, its rare values count as one.
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
    looked_at_ : list of str
        Columns whose cells are judged: ``used_``, then constants.
    encoder_ : Encoder
        From cells to what `transform` gives.
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
    >>> new = {"machine": ["M1", "M9"], "force": [0.0, 0.0], "speed": [0.0, 0.0]}
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
    looked_at_: list[str] = field(init=False)
    n_features_in_: Annotated[int, Size("_columns")] = field(init=False)
    feature_names_in_: Annotated[NDArray[np.object_], Shape("_columns")] = field(init=False)
    encoder_: Encoder = field(init=False)

    def contradiction(self) -> str | None:
        """What does not fit together in a file."""
        self._check_parameters()
        names = [column.name for column in self.columns_]
        if len(set(names)) < len(names) or names != list(self.feature_names_in_):
            return "two columns of one name"
        looked_at = [column.name for column in self.encoder_.columns]
        if looked_at != self.looked_at_ or not set(looked_at) <= set(names):
            return "columns that are not there"
        d = 0 if self.encoder_.filler is None else len(self.filler_.mean)
        if sum(map(len, self.blocks_)) != d or list(self.encoder_.blocks) != self.used_:
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
            message = f"{table.source}: empty: no cell is {listed(idle)}."
            warn(message, UserWarning, stacklevel=2)
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
        looked_at = [*taken, *(c for c in columns if c.kind == "constant" and c.why != "as asked")]
        self.looked_at_ = [column.name for column in looked_at]
        blank = {
            c.name: np.full((len(c.values) + 1, 1 if len(c.values) == 2 else 2), np.nan)
            for c in taken if c.kind == "category"
        }  # fmt: skip
        cells, _ = read_cells(looked_at, table)
        self.encoder_ = Encoder(tuple(looked_at), blank).fit(cells, ranges=True)
        self.views_ = self._view_positions(self.proposal() if self.views == "auto" else groups)
        self._check_views()
        numbers = {c.name: cells[:, i] for i, c in enumerate(taken) if c.kind == "number"}
        warn_of_doubts(table.source, self.columns_, numbers, self.max_categories)
        self._check_gaps(table, np.isnan(cells[:, : len(taken)]))
        return self

    def _check_parameters(self) -> None:
        if isinstance(self.empty, str):
            raise ValueError(f"empty: got {self.empty!r}; expected a list of texts.")
        for name, known in (("missing", ON_GAPS), ("dates", DATES)):
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
        if self.views is None or self.views == "auto":
            return None
        if isinstance(self.views, str) and self.views == "features":
            return {name: [name] for name in names}
        if not isinstance(self.views, Mapping) or not self.views:
            raise ValueError(
                f"views: got {self.views!r}; expected None, 'auto', 'features' or a mapping of "
                "name -> column patterns."
            )
        groups = {}
        for view, patterns in self.views.items():
            wanted = [patterns] if isinstance(patterns, str) else [str(p) for p in patterns]
            groups[str(view)] = match_columns(wanted, names, f"view {view!r}")
        return groups

    def _check_views(self) -> None:
        """Warn of views of nothing but categories: their kernels take few values."""
        categories = {c.name for c in self.encoder_.columns if c.kind == "category"}
        alone = [v for v, names in self.view_columns().items() if categories.issuperset(names)]
        if alone and self.views_ is not None:
            warn(
                f"views: nothing but categories in {listed(alone)}. They say little by themselves, "
                "and with decision='sum' a kernel of few different rows takes most of the weight; "
                "put categories in a view with the numbers they belong to.",
                UserWarning,
                stacklevel=3,
            )

    def _check_gaps(self, table: Table, gaps: Mask) -> None:
        if not gaps.any():
            return
        if self.missing == "error":
            raise table.error(list(zip(self.used_, gaps.T, strict=True)), "empty")
        share = dict(zip(self.used_, gaps.mean(axis=0), strict=True))
        sparse = [name for name in self.used_ if share[name] > MOST_MISSING]
        more = (
            f"; {listed(sparse)}: empty in most rows (kinds= can leave them out)" if sparse else ""
        )
        empty = int(gaps.sum())
        warn(
            f"{table.source}: {empty:,} empty cell{'s' * (empty > 1)} of the training rows (in "
            f"{listed([name for name in self.used_ if share[name]])}) "
            f"{'was' if empty == 1 else 'were'} filled in from the other columns{more}.",
            GapsWarning,
            stacklevel=3,
        )

    # -- new rows ----------------------------------------------------------------------------

    def transform(self, X: Any) -> EncodedRows:
        """Numbers for an estimator, of shape (m, d).

        Columns of X are found by name; those that are not learned from may be absent.
        """
        return self.read(X).X  # type: ignore[return-value]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> EncodedRows:
        """Fit, and the training rows as numbers."""
        return self.fit(X, y).transform(X)

    def read(self, X: Any, absent: Sequence[str] = (), strict: bool = True) -> Reading:
        """Numbers for an estimator, and which cells were empty, new or could not be read.

        Columns that are called ``absent`` need not be there: they are filled in and not judged.
        A cell that should be a number and is not is an error, or, where not ``strict``, is filled
        in as an empty one.
        """
        check_is_fitted(self, "columns_")
        table = as_table(X).emptied(self.empty)
        self._check_columns(X, table, absent)
        columns = self.encoder_.columns
        cells, bad = read_cells(columns, table, absent)
        if strict and bad.any():
            raise table.error(list(zip(self.looked_at_, bad.T, strict=True)), "new")
        missing, used = np.isnan(cells), self.used_
        if self.missing == "error" and missing[:, : len(used)].any():
            raise table.error(list(zip(used, missing.T, strict=False)), "empty")
        unseen = np.zeros(cells.shape, dtype=bool)
        for c, column in enumerate(columns):
            missing[:, c] &= column.why != EMPTY
            there = np.isfinite(cells[:, c])
            if column.is_text:
                unseen[there, c] = cells[there, c] == len(column.values)
            elif column.values:
                known = np.array(column.values, dtype=float)
                near = np.isclose(cells[there, c, None], known, rtol=1e-6, atol=0).any(axis=1)
                unseen[there, c] = ~near
        found = EncodedRows.of(self.encoder_.transform(cells), cells, self.encoder_, self.views_)
        return Reading(found, missing, unseen, bad, tuple(absent))

    def unusual_cells(self, rows: Table, reading: Reading, i: int) -> list[tuple[str, str, str]]:
        """Cells of a row that were never seen, or are empty and never were.

        A triple each: the column, the value as it was read ("" where it is empty), and in words
        what normal rows have.
        """
        n, out = self.filler_.rows, []
        for c, column in enumerate(self.encoder_.columns):
            if reading.unseen[i, c]:
                value = as_text([rows.columns[column.name][i]])[0] or ""
                out.append((column.name, *column.never_seen(value, n)))
            elif reading.missing[i, c] and not column.missing:
                out.append((column.name, "", f"{n:,} of {n:,} normal rows have a value"))
        return out

    def lacking(self, names: Sequence[str], absent: Sequence[str] = ()) -> list[str]:
        """Columns that are learned from and neither among these nor ``absent``."""
        there = {*names, *absent}
        return [name for name in self.used_ if name not in there]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` gives."""
        check_is_fitted(self, "columns_")
        names = [name for column in self.encoder_.columns for name in self.encoder_.names(column)]
        return np.array(names, dtype=object)

    def column_of_output(self) -> list[str]:
        """Name of the table's column behind each column of `transform`."""
        return [name for name, block in self.encoder_.blocks.items() for _ in block]

    @property
    def blocks_(self) -> list[list[int]]:
        """Positions in what `transform` gives, for each of ``used_``."""
        return list(self.encoder_.blocks.values())

    @property
    def filler_(self) -> GapFiller:
        """Mean, spread and correlation of what `transform` gives."""
        assert self.encoder_.filler is not None
        return self.encoder_.filler

    def category_values(self, name: str) -> tuple[str, ...] | None:
        """Values of a category; None where the column is another kind."""
        column = self.encoder_.columns[self.used_.index(name)]
        return column.values if column.kind == "category" else None

    def category_counts(self, name: str) -> tuple[int, ...]:
        """How many training rows have each of `category_values`."""
        return self.encoder_.columns[self.used_.index(name)].counts

    def expected_value(self, name: str, row: Array) -> str:
        """The value of a category that the other columns of a row (of `transform`) speak for."""
        column = self.encoder_.columns[self.used_.index(name)]
        gap, block = np.array(row, dtype=np.float64)[None], self.encoder_.blocks[name]
        gap[:, block] = np.nan
        apart = self.encoder_.places[name][:-1] - self.filler_.fill(gap)[0, block]
        squares = np.nan_to_num((apart**2).sum(axis=1), nan=np.inf)
        # Of values that share a place the most common one.
        return column.values[int(np.lexsort([-np.array(column.counts), squares])[0])]

    def proposal(self) -> dict[str, list[str]] | None:
        """Views of the columns that are learned from; None where there is one."""
        R, blocks = self.filler_.correlation, self.blocks_
        texts = [column.name for column in self.columns_ if column.kind == "category"]
        if R is None or len(blocks) < 4:
            return propose_views(self.used_, texts=texts)
        most = [[np.abs(R[np.ix_(a, b)]).max() for b in blocks] for a in blocks]
        return propose_views(self.used_, np.array(most), texts)

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
        few = len(self.used_) - len(lacking)
        if 2 * len(lacking) > len(self.used_) > 2:
            raise TableError(
                f"{table.source}: has {few or 'none'} of the {len(self.used_)} columns that the "
                f"model was fitted on, and lacks {listed(lacking)}"
                f"{resembling(lacking, table.names)}. Is it another table, or its header missing?"
            )
        if lacking:
            raise TableError(
                f"{table.source}: lacks {listed(lacking)}, which the model was fitted on"
                f"{resembling(lacking, table.names)}. To do without, pass absent={lacking[:3]} to "
                "judge, explain, report or evaluate of a Judge."
            )

    # -- where things are --------------------------------------------------------------------

    def _view_positions(self, groups: dict[str, list[str]] | None) -> dict[str, list[int]] | None:
        if groups is None:
            return None
        views, blocks = {}, self.encoder_.blocks
        for view, names in groups.items():
            columns = [name for name in names if name in blocks]
            if columns:
                views[view] = [i for name in columns for i in blocks[name]]
            elif self.views != "features":
                kinds = {c.name: c.kind for c in self.columns_}
                shown = ", ".join(f"{name!r} ({kinds[name]})" for name in names[:6])
                raise ValueError(f"view {view!r}: none of its columns is learned from: {shown}.")
        return views

    def view_columns(self) -> dict[str, list[str]]:
        """Columns of each view; the view of all columns is called "all", as the estimators do."""
        if self.views_ is None:
            return {"all": self.used_}
        of = self.column_of_output()
        return {view: list(dict.fromkeys(of[i] for i in at)) for view, at in self.views_.items()}

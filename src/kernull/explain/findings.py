"""Reasons by column in the words of a table: names, texts, dates and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from kernull._containers import as_frame, frame_library, row_names
from kernull._typing import Array
from kernull.detector.contamination import LEAST
from kernull.explain.columns import ColumnReason, column_reasons
from kernull.tables import GapFiller, Reading, Table, TableViews, as_table
from kernull.tables.cells import as_text

#: Said of a value that many normal rows have: by itself it is no reason.
TOGETHER = "the value is not rare, its combination with the others is"


@dataclass(frozen=True)
class TableReason:
    """One column of a table that makes a row stand out.

    Attributes
    ----------
    column : str
        Its name.
    value, expected : str
        What the row has, and what rows like it have.
    low, high : float or None
        The usual range for rows like this (5% to 95%), within what normal rows had; None for
        categories.
    share : float
        Share of normal rows that lie as far from what their other columns say; of a category,
        that have its value.
    score, without : float
        Score before and after the value is replaced by the expected one; the reasons before this
        one stay replaced.
    number : float or None
        The value as a number; None for categories.
    rows : int
        Normal rows that shares are counted among.
    sure : bool
        Of a category: whether the other columns tell its value in most normal rows.
    alike : bool
        False where the other columns ask for values that no normal row had: expected, range and
        share are then those of the column by itself.
    seen : bool
        False where no normal row had a value so low or so high.
    rule : str
        Of a constant or a copy, which is not learned from: what it always was, in words. Of a
        date, which part of it stands out.
    """

    column: str
    value: str
    expected: str
    low: float | None
    high: float | None
    share: float
    score: float
    without: float
    number: float | None = None
    rows: int = 0
    sure: bool = True
    alike: bool = True
    seen: bool = True
    rule: str = ""

    @property
    def words(self) -> str:
        """In one sentence: value, usual range, how rare, and what is left.

        Examples
        --------
        >>> TableReason("vib_y", "5.1", "3.2", 2.4, 4.1, 1 / 400, 0.12, 0.71, rows=3000).words
        'vib_y is 5.1; 2.4 to 4.1 is usual for rows like this; about 1 in 400 is as far off.'
        """
        if self.rule:
            return f"{self.column} is {self.value}; {self.rule}."
        if self.low is None or self.high is None:
            if not self.value:
                return f"{self.column} is empty; a row with such gaps is flagged."
            if not self.expected:
                return f"{self.column} is {self.value!r}, which no training row has."
            said = f"{self.column} is {self.value!r}, as in {_percent(self.share)} normal rows"
            if self.expected != self.value and self.sure:
                return f"{said}; rows like this have {self.expected!r}."
            return f"{said}{f'; {TOGETHER}' if self.share >= 0.05 else ''}."
        value, digits = self.value, 3
        whom, rare = " for rows like this" if self.alike else "", TOGETHER
        if self.number is not None:
            digits = digits_apart(self.number, self.low, self.high)
            value = plain_number(self.number, digits) if digits > 3 else value
        ends = (plain_number(end, digits) for end in (self.low, self.high))
        usual = " to ".join(dict.fromkeys(ends))
        if self.seen and self.number is not None and self.low <= self.number <= self.high:
            where = "the usual value" if self.low == self.high else f"within the usual {usual}"
            few = "few normal rows have it together with the rest"
            return f"{self.column} is {value}, {where}{whom}; {few}."
        if not self.seen:
            side = "high" if self.number is not None and self.number > self.high else "low"
            rare = f"none of {self.rows:,} normal rows has a value so {side}"
        elif self.share * (self.rows + 0.5) < 1:  # where one is as far off, it is 1 / rows or more
            rare = f"none of {self.rows:,} normal rows is as far off"
        elif self.share < 0.2:
            rare = f"about 1 in {round_to_two(1 / self.share):,} is as far off"
        return f"{self.column} is {value}; {usual} is usual{whom}; {rare}."

    def record(self) -> dict[str, Any]:
        """For JSON and data frames."""
        return {**asdict(self), "words": self.words}


def _percent(share: float) -> str:
    return f"{share:.0%} of the" if share >= 0.01 else f"1 in {round_to_two(1 / share):,}"


def round_to_two(value: float) -> int:
    """A count to two digits."""
    size = 10 ** max(int(np.log10(max(value, 1.0))) - 1, 0)
    return int(round(value / size) * size)


def plain_number(value: float, digits: int = 3) -> str:
    """A number to three digits or more, without an exponent where it is not needed.

    Examples
    --------
    >>> plain_number(1234.56), plain_number(0.0123456), plain_number(7.1), plain_number(3e9)
    ('1235', '0.0123', '7.1', '3e+09')
    """
    large = 1000 <= abs(value) < 1e7
    return f"{value:.{digits - 3}f}" if large else f"{value:.{digits}g}"


def digits_apart(value: float, low: float, high: float) -> int:
    """Digits that tell a value outside of a range from its ends: three if these do.

    Examples
    --------
    >>> digits_apart(293.4, 293.07, 293.23), digits_apart(7.0, 1.0, 2.0)
    (4, 3)
    """
    for digits in range(3, 10):
        ends = (plain_number(end, digits) for end in (low, high))
        if low <= value <= high or plain_number(value, digits) not in ends:
            break
    return digits


def table_reasons(
    model: Any,
    table: TableViews,
    reading: Reading,
    rows: Table,
    index: Sequence[int],
    *,
    missing_views: Any = None,
    most: int = 3,
) -> list[list[TableReason]]:
    """Columns that make some rows of a table stand out.

    Parameters
    ----------
    model : fitted estimator
        Fitted on what ``table`` gives.
    table : TableViews
    reading : Reading
        ``table.read(rows)``.
    rows : Table
        The rows as they were read, for their texts.
    index : sequence of int
        Positions of the rows to explain.
    missing_views : str or list of str, optional
        Views that these rows lack.
    most : int
        Reasons of one row at most.

    Returns
    -------
    list of list of TableReason
        One list per position; categories that no training row had, and constants and copies that
        are not what they always were, come last. Where rows with
        gaps are flagged (``missing="flag"``, or nothing but gaps) these are the reasons, and no
        others; columns that were given up (``reading.absent``) are no gaps.
    """
    table = without_suspects(model, table)
    picked = np.asarray(index, dtype=np.intp)
    judged = picked[~reading.by_rule[picked]]
    options = {"missing_views": missing_views} if missing_views else {}

    def score(X: Array) -> Array:
        return np.asarray(model.score_samples(X, **options))

    threshold = None if missing_views else float(model.threshold_)
    gaps = (reading.missing | reading.unseen)[judged]
    cells: dict[str, Any] = {"blocks": table.blocks_, "gaps": gaps, "fill": table.fill}
    X, filler = reading.X[judged], table.filler_
    found = column_reasons(score, X, filler, threshold=threshold, most=most, **cells)
    by_columns = dict(zip(judged.tolist(), found, strict=True))
    out = []
    for i in picked.tolist():
        reasons = by_columns.get(i, [])
        told = [_told(table, rows, reading, i, reasons[: k + 1]) for k in range(len(reasons))]
        if reading.by_rule[i]:
            empty = [table.used_[c] for c in np.flatnonzero(reading.missing[i])]
            empty = [name for name in empty if name not in reading.absent]
            told += [_never_seen(table, name, "") for name in empty[:most]]
        new = [table.used_[c] for c in np.flatnonzero(reading.unseen[i])]
        told += [_never_seen(table, name, str(rows.columns[name][i])) for name in new]
        told += [
            replace(_never_seen(table, b.column, b.value), expected=b.expected, rule=b.rule)
            for b in reading.breaches
            if b.row == i
        ]
        out.append(told)
    return out


def without_suspects(model: Any, table: TableViews) -> TableViews:
    """The table with what is usual among the rows that ``contamination`` left their weight."""
    if getattr(model, "contamination", None) is None:
        return table
    trust = model.model_.system.row_weight
    if not all(view.can_be_undone for view in model.bank_.views):
        return table
    X = np.full((model.bank_.n, len(table.filler_.mean)), np.nan)
    for view in model.bank_.views:
        X[:, view.columns] = view.scaler.inverse_transform(view.train)
    # Nobody is suspected; rows are landmarks; columns that no view has.
    if trust is None or len(trust) != len(X) or np.isnan(X).any():
        return table
    found = copy(table)
    found.filler_ = GapFiller.fit(X[trust > 10 * LEAST * trust.max()])
    return found


def _never_seen(table: TableViews, column: str, value: str) -> TableReason:
    """A cell unlike all that was learned from: a new category, or an empty one."""
    share = 1.0 / (table.filler_.rows + 1.0)
    return TableReason(column, value, "", None, None, share, float("nan"), float("nan"))


def explain_columns(model: Any, X: Any, *, table: TableViews | None = None, most: int = 3) -> Any:
    """Why flagged rows of a table stand out: one line per reason, as ``kernull explain`` says it.

    Parameters
    ----------
    model : fitted pipeline of TableViews and an estimator, or the estimator
    X : data frame, Table, mapping of columns, or array
        Rows as the pipeline takes them.
    table : TableViews, optional
        Where ``model`` is the estimator by itself: what it was fitted through.
    most : int
        Reasons of one row at most.

    Returns
    -------
    data frame (pandas or polars, as X), or list of dict
        With row (its index in a pandas table, else its position from 0), column, value, expected,
        low and high (the usual range for rows like this), share, score, without (the score once
        the value is replaced) and words.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernull import MultiKernelFisherNull, TableViews
    >>> rng = np.random.default_rng(0)
    >>> load = rng.normal(size=200)
    >>> parts = {"force": 100 + 5 * load, "power": 40 + load + 0.1 * rng.normal(size=200)}
    >>> model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(parts)
    >>> for reason in explain_columns(model, {"force": [100.0], "power": [41.5]}):
    ...     print(reason["words"])
    power is 41.5; 39.9 to 40.2 is usual for rows like this; none of 200 normal rows is as far off.
    """
    model, table = split_pipeline(model, table)
    if table is None:
        raise TypeError(
            "model: expected a pipeline of TableViews and an estimator, or table= beside the "
            "estimator."
        )
    rows = as_table(X).emptied(tuple(table.empty))
    reading = table.read(rows)
    scores = np.asarray(model.score_samples(reading.X))
    index = np.flatnonzero(~(scores >= model.threshold_))
    found = table_reasons(model, table, reading, rows, index.tolist(), most=most)
    names = row_names(X) or range(len(rows))
    inner = ("number", "rows", "sure", "alike", "seen", "rule")
    records = [
        {
            "row": names[i],
            **{name: value for name, value in reason.record().items() if name not in inner},
        }
        for i, reasons in zip(index.tolist(), found, strict=True)
        for reason in reasons
    ]
    told = [field.name for field in fields(TableReason) if field.name not in inner]
    return as_frame(records, frame_library(X), ["row", *told, "words"])


def split_pipeline(model: Any, table: TableViews | None) -> tuple[Any, TableViews | None]:
    """The estimator of a pipeline of `TableViews` and an estimator, and its table."""
    if not hasattr(model, "steps"):
        return model, table
    if len(model) != 2 or not isinstance(model[0], TableViews):
        steps = ", ".join(type(step).__name__ for _, step in model.steps)
        raise TypeError(
            f"model: got a pipeline of {steps}; expected one of TableViews and an estimator."
        )
    return model[1], model[0]


def _told(
    table: TableViews, rows: Table, reading: Reading, i: int, reasons: list[ColumnReason]
) -> TableReason:
    """The last of some reasons of a row, where those before it are replaced."""
    reason = reasons[-1]
    name = table.used_[reason.column]
    rest = (reason.share, reason.score, reason.without)
    n = table.filler_.rows
    values = table.category_values(name)
    if table._encoder.columns[reason.column].kind == "date":
        value = (as_text([rows.columns[name][i]])[0] or "").removesuffix(".000000")
        share, part = _unusual_part(table, [r.column for r in reasons], reading.X[i])
        said = TableReason(name, value, "", None, None, share, *rest[1:], rows=n)
        return replace(said, rule=f"it stands out by its {part}")
    if values is None:
        digits = digits_apart(reason.value, reason.low, reason.high)
        value = plain_number(reason.value, digits)
        expected = plain_number(reason.expected, digits)
        span = (reason.low, reason.high)
        if table._encoder.columns[reason.column].form == "whole":
            expected = plain_number(round(reason.expected), digits)
            inner = float(np.ceil(reason.low)), float(np.floor(reason.high))
            span = inner if inner[0] <= inner[1] else (round(reason.low), round(reason.high))
        said = TableReason(name, value, expected, *span, *rest, reason.value, n)
        return replace(said, alike=reason.alike, seen=reason.seen)
    expected = table.expected_value(name, reading.X[i])
    value = as_text([rows.columns[name][i]])[0] or ""
    counts = dict(zip(values, table.category_counts(name), strict=True))
    share = max(counts.get(value, 0), 1) / max(sum(counts.values()), 1)
    # Of columns of unit variance: most of it is told by the other columns.
    sure = bool(table.filler_.residual_spread[table.blocks_[reason.column][0]] < 0.5)
    return TableReason(name, value, expected, None, None, share, *rest[1:], rows=n, sure=sure)


def _unusual_part(table: TableViews, replaced: list[int], row: Array) -> tuple[float, str]:
    """Of a date, the last column replaced: what is farther from what the others say, how rare."""
    gap, block = row.copy(), table.blocks_[replaced[-1]]
    gap[[j for column in replaced for j in table.blocks_[column]]] = np.nan
    apart = row - table.filler_.fill(gap[None])[0]
    spread = np.maximum(table.filler_.residual_spread, 1e-6)  # of places on circles of radius one
    worst = max(block, key=lambda j: abs(apart[j]) / spread[j])
    share = table.filler_.share_as_far(worst, apart[worst])
    return share, "time of day" if worst in block[:2] else "day of the week"

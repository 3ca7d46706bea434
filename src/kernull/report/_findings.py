"""What a report says first: the rows that stand out, when, where, and what drifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from kernull._typing import Array, Indices, Mask
from kernull.inspection import TableReason, column_reasons, table_reasons
from kernull.inspection.findings import plain_number
from kernull.tables import GapFiller, Reading, Table, TableViews
from kernull.tables.cells import as_dates, as_text

#: Scores that may be evaluated for reasons by column; rows beyond have none.
MAX_SCORES = 40_000
#: Tables with more columns have no reasons by column.
MAX_COLUMNS = 200
#: Bars of the time line, values of a group and columns that drift, at most.
TIME_BINS, GROUP_VALUES, DRIFTING, MINI_BINS = 40, 8, 10, 20
#: Values that stand for the training rows in the small plots.
SPREAD = 1000


@dataclass(frozen=True)
class Group:
    """How many rows of each value of a column are flagged."""

    column: str
    #: Value, rows, flagged rows, and whether that is more than chance and the rest explain.
    values: tuple[tuple[str, int, int, bool], ...]

    @property
    def largest(self) -> float:
        """The largest share of flagged rows, for the bars; never zero."""
        return max((odd / n for _, n, odd, _ in self.values), default=0.0) or 1.0


@dataclass(frozen=True)
class TimeLine:
    """Rows and flagged rows by time."""

    column: str
    labels: tuple[str, ...]
    rows: tuple[int, ...]
    flagged: tuple[int, ...]


@dataclass(frozen=True)
class Drift:
    """One column in training and new rows."""

    column: str
    words: str
    distance: float  #: Largest difference of the shares of rows up to a value, or of values.
    edges: tuple[str, ...]
    training: tuple[float, ...]
    new: tuple[float, ...]


def reasons_of(
    model: Any,
    X: Array,
    order: Indices,
    flagged: Mask,
    names: Sequence[str],
    table: TableViews | None,
    reading: Reading | None,
    rows: Table | None,
) -> dict[int, list[TableReason]]:
    """Reasons by column of as many rows, in their order, as can be had in reasonable time."""
    width = X.shape[1] if table is None else len(table.used_)
    if width > MAX_COLUMNS or width < 2:
        return {}
    picked = order[: max(5, MAX_SCORES // (2 * width))]
    if table is not None and reading is not None and rows is not None:
        found = table_reasons(model, table, reading, rows, picked.tolist())
        return dict(zip(picked.tolist(), found, strict=True))
    normal = X[~flagged] if (~flagged).sum() >= 10 else X
    # Without training rows, rows that are not flagged say what is usual.
    plain = column_reasons(
        model.score_samples, X[picked], GapFiller.fit(normal), threshold=float(model.threshold_)
    )
    return {
        i: [
            TableReason(
                str(names[r.column]), plain_number(r.value), plain_number(r.expected), r.low,
                r.high, r.share, r.score, r.without, r.value, len(normal),
                alike=r.alike, seen=r.seen,
            )
            for r in reasons
        ]
        for i, reasons in zip(picked.tolist(), plain, strict=True)
    }  # fmt: skip


def groups_of(table: TableViews, rows: Table, flagged: Mask) -> tuple[Group, ...]:
    """Flagged rows by the values of categories, learned from or not; those with few values only."""
    found = []
    for column in table.columns_:
        if column.kind != "category" or column.name not in rows.columns:
            continue
        values, codes, counts = np.unique(
            np.asarray(rows.text(column.name)), return_inverse=True, return_counts=True
        )
        if not 2 <= len(values) <= 50:
            continue
        odd = np.bincount(codes.ravel(), weights=flagged, minlength=len(values)).astype(int)
        entries = []
        for v, value in enumerate(values):
            rest = len(flagged) - counts[v]
            share = (odd.sum() - odd[v] + 0.5) / (rest + 1.0)
            # Bonferroni over the values of the column.
            unusual = binom.sf(odd[v] - 1, counts[v], share) < 0.01 / len(values)
            entries.append((str(value) or "(empty)", int(counts[v]), int(odd[v]), bool(unusual)))
        entries.sort(key=lambda entry: -entry[2] / entry[1])
        found.append(Group(column.name, tuple(entries[:GROUP_VALUES])))
    return tuple(found)


def time_line(table: TableViews, rows: Table, flagged: Mask) -> TimeLine | None:
    """Flagged rows over the time that the first column of dates has, in bins of equal length."""
    # A time of day alone makes no line.
    dates = (c for c in table.columns_ if c.kind == "date" and not (c.form or "").startswith("%H"))
    column = next((column for column in dates if column.name in rows.columns), None)
    if column is None:
        return None
    times = as_dates(rows.columns[column.name], column.form or "iso")
    known = ~np.isnat(times)
    seconds = times[known].astype("datetime64[s]").astype(np.int64).astype(float)
    if len(seconds) < 2 or np.ptp(seconds) == 0:
        return None
    bins = min(TIME_BINS, max(4, len(seconds) // 5))
    edges = np.linspace(seconds.min(), seconds.max(), bins + 1)
    count = np.histogram(seconds, edges)[0]
    odd = np.histogram(seconds[flagged[known]], edges)[0]
    labels = [
        str(np.datetime64(int(edge), "s")).replace("T", " ")[: 10 if np.ptp(seconds) > 4e6 else 16]
        for edge in edges[:-1]
    ]
    return TimeLine(column.name, tuple(labels), tuple(count.tolist()), tuple(odd.tolist()))


def drifts(table: TableViews, rows: Table, absent: Sequence[str] = ()) -> tuple[Drift, ...]:
    """Columns whose values differ most from those of the training rows, beyond chance."""
    found: list[Drift | None] = []
    for column in table.used_:
        if column not in rows.columns or column in absent:
            continue
        values, places = table.category_values(column), table.blocks_[table.used_.index(column)]
        if values is not None:
            texts = as_text(rows.columns[column])
            found.append(_category_drift(table, column, values, texts))
        elif len(places) == 1:  # no date
            new = rows.parse(column)[0]
            new = new[np.isfinite(new)]
            found.append(_number_drift(column, table.filler_, places[0], new))
    beyond = [drift for drift in found if drift is not None]
    return tuple(sorted(beyond, key=lambda drift: -drift.distance)[:DRIFTING])


def _number_drift(column: str, filler: GapFiller, j: int, new: Array) -> Drift | None:
    if len(new) < 5:
        return None
    old = filler.quantiles[:, j]
    levels = np.linspace(0.0, 1.0, len(old))
    ordered = np.sort(new)
    # The Kolmogorov-Smirnov distance, with the training rows known by their quantiles.
    distance = _apart(old, levels, ordered)
    if distance < _chance(filler.rows, len(new)):
        return None
    least, most = min(old[0], ordered[0]), max(old[-1], ordered[-1])
    low, high = least, most
    if np.ptp(old) > 0 and (high - low) > 6 * np.ptp(old):  # far values would flatten the rest
        low = max(least, old[0] - 2.5 * np.ptp(old))
        high = min(most, old[-1] + 2.5 * np.ptp(old))
    edges = np.linspace(low, high, MINI_BINS + 1)
    training = np.histogram(np.clip(_spread_out(old), low, high), edges)[0] / SPREAD
    inside = np.histogram(np.clip(new, low, high), edges)[0] / len(new)
    middle, now = plain_number(float(old[len(old) // 2])), plain_number(float(np.median(new)))
    words = f"median {now}, {middle} in training"
    if middle == now:
        middle, now = plain_number(float(old.mean())), plain_number(float(new.mean()))
        words = f"mean {now}, {middle} in training"
    words += f"; the first bar begins at {plain_number(least)}" if least < low else ""
    words += f"; the last bar goes on to {plain_number(most)}" if most > high else ""
    edges[0], edges[-1] = least, most
    return Drift(
        column, words, distance,
        tuple(plain_number(float(edge)) for edge in edges), tuple(training.tolist()),
        tuple(inside.tolist()),
    )  # fmt: skip


def _apart(old: Array, levels: Array, new: Array) -> float:
    """The Kolmogorov-Smirnov distance at least, of sorted rows from others known by quantiles.

    Between two quantiles the share of training rows up to a value is known within bounds only, and
    values that many rows share make steps: what lies within the bounds is no difference.
    """
    last = len(levels) - 1
    found = 0.0
    for side in ("left", "right"):  # shares below a value, and up to it
        share = np.searchsorted(new, new, side=side) / len(new)
        at = np.searchsorted(old, new, side=side)
        low, high = levels[np.maximum(at - 1, 0)], levels[np.minimum(at, last)]
        low = np.where(at == 0, 0.0, low)
        high = np.where(at == 0, 0.0, np.where(at > last, 1.0, high))
        found = max(found, float(np.maximum(share - high, low - share).max()))
    return found


def _spread_out(old: Array) -> Array:
    """As many values as `SPREAD` that have these quantiles; shared values stay shared."""
    whole = np.interp(np.linspace(0.0, 1.0, SPREAD), np.linspace(0.0, 1.0, len(old)), old)
    if len(np.unique(old)) < len(old) // 2:  # few values: nothing lies between them
        whole = old[np.abs(old[None, :] - whole[:, None]).argmin(axis=1)]
    return np.asarray(whole)


def _category_drift(
    table: TableViews, column: str, values: tuple[str, ...], texts: list[str | None]
) -> Drift | None:
    filled = [text for text in texts if text is not None]
    if len(filled) < 5:
        return None
    counts = table.category_counts(column)
    training = np.array([*counts, 0], dtype=float) / max(sum(counts), 1)
    index = {value: i for i, value in enumerate(values)}
    codes = [index.get(text, len(values)) for text in filled]
    new = np.bincount(codes, minlength=len(values) + 1) / len(filled)
    distance = float(np.abs(training - new).sum() / 2)
    if distance < _chance(table.filler_.rows, len(filled)) * np.sqrt(len(values) / 2):
        return None
    v = int(np.abs(training - new).argmax())
    name = values[v] if v < len(values) else "other values"
    shown = [*values, "other values"] if new[-1] else list(values)
    return Drift(
        column, f"{name}: {new[v]:.0%} of the rows, {training[v]:.0%} in training", distance,
        tuple(shown), tuple(training[: len(shown)].tolist()), tuple(new[: len(shown)].tolist()),
    )  # fmt: skip


def _chance(n: int, m: int) -> float:
    """A distance that two samples of one kind reach once in a thousand times (Smirnov)."""
    return 1.95 * float(np.sqrt(1.0 / max(n, 1) + 1.0 / max(m, 1)))

"""When and where rows are flagged: by time, and by the values of categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from kernull._typing import Mask
from kernull.tables import Table, TableViews
from kernull.tables.cells import as_dates

#: Bars of the time line and values of a group, at most.
TIME_BINS, GROUP_VALUES = 40, 8


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


def groups_of(table: TableViews, rows: Table, flagged: Mask) -> tuple[Group, ...]:
    """Flagged rows by the values of categories, learned from or not; those with few values only."""
    groups = []
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
        groups.append(Group(column.name, tuple(entries[:GROUP_VALUES])))
    return tuple(groups)


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

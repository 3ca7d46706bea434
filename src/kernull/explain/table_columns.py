"""Reasons by column in the words of a table: names, texts, dates and whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.detector.usual import UsualValues
from kernull.explain.columns import ColumnReason, NumberColumns, Replacement, column_reasons
from kernull.tables import Reading, Table, TableViews
from kernull.tables.cells import as_text
from kernull.tables.encoder import category_codes


@dataclass(frozen=True, eq=False)
class TableColumns:
    """Reasons by column of rows of a table.

    Parameters
    ----------
    table : TableViews
        Fitted.
    usual : UsualValues
        Of what ``table`` gives.
    rows : Table
        The rows as they were read, for their texts.
    reading : Reading
        ``table.read(rows)``.
    score : callable
        Scores of rows as ``table`` gives them; higher is more normal.
    threshold : float
        Reasons end where the score is no lower.
    index : array of int
        Positions in ``rows`` of the rows that this score is for.
    """

    table: TableViews
    usual: UsualValues
    rows: Table
    reading: Reading
    _: KW_ONLY
    score: Callable[[Array], Any]
    threshold: float
    index: Indices

    def reasons(self, places: Sequence[int], most: int = 3) -> list[list[ColumnReason]]:
        """Reasons of the rows at these places of ``index``, a list for each.

        Values that were never seen, and cells that are empty and never were, come last.
        """
        reading, used = self.reading, self.table.used_
        picked = self.index[np.asarray(places, dtype=np.intp)]
        gaps = (reading.missing | reading.unseen)[picked, : len(used)]
        columns = _Columns(used, self.usual, self.table.blocks_, self.table, self.rows, picked)
        X = np.asarray(reading.X[picked])
        found = column_reasons(
            self.score, X, columns, threshold=self.threshold, gaps=gaps, most=most
        )
        n = self.usual.rows
        return [
            [
                *reasons,
                *(
                    ColumnReason(name, value, "", None, None, 1.0 / (n + 1.0), rows=n, rule=words)
                    for name, value, words in self.table.unusual_cells(self.rows, reading, i)
                ),
            ]
            for reasons, i in zip(found, picked.tolist(), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Columns(NumberColumns):
    """Columns of a `TableViews`, with the cells of the rows that are explained."""

    table: TableViews
    rows: Table
    index: Any

    def fill(self, X: Array) -> Array:
        """Rows with NaN replaced; categories and dates by values that there are."""
        return self.table.encoder_.snapped(self.usual.fill(X), np.isnan(X))

    def reason(self, replaced: Replacement, i: int) -> ColumnReason:
        """The reason behind a replacement, with the text of its cell."""
        column = self.table.encoder_.columns[replaced.block]
        if column.kind == "number":
            return self.of_number(replaced, whole=column.form == "whole")
        name, block = column.name, self.blocks[replaced.block]
        value = as_text([self.rows.columns[name][int(self.index[i])]])[0] or ""
        step: dict[str, Any] = {
            "score": replaced.score,
            "without": replaced.without,
            "rows": self.usual.rows,
        }
        if column.kind == "date":
            j, part = self._part_of_date(replaced, block)
            apart = replaced.row[j] - replaced.mended[j]
            share, rule = self.usual.share_as_far(j, apart), f"it stands out by its {part}"
            value = value.removesuffix(".000000")
            return ColumnReason(name, value, "", None, None, share, **step, rule=rule)
        expected = self.table.expected_value(name, replaced.row)
        code = category_codes([value or None], column.values)[0]  # 1 of True
        seen = column.counts[code] if 0 <= code < len(column.counts) else 0
        share = max(seen, 1) / max(sum(column.counts), 1)
        # Columns have unit variance: most of it is predicted by the other columns.
        sure = bool(self.usual.residual_spread[block[0]] < 0.5)
        return ColumnReason(name, value, expected, None, None, share, **step, sure=sure)

    def _part_of_date(self, replaced: Replacement, block: Sequence[int]) -> tuple[int, str]:
        """Of a date, the place on a circle that is farther from what the others predict."""
        spread = np.maximum(self.usual.residual_spread, 1e-6)  # circles have radius one
        apart = np.abs(replaced.row - replaced.mended) / spread
        j = max(block, key=lambda place: float(apart[place]))
        return j, "time of day" if j in block[:2] else "day of the week"

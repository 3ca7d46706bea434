"""Reasons by column in the words of a table: names, texts, dates and whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.detector.usual import UsualValues
from kernull.explain.columns import ColumnReason, NumberColumns, Replacement, column_reasons
from kernull.tables import Reading, Table, TableViews
from kernull.tables.cells import as_text
from kernull.tables.encoder import category_codes


@dataclass(frozen=True, eq=False)
class TableColumns(NumberColumns):
    """Columns of a `TableViews`, with the cells of the rows that are explained.

    Parameters
    ----------
    names, usual, blocks
        As in `NumberColumns`, of what ``table`` gives.
    table : TableViews
        Fitted.
    rows : Table
        The rows as they were read, for their texts.
    reading : Reading
        ``table.read(rows)``.
    """

    table: TableViews
    rows: Table
    reading: Reading

    @classmethod
    def of(
        cls, table: TableViews, usual: UsualValues, rows: Table, reading: Reading
    ) -> TableColumns:
        """Columns of a fitted table."""
        return cls(table.used_, usual, table.blocks_, table, rows, reading)

    def reasons(
        self, score: Callable[[Array], Any], threshold: float, index: Indices, places: Sequence[int]
    ) -> list[list[ColumnReason]]:
        """Reasons of the rows at these places of an index, a list for each.

        Values that were never seen, and cells that are empty and never were, come last.

        Parameters
        ----------
        score : callable
            Scores of rows as the table gives them; higher is more normal.
        threshold : float
            Reasons end where the score is no lower.
        index : array of int
            Positions of the rows that this score is for.
        places : sequence of int
            Positions in ``index`` of the rows to explain.
        """
        reading, n = self.reading, self.usual.rows
        picked = index[np.asarray(places, dtype=np.intp)]
        gaps = (reading.missing | reading.unseen)[picked, : len(self.names)]
        X = np.array(reading.X[picked])  # what was never seen as the other cells predict it
        for block, unseen in zip(self.blocks, reading.unseen[picked].T, strict=False):
            X[np.ix_(unseen, block)] = np.nan
        reasons = column_reasons(
            score, self.fill(X), self, threshold=threshold, gaps=gaps, places=picked.tolist()
        )
        for of_row, i in zip(reasons, picked.tolist(), strict=True):
            of_row += [
                ColumnReason(name, value, "", None, None, 1.0 / (n + 1.0), rows=n, rule=words)
                for name, value, words in self.table.unusual_cells(self.rows, reading, i)
            ]
        return reasons

    def fill(self, X: Array) -> Array:
        """Rows with NaN replaced; categories and dates by values that there are."""
        return self.table.encoder_.snapped(self.usual.fill(X), np.isnan(X))

    def reason(self, replaced: Replacement) -> ColumnReason:
        """The reason behind a replacement, with the text of its cell."""
        column = self.table.encoder_.columns[replaced.block]
        if column.kind == "number":
            return self.of_number(replaced, whole=column.form == "whole")
        name, block = column.name, self.blocks[replaced.block]
        value = as_text([self.rows.columns[name][replaced.place]])[0] or ""
        step: dict[str, Any] = {
            "score": replaced.score,
            "without": replaced.without,
            "rows": self.usual.rows,
        }
        if column.kind == "date":
            # The place on a circle that is farther from what the others predict; radii are one.
            spread = np.maximum(self.usual.residual_spread, 1e-6)
            apart = replaced.row - replaced.mended
            j = max(block, key=lambda place: float(np.abs(apart / spread)[place]))
            part = "time of day" if j in block[:2] else "day of the week"
            share, rule = self.usual.share_as_far(j, apart[j]), f"it stands out by its {part}"
            value = value.removesuffix(".000000")
            return ColumnReason(name, value, "", None, None, share, **step, rule=rule)
        expected = self.table.expected_value(name, replaced.row)
        code = category_codes([value or None], column.values)[0]  # 1 of True
        seen = column.counts[code] if 0 <= code < len(column.counts) else 0
        share = max(seen, 1) / max(sum(column.counts), 1)
        # Columns have unit variance: most of it is predicted by the other columns.
        sure = bool(self.usual.residual_spread[block[0]] < 0.5)
        return ColumnReason(name, value, expected, None, None, share, **step, sure=sure)

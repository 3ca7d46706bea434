"""Whether the rows of a table, taken together, are still normal ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.detector.calibration import Calibration
from kernull.explain.drift import RankTest, drifts, rank_test
from kernull.tables import Table, TableViews
from kernull.tables.table import Source

#: Probability that chance alone makes ranks differ, and that it makes any column differ: about one
#: in a hundred unchanged batches is reported to have drifted.
LEVEL = 0.01
#: Rows drawn to compare columns: shares of so many are known to 2%, whatever the table's size.
SAMPLE = 10_000
#: Rows that were learned from, and their share, from which on ranks mean nothing.
LEARNED, LEARNED_SHARE = 3, 0.05
#: Columns that the line names.
NAMED = 3


class DriftCheck:
    """P-values of rows that come in chunks, and a sample of the rows for their columns.

    Parameters
    ----------
    table : TableViews
    calibration : Calibration
        The left-out rows that p-values are of.
    absent : sequence of str
        Columns that the rows need not have.
    filler : object with quantiles and rows, optional
        What training rows are like, where not that of the table.
    """

    def __init__(
        self, table: TableViews, calibration: Calibration, absent: Any = (), filler: Any = None
    ) -> None:
        self.table, self.calibration, self.absent, self.filler = table, calibration, absent, filler
        self.p_values: list[Array] = []
        self.learned = 0  # rows that the model learned from
        self.sample: list[tuple[Table, Array]] = []
        self.random = np.random.default_rng(0)

    def see(self, rows: Table, p_values: Array, learned: int) -> None:
        """Take in rows, the p-values of those that have a rank, and how many were learned from."""
        self.p_values.append(p_values)
        self.learned += learned
        whole = np.ones(len(rows), dtype=bool)
        whole[list(rows.broken)] = False
        # The rows with the smallest of random keys are a uniform sample of all that came.
        self.sample.append((rows.rows(whole), self.random.random(int(whole.sum()))))
        keys = np.concatenate([keys for _, keys in self.sample])
        if len(keys) > SAMPLE:
            last = np.partition(keys, SAMPLE - 1)[SAMPLE - 1]
            self.sample = [(part.rows(k <= last), k[k <= last]) for part, k in self.sample]

    def result(self) -> dict[str, Any]:
        """The verdict on all rows, for JSON; ``words`` is the line."""
        columns, p_values = self._columns(), np.concatenate(self.p_values)
        if not len(p_values):
            moved = f" Columns moved: {_named(columns)}." if columns else ""
            more = {"columns": columns} if columns else {}
            words = f"Drift: no row was judged.{moved}"
            return {"drifted": True if columns else None, **more, "words": words}
        test = rank_test(p_values, self.calibration)
        known = self.learned >= max(LEARNED, LEARNED_SHARE * test.rows)
        return {
            "drifted": None if known else test.p_value < LEVEL or bool(columns),
            "p_value": None if known else test.p_value,
            "rows": test.rows,
            "learned_rows": self.learned,
            "left_out_rows": test.left_out,
            "low": test.low,
            "low_expected": test.rows * test.share,
            "columns": columns,
            "words": _of_learned(self.learned, test, columns) if known else _words(test, columns),
        }

    def _columns(self) -> list[dict[str, Any]]:
        parts = [rows for rows, _ in self.sample]
        rows = Source("", tuple(parts[0].names), iter([(part, 0) for part in parts])).read()
        share = LEVEL / max(len(self.table.used_), 1)  # Bonferroni
        moved = drifts(self.table, rows, self.absent, share, self.filler)
        return [{"column": d.column, "distance": d.distance, "words": d.words} for d in moved]


def _named(columns: list[dict[str, Any]]) -> str:
    return "; ".join(f"{column['column']} ({column['words']})" for column in columns[:NAMED])


def _of_learned(learned: int, test: RankTest, columns: list[dict[str, Any]]) -> str:
    """No verdict on ranks, because of rows that were learned from."""
    words = (
        f"Drift: unknown, since {learned:,} of these {test.rows:,} rows are among those "
        "that the model learned from, which rank as nothing new would. Score new rows alone."
    )
    return f"{words} Columns moved even so: {_named(columns)}." if columns else words


def _words(test: RankTest, columns: list[dict[str, Any]]) -> str:
    named = _named(columns)
    rows = "this row ranks" if test.rows == 1 else f"these {test.rows:,} rows rank"
    p = f"p = {test.p_value:.2g}" if test.p_value >= 1e-6 else "p < 1e-6"
    if test.p_value < LEVEL:
        words = (
            f"Drift: taken together, {rows} lower among {test.left_out:,} left-out rows than new "
            f"normal rows would ({p}); {test.low:,} are among the lowest {test.share:.1%}, where "
            f"about {test.rows * test.share:.0f} would be."
        )
        return f"{words} Moved most: {named}." if named else f"{words} No column moved by itself."
    words = f"taken together, {rows} among left-out rows as new normal rows would ({p})"
    if named:
        return f"Drift: columns moved: {named}. Yet {words}."
    return f"No drift found: {words}, and no column moved."

"""``kernull score --drift``: whether the rows, taken together, are still normal ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.cli._judging import Judged
from kernull.cli._models import Fitted
from kernull.detector.cautions import among_training_rows
from kernull.explain.drift import RankTest, drifts, rank_test
from kernull.explain.findings import without_suspects
from kernull.tables.table import Source, Table

#: Probability that chance alone makes ranks differ, and that it makes any column differ: of a
#: hundred batches that have not changed about one is said to have.
LEVEL = 0.01
#: Rows drawn to compare columns: shares of so many are known to 2%, whatever the table's size.
SAMPLE = 10_000
#: Rows that were learned from, and their share, from which ranks say nothing: nothing new ranks so.
LEARNED, LEARNED_SHARE = 3, 0.05
#: Columns that the line names.
NAMED = 3


class DriftCheck:
    """P-values of rows that come in chunks, and a sample of the rows for their columns."""

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted
        self.p_values: list[Array] = []
        self.learned = 0  # rows that the model learned from
        self.sample: list[tuple[Table, Array]] = []
        self.random = np.random.default_rng(0)

    def see(self, judged: Judged) -> None:
        """Take in some rows; those that are not judged, or flagged by rule, have no rank."""
        ranked = np.isfinite(judged.p_values) & ~judged.reading.by_rule
        if ranked.any():
            X, without = judged.reading.X[ranked], self.fitted.missing_views
            self.p_values.append(judged.p_values[ranked])
            self.learned += int(among_training_rows(self.fitted.model.bank_, X, without).sum())
        if self.fitted.table is None:
            return
        whole = np.ones(len(judged.rows), dtype=bool)
        whole[list(judged.rows.broken)] = False
        # The rows with the smallest of random keys are a uniform sample of all that came.
        self.sample.append((judged.rows.rows(whole), self.random.random(int(whole.sum()))))
        keys = np.concatenate([keys for _, keys in self.sample])
        if len(keys) > SAMPLE:
            last = np.partition(keys, SAMPLE - 1)[SAMPLE - 1]
            self.sample = [(rows.rows(k <= last), k[k <= last]) for rows, k in self.sample]

    def found(self) -> dict[str, Any]:
        """What is known of all rows, for JSON; ``words`` is the line."""
        columns = self._columns()
        if not self.p_values:
            moved = f" Columns moved: {_named(columns)}." if columns else ""
            more = {"columns": columns} if columns else {}
            words = f"Drift: no row was judged.{moved}"
            return {"drifted": True if columns else None, **more, "words": words}
        test = rank_test(np.concatenate(self.p_values), self.fitted.model.calibration_)
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
        table = self.fitted.table
        if table is None:
            return []
        parts = [rows for rows, _ in self.sample]
        rows = Source("", tuple(parts[0].names), iter([(part, 0) for part in parts])).read()
        share = LEVEL / max(len(table.used_), 1)  # Bonferroni
        filler = without_suspects(self.fitted.model, table).filler_
        moved = drifts(table, rows, self.fitted.absent, share, filler)
        return [{"column": d.column, "distance": d.distance, "words": d.words} for d in moved]


def _named(columns: list[dict[str, Any]]) -> str:
    return "; ".join(f"{column['column']} ({column['words']})" for column in columns[:NAMED])


def _of_learned(learned: int, test: RankTest, columns: list[dict[str, Any]]) -> str:
    """No verdict on ranks, because of rows that were learned from."""
    said = (
        f"Drift: cannot be told, since {learned:,} of these {test.rows:,} rows are among those "
        "that the model learned from, which rank as nothing new would. Score new rows alone."
    )
    return f"{said} Columns moved even so: {_named(columns)}." if columns else said


def _words(test: RankTest, columns: list[dict[str, Any]]) -> str:
    named = _named(columns)
    rows = "this row ranks" if test.rows == 1 else f"these {test.rows:,} rows rank"
    p = f"p = {test.p_value:.2g}" if test.p_value >= 1e-6 else "p < 1e-6"
    if test.p_value < LEVEL:
        said = (
            f"Drift: taken together, {rows} lower among {test.left_out:,} left-out rows than new "
            f"normal rows would ({p}); {test.low:,} are among the lowest {test.share:.1%}, where "
            f"about {test.rows * test.share:.0f} would be."
        )
        return f"{said} Moved most: {named}." if named else f"{said} No column moved by itself."
    said = f"taken together, {rows} among left-out rows as new normal rows would ({p})"
    if named:
        return f"Drift: columns moved: {named}. Yet {said}."
    return f"No drift found: {said}, and no column moved."

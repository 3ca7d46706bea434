"""Which rows ``kernull explain`` is about, and what it says of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernull.cli._errors import UsageError
from kernull.cli._judging import judge, notes_of, parts
from kernull.cli._models import Fitted
from kernull.tables.table import Table

__all__ = ["Explainer", "row_names"]

#: Rows that are explained where nothing else is said.
TOP = 5


def row_names(rows: Table, column: str | None) -> list[str]:
    """Names of rows: of a column, or their numbers."""
    if column is None:
        return [str(rows.start + i + 1) for i in range(len(rows))]
    return rows.text(column)


class Explainer:
    """Rows of a table that come in chunks; those that were asked for are explained.

    Parameters
    ----------
    fitted : Fitted
    wanted : sequence of str
        Rows by number, or by name where there is a column of names.
    names : str, optional
        Column that names the rows.
    flagged : bool
        Rows that are flagged, and no others.
    top : int, optional
        So many of the lowest scores.
    """

    def __init__(
        self,
        fitted: Fitted,
        wanted: Sequence[str],
        names: str | None,
        flagged: bool,
        top: int | None,
    ) -> None:
        self.fitted, self.names, self.flagged = fitted, names, flagged
        self.wanted = list(dict.fromkeys(wanted))
        if names is None:
            for text in self.wanted:
                if not text.isdecimal() or int(text) < 1:
                    raise UsageError(f"--row: got {text!r}; expected a number from 1.")
        self.top = top or (None if flagged or wanted else TOP)
        self.rows = 0
        self._found: list[tuple[float, dict[str, Any]]] = []

    def see(self, rows: Table) -> None:
        """Look at some rows."""
        names = row_names(rows, self.names)
        judged = judge(self.fitted, rows, reasons=False)
        order = np.argsort(judged.scores, kind="stable")
        if self.wanted:
            asked = set(self.wanted)
            order = np.array([i for i in range(len(rows)) if names[i] in asked], dtype=np.intp)
        if self.flagged:
            order = order[judged.flagged[order]]
        order = order[: self.top]
        self._found += self._explained(rows, names, order)
        if not self.wanted:
            self._found = sorted(self._found, key=lambda item: item[0])[: self.top]
        self.rows += len(rows)

    def found(self, label: str) -> list[dict[str, Any]]:
        """What there is to say; an error where rows that were asked for are not there."""
        records = [record for _, record in self._found]
        there = {record["name"] for record in records}
        lost = [text for text in self.wanted if text not in there]
        if lost and not self.flagged:
            had = f"has {self.rows} rows" if self.names is None else f"has no such {self.names}"
            raise UsageError(f"--row: got {lost[0]}; {label} {had}.")
        return records

    def _explained(
        self, rows: Table, names: list[str], order: Any
    ) -> list[tuple[float, dict[str, Any]]]:
        some = rows.rows(order)
        if len(some) == 0:
            return []
        reading = self.fitted.read(some)
        remarks = notes_of(self.fitted, some, reading, new_values=False)  # columns have them
        out: dict[int, tuple[float, dict[str, Any]]] = {}
        for index, missing in parts(self.fitted, reading):
            if missing is None:
                for i in index:
                    out[int(i)] = (-math.inf, _unjudged())
                continue
            why = self.fitted.model.explain(reading.X[index], missing_views=missing or None)
            columns = self._columns(some, reading, index, missing)
            for k, i in enumerate(index):
                score = float(why.scores[k])
                out[int(i)] = (score, {**_explained(why, k), "columns": columns[k]})
        found = []
        for k, i in enumerate(order.tolist()):
            score, record = out[k]
            place = {"row": rows.start + i + 1, "name": names[i], "remarks": remarks[k]}
            found.append((score, {**place, **record}))
        return found

    def _columns(self, rows: Table, reading: Any, index: Any, missing: list[str]) -> list[Any]:
        if self.fitted.table is None:
            return [[] for _ in index]
        from kernull.inspection import table_reasons

        found = table_reasons(
            self.fitted.model, self.fitted.table, reading, rows, index, missing_views=missing
        )
        return [[reason.record() for reason in reasons] for reasons in found]


def _unjudged() -> dict[str, Any]:
    nothing = {"score": math.nan, "p_value": math.nan, "flagged": True, "views": []}
    return {**nothing, "words": "flagged: too few cells to judge it.", "columns": []}


def _explained(why: Any, i: int) -> dict[str, Any]:
    views = [{k: v for k, v in line.items() if k != "row"} for line in why.table(i)]
    words = why.words(i)
    if len(why.view_names) == 1:  # which view it is says nothing then
        words = words.split("\n")[0]
    return {
        "score": float(why.scores[i]),
        "p_value": float(why.p_values[i]),
        "flagged": not why.scores[i] >= why.threshold,
        "views": views,
        "words": words.replace("\n", " "),
    }

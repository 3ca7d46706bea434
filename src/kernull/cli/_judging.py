"""Judging rows of a table, with gaps and missing views, and saying why they stand out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.cli._console import UsageError, note
from kernull.cli._models import Fitted
from kernull.tables.table import LISTED, Table

if TYPE_CHECKING:  # scikit-learn is slow to load, and --help needs none
    from kernull.tables import Reading


@dataclass(frozen=True)
class Judged:
    """Scores, p-values, flags, the most suspect view (None without contributions), and notes.

    ``extra`` has what only some models know, by column of the output; see `extra_names`;
    ``unreadable`` says where a cell or a line could not be read, for the first ten; ``learned``
    whether these are rows that the model learned from, in their order.
    """

    scores: Array
    p_values: Array
    flagged: Mask
    top_view: list[str] | None
    notes: list[str]
    extra: dict[str, Array]
    unreadable: list[str]
    learned: bool

    @property
    def unjudged(self) -> int:
        """Number of rows that were not judged."""
        return sum(said.startswith(UNJUDGED) for said in self.notes)


#: How the note on a row begins that was not judged.
UNJUDGED = "not judged"


def extra_names(fitted: Fitted) -> list[str]:
    """Columns that models which decide by evidence add: rarity, and evidence by view."""
    fit = getattr(fitted.model, "model_", None)
    if not getattr(fit, "decides_by_evidence", False):
        return []
    return ["rarity", *(f"evidence_{name}" for name in fitted.view_names)]


def _extra(fitted: Fitted, X: Array, missing: list[str] | None) -> dict[str, Array]:
    model = fitted.model
    there = [name for name in fitted.view_names if name not in (missing or ())]
    parts = model.evidence(X, by="view", missing_views=missing)
    by_view = {f"evidence_{name}": parts[:, v] for v, name in enumerate(there)}
    return {"rarity": model.rarity(X, missing_views=missing), **by_view}


def parts(fitted: Fitted, reading: Reading) -> Iterator[tuple[Indices, list[str] | None]]:
    """Groups of rows that lack the same views: positions, and the views; None where all lack."""
    lacking = fitted.left_out(reading)
    patterns, inverse = np.unique(lacking, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(inverse.ravel() == k)
        names = [name for name, gone in zip(fitted.view_names, pattern, strict=True) if gone]
        yield rows, (None if pattern.all() else names)


def judge(fitted: Fitted, rows: Table, reasons: bool) -> Judged:
    """Judge rows, with the most suspect view where asked for, evaluating the kernels once.

    A row of which every view is missing, or a cell cannot be read, is not judged: it is flagged,
    without a score.
    """
    reading = fitted.read(rows)
    n = len(reading.X)
    scores, p_values = np.full(n, np.nan), np.full(n, np.nan)
    flagged, top = np.ones(n, dtype=bool), [""] * n
    extra = {name: np.full(n, np.nan) for name in (extra_names(fitted) if reasons else ())}
    for index, missing in parts(fitted, reading):
        if missing is None:
            continue
        found = _judge(fitted.model, reading.X[index], missing or None, reasons)
        scores[index], p_values[index], flagged[index], names = found
        for i, name in zip(index, names, strict=True):
            top[i] = name
        if extra:
            for name, values in _extra(fitted, reading.X[index], missing or None).items():
                extra[name][index] = values
    for i in np.flatnonzero(reading.by_rule).tolist():  # values far away, which nobody measured
        top[i] = ""
        for values in extra.values():
            values[i] = np.nan
    said = notes_of(fitted, rows, reading)
    bad = [(i, c) for i, c in np.argwhere(reading.unreadable).tolist() if i not in rows.broken]
    told = [rows.tear(i) for i in rows.broken]
    told += [rows.complaint(fitted.columns[c], i) for i, c in bad[:LISTED]]
    best = top if reasons else None
    learned = not flagged.any() and fitted.learned_from(reading.X, rows.start)
    return Judged(scores, p_values, flagged, best, said, extra, told[:LISTED], learned)


def _judge(
    model: Any, X: Array, missing: list[str] | None, reasons: bool
) -> tuple[Array, Array, Mask, list[str]]:
    """Scores, p-values, flags and top views; a score that overflows is no number, and flagged."""
    top = [""] * len(X)
    if reasons:
        why = model.explain(X, missing_views=missing)
        first = np.argmin(why.surprise if why.rarity is None else -why.shares, axis=1)
        top = [why.view_names[v] for v in first]
        return why.scores, why.p_values, ~(why.scores >= why.threshold), top
    if missing is None:
        scores = model.score_samples(X)
        p_values = model.calibration_.p_values(scores)
        return scores, p_values, ~(scores >= model.threshold_), top
    scores, p_values, labels = (
        judge(X, missing_views=missing)
        for judge in (model.score_samples, model.p_values, model.predict)
    )
    return scores, p_values, labels == -1, top


def notes_of(fitted: Fitted, rows: Table, reading: Reading, reasons: bool = True) -> list[str]:
    """What was done to each row before it was judged, in words; empty for most.

    Without ``reasons``, new values and the rule that flags gaps are told elsewhere.
    """
    said: list[list[str]] = [[] for _ in range(len(reading.X))]
    columns = fitted.columns
    lacking = fitted.left_out(reading)
    views = fitted.view_names
    for i in np.flatnonzero(reading.missing.any(axis=1) | lacking.any(axis=1)):
        gone = [views[v] for v in np.flatnonzero(lacking[i])]
        if len(gone) == len(views):
            bad = [columns[c] for c in np.flatnonzero(reading.unreadable[i])]
            flaws = ", ".join(f"in {name}, {rows.flaw(name, int(i))}" for name in bad[:4])
            flaws = rows.tear(int(i)) if int(i) in rows.broken else flaws
            said[i].append(f"{UNJUDGED}: {flaws or 'too many empty cells'}")
            continue
        said[i] += [f"without view {name}" for name in gone]
        empty = [columns[c] for c in np.flatnonzero(reading.missing[i])]
        empty = [name for name in empty if name not in fitted.absent]
        if empty:
            shown = ", ".join(empty[:4]) + (f" and {len(empty) - 4} more" * (len(empty) > 4))
            said[i].append(f"empty: {shown}")
    for i in np.flatnonzero(reading.by_rule & ~lacking.all(axis=1)) if reasons else ():
        said[i].insert(0, "flagged by rule")
    for i in np.flatnonzero(reading.unseen.any(axis=1)) if reasons else ():
        for c in np.flatnonzero(reading.unseen[i]):
            said[i].append(f"new value in {columns[c]}: {str(rows.columns[columns[c]][int(i)])!r}")
    return ["; ".join(parts) for parts in said]


def tell_unreadable(judged: Judged, rows: Table, quiet: bool) -> None:
    """Say on stderr what could not be read: the first ten of some rows; notes have them all."""
    for said in judged.unreadable:
        note(f"{rows.source}: {said}; the row is not judged.", quiet)


def tell_training_rows(fitted: Fitted, rows: int, learned: bool) -> None:
    """Warn, as ``predict`` does, where none of some rows is flagged since all were learned from."""
    if learned and rows == fitted.model.bank_.n:
        from kernull.calibration import left_out_warnings

        left_out_warnings.tell_training_rows()


#: Rows that are explained where nothing else is said.
TOP = 5


def row_names(rows: Table, column: str | None) -> list[str]:
    """Names of rows: of a column, or their numbers."""
    if column is None:
        return [str(rows.start + i + 1) for i in range(len(rows))]
    return rows.text(column)


class Explainer:
    """Rows of a table that come in chunks; those that were asked for are explained.

    ``wanted`` are numbers, or names where there is a column of ``names``; ``flagged`` leaves out
    rows that are not flagged, ``top`` all but so many of the lowest scores.
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
        self.rows, self.learned = 0, True
        self._found: list[tuple[float, dict[str, Any]]] = []

    def see(self, rows: Table) -> Judged:
        """Look at some rows; what was found of them all."""
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
        self.learned &= judged.learned
        return judged

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
        remarks = notes_of(self.fitted, some, reading, reasons=False)  # columns have them
        out: dict[int, tuple[float, dict[str, Any]]] = {}
        for index, missing in parts(self.fitted, reading):
            if missing is None:
                for i in index.tolist():
                    out[i] = (-math.inf, {**_UNJUDGED, "words": f"flagged, {remarks[i]}."})
                    remarks[i] = ""
                continue
            why = self.fitted.model.explain(reading.X[index], missing_views=missing or None)
            why = why.flagged_by_rule(reading.by_rule[index])
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


_UNJUDGED: dict[str, Any] = {
    "score": math.nan, "p_value": math.nan, "flagged": True, "views": [],
    "columns": [],
}  # fmt: skip


def _explained(why: Any, i: int) -> dict[str, Any]:
    lines = [] if why.by_rule[i] else why.table(i)
    views = [{k: v for k, v in line.items() if k != "row"} for line in lines]
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

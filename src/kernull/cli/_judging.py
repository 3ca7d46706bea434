"""Judging rows of a table, with gaps and missing views, and saying why they stand out."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.cli._console import UsageError, note
from kernull.cli._models import Fitted
from kernull.tables.kinds import listed
from kernull.tables.table import LISTED, Table

if TYPE_CHECKING:  # scikit-learn is slow to load, and --help needs none
    from kernull.tables import Reading
    from kernull.tables.copies import Breach


@dataclass(frozen=True)
class Judged:
    """Rows as a model reads and judges them.

    A row of which every view lacks, or a cell cannot be read, is not judged: it is flagged, without
    a score.
    """

    fitted: Fitted
    rows: Table
    reading: Reading
    lacking: Mask  #: Views that are left out, of shape (rows, views).
    scores: Array
    p_values: Array
    flagged: Mask
    top_view: Array  #: The most suspect view, as text, where reasons were asked for.
    extra: dict[str, Array]  #: What only some models know, by column of the output.

    @cached_property
    def lost(self) -> Mask:
        """Rows that were not judged."""
        return np.asarray(self.lacking.all(axis=1))

    @property
    def learned(self) -> bool:
        """Whether the model learned from these rows, in their order, and so flags none."""
        from kernull.detector.cautions import are_training_rows

        kernels, X = self.fitted.model.bank_, self.reading.X
        return not self.flagged.any() and are_training_rows(kernels, X, self.rows.start)

    def parts(self, rows: Indices) -> Iterator[tuple[Indices, list[str]]]:
        """Those of some rows that are judged, in groups that lack the same views; and the views."""
        rows = rows[~self.lost[rows]]
        patterns, inverse = np.unique(self.lacking[rows], axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            names = zip(self.fitted.view_names, pattern, strict=True)
            yield rows[inverse.ravel() == k], [name for name, gone in names if gone]

    @cached_property
    def notes(self) -> list[str]:
        """What was done to each row before it was judged, in words; empty for most."""
        read = self.reading
        odd = (read.missing | read.unseen).any(axis=1) | self.lacking.any(axis=1) | read.by_rule
        odd[[b.row for b in read.breaches]] = True
        return [self.note(i) if told else "" for i, told in enumerate(odd.tolist())]

    def note(self, i: int, reasons: bool = True) -> str:
        """The note on one row; without ``reasons``, what flags it is told elsewhere."""
        reading, columns, said = self.reading, self.fitted.columns, []
        if self.lost[i]:
            said.append(f"not judged: {self._flaws(i) or 'too many empty cells'}")
        else:
            said += ["flagged by rule"] if reasons and reading.by_rule[i] else []
            views = np.flatnonzero(self.lacking[i])
            said += [f"without view {self.fitted.view_names[v]}" for v in views]
            empty = [columns[c] for c in np.flatnonzero(reading.missing[i])]
            empty = [name for name in empty if name not in self.fitted.absent]
            more = f" and {len(empty) - 4} more" * (len(empty) > 4)
            said += [f"empty: {', '.join(empty[:4])}{more}"] if empty else []
        new = [columns[c] for c in np.flatnonzero(reading.unseen[i])] if reasons else []
        said += [f"new value in {name}: {str(self.rows.columns[name][i])!r}" for name in new]
        broken = self._breaches.get(i, ()) if reasons else ()
        said += [f"{b.column} is {b.value} ({b.rule})" for b in broken]
        return "; ".join(said)

    @cached_property
    def _breaches(self) -> dict[int, list[Breach]]:
        found: dict[int, list[Breach]] = {}
        for breach in self.reading.breaches:
            found.setdefault(breach.row, []).append(breach)
        return found

    def _flaws(self, i: int) -> str:
        """Why a row could not be read; empty where it could."""
        if i in self.rows.broken:
            return self.rows.tear(i)
        bad = [self.fitted.columns[c] for c in np.flatnonzero(self.reading.unreadable[i])]
        return ", ".join(f"in {name}, {self.rows.flaw(name, i)}" for name in bad[:4])

    def tell_unreadable(self, quiet: bool) -> None:
        """Say on stderr what could not be read: the first ten; notes have them all."""
        rows, bad = self.rows, np.argwhere(self.reading.unreadable).tolist()
        told = [rows.tear(i) for i in rows.broken]
        told += [rows.complaint(self.fitted.columns[c], i) for i, c in bad if i not in rows.broken]
        for said in told[:LISTED]:
            note(f"{rows.source}: {said}; the row is not judged.", quiet)


def extra_names(fitted: Fitted) -> list[str]:
    """Columns that models which decide by evidence add: rarity, and evidence by view."""
    fit = getattr(fitted.model, "model_", None)
    if not getattr(fit, "decides_by_evidence", False):
        return []
    return ["rarity", *(f"evidence_{name}" for name in fitted.view_names)]


class Judging:
    """Judges the rows of a table, chunk by chunk, and tells what only all of them show."""

    def __init__(self, fitted: Fitted, quiet: bool) -> None:
        self.fitted, self.quiet = fitted, quiet
        self.rows, self.learned = 0, True
        self.idle: Sequence[str] = fitted.empty  # texts of --empty that no cell had so far
        self.filled = Counter[str]()  # numbers by column, of those that were empty in training

    def see(self, rows: Table, reasons: bool = False) -> Judged:
        """Judge some rows, with the most suspect view where asked for; say what is unreadable."""
        self.idle = rows.without(self.idle)
        judged = _judged(self.fitted, self.fitted.emptied(rows), reasons)
        judged.tell_unreadable(self.quiet)
        self.rows += len(rows)
        self.learned = self.learned and judged.learned
        found = (b for b in judged.reading.breaches if b.number and b.expected == "empty")
        self.filled.update(b.column for b in found)
        return judged

    def tell_at_end(self) -> None:
        """Warn of texts of ``--empty`` in no cell, and of rows that were learned from.

        None of these is flagged, which ``predict`` says as well. Columns that were always empty in
        training flag every row with a number there, alike: that is no finding of these rows.
        """
        for name, count in self.filled.items():
            rows = "1 row is" if count == 1 else f"{count:,} rows are"
            said = f"{rows} flagged for a number in {name!r}, which was always empty in training"
            note(f"{said}; to do without it, use --drop {name!r}.", self.quiet)
        if self.idle:
            said = listed(sorted(set(self.idle)))
            warnings.warn(f"--empty: no cell is {said}.", stacklevel=2)
        if self.learned and self.rows == self.fitted.model.bank_.n:
            from kernull.detector import cautions

            cautions.tell_training_rows()


def _judged(fitted: Fitted, rows: Table, reasons: bool) -> Judged:
    """Judge rows, evaluating the kernels once; a score that overflows is no number, and flagged."""
    reading, model = fitted.read(rows), fitted.model
    n = len(reading.X)
    scores, p_values = np.full(n, np.nan), np.full(n, np.nan)
    flags, top = np.ones(n, dtype=bool), np.full(n, "", dtype=object)
    extra = {name: np.full(n, np.nan) for name in extra_names(fitted)}
    lacking = fitted.left_out(reading)
    judged = Judged(fitted, rows, reading, lacking, scores, p_values, flags, top, extra)
    for index, missing in judged.parts(np.arange(n)):
        X, without = reading.X[index], missing or None
        if not reasons:
            found, fit = (
                model.score_samples(X, missing_views=without),
                model.model_.without(missing),
            )
            scores[index], p_values[index] = found, fit.calibration.p_values(found)
            flags[index] = ~(found >= fit.threshold)
            continue
        why = model.explain(X, missing_views=without)
        scores[index], p_values[index] = why.scores, why.p_values
        flags[index] = ~(why.scores >= why.threshold)
        first = np.argmin(why.surprise if why.rarity is None else -why.shares, axis=1)
        top[index] = [why.view_names[v] for v in first]
        if extra:
            extra["rarity"][index] = model.rarity(X, missing_views=without)
            evidence = model.evidence(X, by="view", missing_views=without)
            for name, values in zip(fitted.view_names, evidence.T, strict=True):
                extra[f"evidence_{name}"][index] = np.nan if name in missing else values
    top[reading.by_rule] = ""  # values far away, which nobody measured
    for values in extra.values():
        values[reading.by_rule] = np.nan
    return judged


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
        judging: Judging,
        wanted: Sequence[str],
        names: str | None,
        flagged: bool,
        top: int | None,
    ) -> None:
        self.judging, self.names, self.flagged = judging, names, flagged
        self.wanted = list(dict.fromkeys(wanted))
        if names is None:
            for text in self.wanted:
                if not text.isdecimal() or int(text) < 1:
                    raise UsageError(f"--row: got {text!r}; expected a number from 1.")
        self.top = top or (None if flagged or wanted else TOP)
        self._found: list[dict[str, Any]] = []

    def see(self, rows: Table) -> None:
        """Look at some rows."""
        judged = self.judging.see(rows)
        names = row_names(judged.rows, self.names)
        order = np.argsort(judged.scores, kind="stable")
        if self.wanted:
            asked = set(self.wanted)
            order = np.array([i for i in range(len(rows)) if names[i] in asked], dtype=np.intp)
        if self.flagged:
            order = order[judged.flagged[order]]
        order = order[: self.top]
        records = _records(judged, order) if len(order) else {}
        for i in order.tolist():
            place = {"row": rows.start + i + 1, "name": names[i]}
            self._found.append({**place, **records[i]})
        if not self.wanted:  # lowest scores first, and before them rows without
            scores = [record["score"] for record in self._found]
            lowest = np.argsort(np.nan_to_num(scores, nan=-np.inf), kind="stable")[: self.top]
            self._found = [self._found[k] for k in lowest]

    def found(self, label: str) -> list[dict[str, Any]]:
        """What there is to say; an error where rows that were asked for are not there."""
        there = {record["name"] for record in self._found}
        lost = [text for text in self.wanted if text not in there]
        if lost and not self.flagged:
            rows = self.judging.rows
            had = f"has {rows} rows" if self.names is None else f"has no such {self.names}"
            raise UsageError(f"--row: got {lost[0]}; {label} {had}.")
        return self._found


def _records(judged: Judged, order: Indices) -> dict[int, dict[str, Any]]:
    """What there is to say of some rows, by position."""
    model, reading = judged.fitted.model, judged.reading
    notes = {i: judged.note(i, reasons=False) for i in order.tolist()}  # columns have them
    none = {"score": math.nan, "p_value": math.nan, "flagged": True, "views": []}
    out: dict[int, dict[str, Any]] = {
        i: {"remarks": "", **none, "words": f"flagged, {said}.", "columns": []}
        for i, said in notes.items()
        if judged.lost[i]
    }
    for index, missing in judged.parts(order):
        why = model.explain(reading.X[index], missing_views=missing or None)
        why = why.flagged_by_rule(reading.by_rule[index])
        columns = _columns(judged, index, missing)
        for k, i in enumerate(index.tolist()):
            out[i] = {"remarks": notes[i], **_explained(why, k), "columns": columns[k]}
    return out


def _columns(judged: Judged, index: Indices, missing: list[str]) -> list[Any]:
    if judged.fitted.table is None:
        return [[] for _ in index]
    from kernull.explain import table_reasons

    how = (judged.fitted.model, judged.fitted.table, judged.reading, judged.rows)
    found = table_reasons(*how, index.tolist(), missing_views=missing)
    return [[reason.record() for reason in reasons] for reasons in found]


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

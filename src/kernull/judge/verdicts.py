"""Rows of a table, judged: what was done to each, its score, its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import MOST_TIMES
from kernull.detector.cautions import (
    among_training_rows,
    are_training_rows,
    warn_of_training_rows,
)
from kernull.estimators import Calibrated
from kernull.explain import Explanation, TableColumns
from kernull.explain.explanation import merged
from kernull.tables import Reading, Table

if TYPE_CHECKING:
    from kernull.judge.judge import Judge

#: Reasons by column that a row has in the columns of `Judge.judge`.
MOST_REASONS = 3
#: Rows that are not those learned from by chance, as fewer may be.
ALIKE = 20
#: What these columns have of each reason.
NUMBERED = ("reason", "value", "usual")


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Rows of a table as a `Judge` reads and judges them.

    A row of which all views lack, or a cell cannot be read, is not judged: it is flagged, without
    a score.

    Parameters
    ----------
    judge : Judge
    rows : Table
    reading : Reading
        The rows as ``judge.table_`` reads them.
    rate : float
        False-alarm rate.
    missing_views : tuple of str
        Views to do without in all rows.
    """

    judge: Judge
    rows: Table
    reading: Reading
    rate: float
    missing_views: tuple[str, ...] = ()

    @cached_property
    def lacking(self) -> Mask:
        """Views that are left out in each row, of shape (m, views).

        All, where a cell should be a number and is not, or a task is unknown: it cannot be judged.
        """
        names, n = self.judge.view_names, len(self.reading.X)
        out = np.zeros((n, max(len(names), 1)), dtype=bool)
        for v, view in enumerate(names):
            out[:, v] = view in self.missing_views
        out[self.reading.unreadable.any(axis=1)] = True
        if self.judge.task is not None:
            out[~np.isin(self.tasks, self.judge.tasks)] = True
        return out

    @cached_property
    def tasks(self) -> Any:
        """The task of each row; empty without a column of tasks."""
        column = self.judge.task
        return np.array([""] * len(self.rows) if column is None else self.rows.text(column))

    @cached_property
    def lost(self) -> Mask:
        """Rows that are not judged."""
        return np.asarray(self.lacking.all(axis=1))

    @property
    def parts(self) -> Iterator[tuple[Indices, str, list[str]]]:
        """Judged rows by task and views that they lack: positions, task, names of views."""
        names, judged = self.judge.view_names, np.flatnonzero(~self.lost)
        for task in np.unique(self.tasks[judged]):
            rows = judged[self.tasks[judged] == task]
            patterns, inverse = np.unique(self.lacking[rows], axis=0, return_inverse=True)
            for k, pattern in enumerate(patterns):
                missing = [name for name, gone in zip(names, pattern, strict=False) if gone]
                yield rows[inverse.ravel() == k], str(task), missing

    @cached_property
    def why(self) -> Explanation:
        """The rows, explained."""
        table, reading, parts, whole = self.judge.table_, self.reading, [], None
        first = self.judge.tasks[0] if self.judge.tasks else ""
        for index, task, missing in self.parts:
            why, score = self._explained(reading.X[index], task, missing)
            whole = why if task == first and not missing else whole
            usual = self.judge.usual_values(task)
            if usual is not None:  # of more than 400 columns there is none, and reasons are by view
                columns = TableColumns.of(table, usual, self.rows, reading)
                why = replace(why, columns_of=partial(columns.reasons, score, why.threshold, index))
            parts.append((index, why))
        if whole is None:  # any row: the table may have none
            whole = self._explained(np.zeros((1, reading.X.shape[1])), first, [])[0]
        return replace(merged(whole, parts, len(self.rows)), remarks=self.notes)

    def check_unseen(self) -> None:
        """Warn where these are rows that were learned from, in their order: none is flagged."""
        kernels = self.judge.kernel_set
        if kernels is None or self.why.flagged.any() or len(self.rows) < min(ALIKE, kernels.n):
            return
        if are_training_rows(kernels, self.reading.X, self.rows.start):
            warn_of_training_rows(stacklevel=4)

    def _explained(self, X: Array, task: str, missing: Sequence[str]) -> tuple[Explanation, Any]:
        """Rows as ``table_`` gives them, explained; and what scores others like them."""
        model = self.judge.at_rate(self.rate).model_
        if isinstance(model, Calibrated):
            return _by_score(model, X), model.score_samples
        model = model if self.judge.task is None else model.task(task)
        options = {"missing_views": missing or None}
        return model.explain(X, **options), partial(model.score_samples, **options)

    @cached_property
    def notes(self) -> list[str]:
        """What was done to each row before it was judged, in words; empty for most."""
        read = self.reading
        odd = np.hstack([read.missing, read.unseen, self.lacking]).max(axis=1)
        return [self.note(i) if noted else "" for i, noted in enumerate(odd)]

    def note(self, i: int, reasons: bool = True) -> str:
        """The note on one row; without ``reasons``, those by column have what flags it."""
        reading, used, parts = self.reading, self.judge.table_.looked_at_, []
        if self.lost[i]:
            parts.append(f"not judged: {self._flaws(i) or 'too many empty cells'}")
        else:
            views = np.flatnonzero(self.lacking[i])
            parts += [f"without view {self.judge.view_names[v]}" for v in views]
            empty = [used[c] for c in np.flatnonzero(reading.missing[i])]
            more = f" and {len(empty) - 4} more" * (len(empty) > 4)
            parts += [f"empty: {', '.join(empty[:4])}{more}"] if empty else []
        new = [used[c] for c in np.flatnonzero(reading.unseen[i])] if reasons else []
        parts += [f"new value in {name}: {str(self.rows.columns[name][i])!r}" for name in new]
        return "; ".join(parts)

    def _flaws(self, i: int) -> str:
        """Why a row cannot be judged; empty where too little of it is there."""
        if i in self.rows.broken:
            return self.rows.tear(i)
        if self.judge.task is not None and self.tasks[i] not in self.judge.tasks:
            return f"no rows of {self.judge.task} {str(self.tasks[i])!r} were learned from"
        used = self.judge.table_.looked_at_
        bad = [used[c] for c in np.flatnonzero(self.reading.unreadable[i])]
        return ", ".join(f"in {name}, {self.rows.flaw(name, i)}" for name in bad[:4])

    def ranks(self) -> tuple[Array, int]:
        """P-values of rows that are judged by their values, and how many were learned from."""
        ranked = np.isfinite(self.why.p_values)
        learned, kernels = 0, self.judge.kernel_set
        if kernels is not None and ranked.any():
            X = self.reading.X[ranked]
            learned = int(among_training_rows(kernels, X, self.missing_views).sum())
        return self.why.p_values[ranked], learned

    def columns_of_output(self) -> dict[str, Any]:
        """The columns of `Judge.judge`."""
        why, judge = self.why, self.judge
        flagged = np.flatnonzero(why.flagged & ~self.lost).tolist()
        reasons = dict(
            zip(flagged, why.columns_of(flagged) if why.columns_of else (), strict=False)
        )
        hidden = self.lost
        n = range(len(why))
        out: dict[str, Any] = {"score": why.scores, "p": why.p_values, "flag": why.flagged}
        if why.rarity is not None:
            out["rarity"] = np.where(hidden, np.nan, why.rarity)
            gone = self.lacking | hidden[:, None]
            evidence = np.sqrt(np.maximum(-why.by_view, 0.0))
            for v, name in enumerate(why.view_names):
                out[f"evidence_{name}"] = np.where(gone[:, v], np.nan, evidence[:, v])
        out["view"] = why.top_views
        out["reasons"] = [" ".join(r.words for r in reasons.get(i, ())) for i in n]
        for k in range(MOST_REASONS):
            kth = {i: of_row[k] for i, of_row in reasons.items() if len(of_row) > k}
            texts = {i: (r.column, r.value, r.usual) for i, r in kth.items()}
            for place, what in enumerate(NUMBERED):
                out[f"{what}_{k + 1}"] = [texts[i][place] if i in texts else "" for i in n]
        out["remarks"] = self.notes
        if judge.id is not None:
            known = judge.id in self.rows.columns
            out[judge.id] = self.rows.text(judge.id) if known else [""] * len(why)
        return {name: out[name] for name in judge.output_names}


def _by_score(model: Calibrated, X: Array) -> Explanation:
    """Rows explained by a detector that knows no views."""
    calibration = model.calibration_
    scores = model.score_samples(X) if len(X) else np.zeros(0)
    rarity = calibration.rarity(scores)
    return Explanation(
        contributions=np.zeros((len(X), 0)), typical=np.zeros(0),
        reference=np.zeros((round(calibration.total), 0)), kernel_names=(), kernel_views=(),
        scores=scores, p_values=calibration.p_values(scores),
        threshold=model.threshold_, rarity=rarity,
        extrapolated=scores < calibration.scores[0],
        beyond_all=rarity >= MOST_TIMES * calibration.total, together=np.zeros(len(X), dtype=bool),
    )  # fmt: skip

"""What a report shows, gathered from the rows that a `Judge` judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from kernull._typing import Array, Mask
from kernull.explain import ColumnReason
from kernull.explain.drift import drifts
from kernull.explain.evaluation import checked_labels, evaluation
from kernull.report._groups import groups_of, time_line
from kernull.report._model_card import model_card
from kernull.tables.cells import as_text

#: Bins of the histogram of scores, and rates of the calibration table.
BINS = 32
RATES = (0.01, 0.02, 0.05, 0.1, 0.2)
#: Points of a curve that are drawn; more look the same.
CURVE_POINTS = 120
#: Scores that may be evaluated for reasons by column; rows beyond have none.
MAX_SCORES = 40_000
#: Share of flagged rows from which on rows are of another kind, and columns that are then named.
NEARLY_ALL, DIFFERING = 0.5, 3


@dataclass(frozen=True)
class Row:
    """One flagged row."""

    position: int
    name: str
    score: float
    p_value: float
    label: str | None
    views: list[tuple[str, str]]  #: Views, each with its words.
    columns: list[ColumnReason]
    remarks: str
    rare: str  #: How unusual it is in words, of models that know.
    cells: list[tuple[str, str]]  #: The whole row, by column.


def gather(
    verdicts: Any, y: Any = None, row_names: Sequence[str] | None = None, max_rows: int = 500
) -> SimpleNamespace:
    """Collect what a report shows of rows and, by `model_card`, of the model."""
    judge, rows, why = verdicts.judge, verdicts.rows, verdicts.why
    names = _names(verdicts, row_names)
    labels = None if y is None else checked_labels(y, len(rows))
    scores, flagged, p_values = why.scores, why.flagged, why.p_values
    judged = np.isfinite(scores)
    order = np.argsort(scores, kind="stable")  # rows without a score come last
    order = order[flagged[order]][:max_rows]
    with_columns = order[: max(5, MAX_SCORES // (2 * len(judge.table_.used_)))].tolist()
    columns = dict(zip(with_columns, why.columns_of_rows(with_columns), strict=True))
    ranked = np.sort(p_values[judged])
    levels = np.unique(ranked)
    shares = np.searchsorted(ranked, levels, side="right") / max(len(ranked), 1)
    of_judged = None if labels is None else labels[judged]
    edges, series, outline = _distribution(verdicts, scores[judged], flagged[judged], of_judged)
    shown = [_row(verdicts, i, names[i], labels, columns.get(i, [])) for i in order.tolist()]
    filler = judge.usual_values() if len(judge.suspects) else None
    counted = {} if judge.tasks else {"calibration": judge.model_.calibration_}
    return SimpleNamespace(
        **model_card(verdicts),
        n_rows=len(rows),
        n_flagged=int(flagged.sum()),
        edges=edges,
        series=series,
        outline=outline,
        rows=tuple(shown),
        p_curve=_curve(levels, shares),
        rates=_rates(judge.model_, p_values[judged], verdicts.rate),
        labels=None if labels is None else _labelled(labels, scores, flagged),
        alarms=_alarms(shown),
        date=str(np.datetime64("today")),
        groups=groups_of(judge.table_, rows, flagged),
        times=time_line(judge.table_, rows, flagged),
        drifts=drifts(judge.table_, rows, verdicts.reading.absent, filler=filler, **counted),
    )


def _names(verdicts: Any, row_names: Sequence[str] | None) -> list[str]:
    """Names of the rows: ``row_names``, those of the judge's column, or their numbers from 1."""
    n, rows, column = len(verdicts.rows), verdicts.rows, verdicts.judge.id
    if row_names is None and column in rows.columns:
        row_names = rows.text(column)
    names = list(map(str, range(1, n + 1) if row_names is None else row_names))
    if len(names) != n:
        raise ValueError(f"row_names: got {len(names)} names for {n} rows.")
    return names


def _row(
    verdicts: Any, i: int, name: str, labels: Array | None, columns: list[ColumnReason]
) -> Row:
    why = verdicts.why
    judged = bool(np.isfinite(why.scores[i]))
    cells = [
        (column, as_text([values[i]])[0] or "") for column, values in verdicts.rows.columns.items()
    ]
    return Row(
        i + 1,
        name,
        float(why.scores[i]),
        float(why.p_values[i]),
        None if labels is None else ("normal" if labels[i] == 1 else "not normal"),
        why.reasons([i])[0] if judged else [],
        columns,
        verdicts.notes[i],
        why.how_rare(i) if judged else "",
        cells,
    )


def _alarms(rows: Sequence[Row]) -> tuple[tuple[str, str, int], ...]:
    """Views and columns by the number of flagged rows that they are the first reason of."""
    out = []
    for kind, firsts in (
        ("view", Counter(row.views[0][0] for row in rows if row.views)),
        ("column", Counter(row.columns[0].column for row in rows if row.columns)),
    ):
        out += [(kind, name, count) for name, count in firsts.most_common()]
    return tuple(out)


def _distribution(
    verdicts: Any, scores: Array, flagged: Mask, labels: Array | None
) -> tuple[Any, Any, Any]:
    """Shares by bin; the threshold is an edge, so that each bin is flagged or is not."""
    model = verdicts.judge.at_rate(verdicts.rate).model_
    calibration, threshold = model.calibration_.scores, float(model.threshold_)
    low = float(min(scores.min(initial=threshold), calibration.min()))
    high = float(max(scores.max(initial=threshold), calibration.max()))
    pad = 0.02 * (high - low or 1.0)
    low, high = low - pad, high + pad
    below = max(1, min(BINS - 1, round(BINS * (threshold - low) / (high - low))))
    edges = np.concatenate(
        [np.linspace(low, threshold, below + 1), np.linspace(threshold, high, BINS - below + 1)[1:]]
    )

    def shares(values: Array, total: int) -> tuple[float, ...]:
        # Bins have their lower edge: a score equal to the threshold is not flagged.
        return tuple((np.histogram(values, edges)[0] / max(total, 1)).tolist())

    m = len(scores)
    odd = flagged if labels is None else labels == -1
    names = ("flagged", "not flagged")
    names = names if labels is None else ("labelled not normal", "labelled normal")
    series = (
        (names[0], "odd", shares(scores[odd], m)), (names[1], "normal", shares(scores[~odd], m))
    )  # fmt: skip
    return tuple(edges.tolist()), series, shares(calibration, len(calibration))


def _curve(xs: Array, ys: Array) -> tuple[tuple[float, float], ...]:
    """A curve thinned to what can be seen, from (0, 0) to (1, 1)."""
    if len(xs) > CURVE_POINTS:
        pick = np.unique(np.linspace(0, len(xs) - 1, CURVE_POINTS).astype(int))
        xs, ys = xs[pick], ys[pick]
    points = list(zip(map(float, xs), map(float, ys), strict=True))
    start = [] if points and points[0] == (0.0, 0.0) else [(0.0, 0.0)]
    end = [] if points and points[-1] == (1.0, 1.0) else [(1.0, 1.0)]
    return (*start, *points, *end)


def _rates(model: Any, p_values: Array, rate: float) -> tuple[tuple[float, float, float], ...]:
    """Rate, threshold and share of the judged rows that it flags."""
    lowest = 1.0 / (model.calibration_.total + 1.0)
    return tuple(
        (r, model.calibration_.threshold(r)[0], float((p_values <= r).mean()))
        for r in sorted({*RATES, float(rate)})
        if r >= lowest and len(p_values)
    )


def _labelled(labels: Array, scores: Array, flagged: Mask) -> dict[str, Any] | None:
    """AUC, ROC curve and the four counts, those of `Judge.evaluate`."""
    odd = labels == -1
    if odd.all() or not odd.any():
        return None
    ranked = np.nan_to_num(-scores, nan=np.finfo(float).max)
    false_alarms, caught, _ = roc_curve(odd, ranked)
    return {**evaluation(scores, labels, flagged), "roc": _curve(false_alarms, caught)}

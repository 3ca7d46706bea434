"""What a report says, gathered from a fitted model and the rows it judges."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from kernull._containers import row_names as index_of
from kernull._typing import Array, Mask
from kernull.detector.explanation import Explanation
from kernull.explain import TableReason
from kernull.explain.drift import Drift, drifts
from kernull.explain.findings import split_pipeline, without_suspects
from kernull.report._findings import Group, TimeLine, groups_of, reasons_of, time_line
from kernull.report._model_card import ModelCard, names_of_columns
from kernull.tables import TableViews, as_table

#: Bins of the histogram of scores, and rates of the calibration table.
BINS = 32
RATES = (0.01, 0.02, 0.05, 0.1, 0.2)
#: Points of a curve that are drawn; more cannot be told apart.
CURVE_POINTS = 120


@dataclass(frozen=True)
class Row:
    """One judged row."""

    position: int
    name: str
    score: float
    p_value: float
    label: str | None
    reasons: list[tuple[str, str]]  #: Views, each with what it says.
    columns: tuple[TableReason, ...] = ()
    remarks: str = ""
    rare: str = ""  #: How unusual it is in words, of models that know.


@dataclass(frozen=True)
class Judgement:
    """Scores and flags of rows that were judged elsewhere, with views left out where cells lack.

    A score of NaN is a row that could not be judged.

    Parameters
    ----------
    scores, p_values : array of shape (m,)
    flagged : boolean array of shape (m,)
    remarks : sequence of str
        What was done about gaps, by row.
    absent : sequence of str
        Columns that the rows need not have.
    """

    scores: Array
    p_values: Array
    flagged: Mask
    remarks: Sequence[str]
    absent: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Content(ModelCard):
    """Everything the template shows, and nothing that needs the model again."""

    n_rows: int
    n_flagged: int
    edges: tuple[float, ...]
    series: tuple[tuple[str, str, tuple[float, ...]], ...]
    outline: tuple[float, ...]
    rows: tuple[Row, ...]
    p_curve: tuple[tuple[float, float], ...]
    rates: tuple[tuple[float, float, float], ...]
    labels: dict[str, Any] | None
    reads_table: bool
    groups: tuple[Group, ...] = ()
    times: TimeLine | None = None
    drifts: tuple[Drift, ...] = ()


def gather(
    model: Any,
    X: Any,
    y: Any = None,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    max_rows: int = 500,
    table: TableViews | None = None,
    judgement: Judgement | None = None,
) -> Content:
    """Judge rows and collect what a report says about them; see `render_report`."""
    model, table = split_pipeline(model, table)
    rows = None if table is None else as_table(X)
    absent = () if judgement is None else judgement.absent
    strict = judgement is None  # else rows with unreadable cells were not judged
    reading = None if table is None or rows is None else table.read(rows, absent, strict)
    numbers = np.asarray(X if reading is None else reading.X, dtype=float)
    names, labels = _names(X, row_names, len(numbers)), _labels(y, len(numbers))
    if judgement is None:
        named = table is None and hasattr(X, "columns")  # names are compared with the model's
        judgement = _judged(model, X if named else numbers)
    scores, flagged = judgement.scores, judgement.flagged
    labelled = names_of_columns(model, column_names)
    if hasattr(model, "feature_names_in_"):  # rows have no names from here on
        model = copy(model)
        del model.feature_names_in_
    judged = np.isfinite(scores)
    order = np.argsort(scores, kind="stable")  # rows without a score come last
    order = order[flagged[order]][:max_rows]
    shown = order[judged[order]]
    why = model.explain(numbers[shown]) if can_explain(model) and len(shown) else None
    if why is not None and reading is not None:
        why = why.flagged_by_rule(reading.by_rule[shown])
    columns = reasons_of(model, numbers, shown, flagged, labelled, table, reading, rows)
    some = labels[judged] if labels is not None else None
    edges, series, outline = _distribution(model, scores[judged], flagged[judged], some)
    p_values = judgement.p_values[judged]
    levels = np.unique(p_values)
    shares = np.searchsorted(np.sort(p_values), levels, side="right") / len(p_values)
    findings: dict[str, Any] = {}
    if table is not None and rows is not None:
        findings = {
            "groups": groups_of(table, rows, flagged),
            "times": time_line(table, rows, flagged),
            "drifts": drifts(table, rows, absent, filler=without_suspects(model, table).filler_),
        }
    return Content(
        **vars(ModelCard.of(model, why, labelled)),
        n_rows=len(numbers),
        n_flagged=int(flagged.sum()),
        edges=edges,
        series=series,
        outline=outline,
        rows=_rows(order, names, judgement, labels, why, columns),
        p_curve=_curve(levels, shares),
        rates=_rates(model, p_values),
        labels=None if some is None else _labelled(some, scores[judged], flagged[judged]),
        reads_table=table is not None,
        **findings,
    )


def _names(X: Any, given: Sequence[str] | None, n: int) -> list[str]:
    """Names of n rows: those given, those of a data frame's index, or their numbers from 1."""
    index = index_of(X) if given is None else given
    names = list(map(str, range(1, n + 1) if index is None else index))
    if len(names) != n:
        raise ValueError(f"row_names: got {len(names)} names for {n} rows.")
    return names


def _labels(y: Any, n: int) -> Array | None:
    labels = None if y is None else np.asarray(y)
    if labels is not None and (len(labels) != n or not np.isin(labels, (-1, 1)).all()):
        raise ValueError("y: expected one label per row, +1 (normal) or -1.")
    return labels


def _judged(model: Any, X: Any) -> Judgement:
    scores = np.asarray(model.score_samples(X))
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ValueError(f"X: the values of row {row + 1} are so large that its score overflows.")
    p_values = np.asarray(model.calibration_.p_values(scores))
    return Judgement(scores, p_values, scores < model.threshold_, [""] * len(scores))


def can_explain(model: Any) -> bool:
    """Whether a model's scores can be taken apart by view.

    Parameters
    ----------
    model : fitted estimator
    """
    # Asked of the model, which knows it: what is usual may take a factorisation to compute.
    return bool(getattr(getattr(model, "model_", None), "can_explain", False))


def _distribution(
    model: Any, scores: Array, flagged: Mask, labels: Array | None
) -> tuple[Any, Any, Any]:
    """Shares by bin; the threshold is an edge, so that each bin is flagged or is not."""
    calibration = model.calibration_.scores
    low = float(min(scores.min(), calibration.min(), model.threshold_))
    high = float(max(scores.max(), calibration.max(), model.threshold_))
    pad = 0.02 * (high - low or 1.0)
    low, high, threshold = low - pad, high + pad, float(model.threshold_)
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


def _rows(
    order: Any,
    names: Sequence[str],
    judgement: Judgement,
    labels: Array | None,
    why: Explanation | None,
    columns: dict[int, list[TableReason]],
) -> tuple[Row, ...]:
    reasons: list[list[tuple[str, str]]] = [[] for _ in order]
    rare = [""] * len(order)
    if why is not None:
        for k, views in enumerate(why.reasons()):  # of rows that are judged, which come first
            told = why.by_rule is not None and why.by_rule[k] and judgement.remarks[order[k]]
            reasons[k], rare[k] = views, "" if told else why.how_rare(k)
    rows = []
    for k, i in enumerate(order.tolist()):
        score, p_value = float(judgement.scores[i]), float(judgement.p_values[i])
        label = None if labels is None else ("normal" if labels[i] == 1 else "not normal")
        rows.append(
            Row(
                i + 1, names[i], score, p_value, label, reasons[k], tuple(columns.get(i, ())),
                judgement.remarks[i], rare[k],
            )
        )  # fmt: skip
    return tuple(rows)


def _curve(xs: Array, ys: Array) -> tuple[tuple[float, float], ...]:
    """A curve thinned to what can be seen, from (0, 0) to (1, 1)."""
    if len(xs) > CURVE_POINTS:
        pick = np.unique(np.linspace(0, len(xs) - 1, CURVE_POINTS).astype(int))
        xs, ys = xs[pick], ys[pick]
    points = list(zip(map(float, xs), map(float, ys), strict=True))
    start = [] if points and points[0] == (0.0, 0.0) else [(0.0, 0.0)]
    end = [] if points and points[-1] == (1.0, 1.0) else [(1.0, 1.0)]
    return (*start, *points, *end)


def _rates(model: Any, p_values: Array) -> tuple[tuple[float, float, float], ...]:
    """Nominal rate, threshold and share of the judged rows that it flags."""
    lowest = 1.0 / (model.calibration_.total + 1.0)
    rates = sorted({*RATES, float(model.false_alarm_rate_)})
    return tuple(
        (rate, model.calibration_.threshold(rate)[0], float((p_values <= rate).mean()))
        for rate in rates
        if rate >= lowest
    )


def _labelled(labels: Array, scores: Array, flagged: Mask) -> dict[str, Any] | None:
    """What labels add: AUC, ROC curve and the four counts."""
    odd = labels == -1
    if odd.all() or not odd.any():
        return None
    # Positive is "not normal", as an alarm is: false alarms against caught.
    false_alarms, caught, _ = roc_curve(odd, -scores)
    return {
        "auc": float(roc_auc_score(labels, scores)),
        "roc": _curve(false_alarms, caught),
        "n_normal": int((~odd).sum()),
        "n_odd": int(odd.sum()),
        "caught": int((odd & flagged).sum()),
        "missed": int((odd & ~flagged).sum()),
        "false_alarms": int((~odd & flagged).sum()),
        "passed": int((~odd & ~flagged).sum()),
    }

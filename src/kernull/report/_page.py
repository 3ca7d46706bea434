"""The report as one HTML file: it needs no network and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from kernull._text import visible
from kernull._version import __version__
from kernull.errors import MissingCapabilityError
from kernull.explain import ColumnReason
from kernull.report._content import DIFFERING, NEARLY_ALL, gather
from kernull.report._svg import Line, bar_chart, histogram, mini_chart, square_chart, time_chart

#: Bars of the chart of weights; the table has all.
MAX_BARS = 20
#: Bars of the charts of views and columns that raise most alarms.
MAX_ALARMS = 8


def render_report(
    verdicts: Any,
    y: Any = None,
    *,
    title: str = "kernull report",
    subtitle: str = "",
    row_names: Sequence[str] | None = None,
    model_path: str = "model.kernull",
    max_rows: int = 500,
) -> str:
    """A report on rows of a table and the model that judged them: HTML that needs no other file.

    Parameters
    ----------
    verdicts : Verdicts
        Judged rows, `Judge.verdicts` of a table.
    y : array of shape (m,), optional
        Labels, +1 for normal rows and -1 for others; they add a ROC curve and counts.
    title, subtitle : str
        Heading of the page, and a line below it.
    row_names : sequence of str, optional
        Names of the rows; by default those of the judge's ``id``, else their numbers from 1.
    model_path : str
        Path to show in the lines on how to load the model.
    max_rows : int
        Flagged rows to list, those with the lowest scores.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernull import Judge
    >>> wine = load_wine(as_frame=True)
    >>> judge = Judge().fit(wine.data[wine.target == 0])
    >>> page = render_report(judge.verdicts(wine.data), title="Wine")
    >>> "<h1>Wine</h1>" in page
    True
    """
    if verdicts.judge.task is not None:
        raise MissingCapabilityError(
            "task: a report is about one task; take its rows, and judge.of_task(name)."
        )
    content = gather(verdicts, y, row_names, max_rows)
    environment = Environment(
        autoescape=True, loader=FunctionLoader(_asset), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"thousands": "{:,}".format, "pyrepr": repr}
    page = environment.get_template("report.html.jinja").render(
        c=content, title=title, subtitle=subtitle, model_path=model_path,
        charts=_charts(content), sections=_sections(content), version=__version__,
        max_bars=MAX_BARS, nearly_all=NEARLY_ALL, differing=DIFFERING,
        gauge=gauge, style=Markup(_asset("style.css")), script=Markup(_asset("script.js")),
    )  # fmt: skip
    # Markup in names is escaped by Jinja; here what would turn text around, or act in a terminal.
    return visible(page, keep="\n\t")


def _asset(name: str) -> str:
    return (files("kernull.report") / "assets" / name).read_text(encoding="utf-8")


def _sections(content: SimpleNamespace) -> list[tuple[str, str]]:
    sections = [("findings", "Findings")]
    if content.n_flagged:
        sections.append(("rows-title", "Flagged rows"))
    if content.times or content.groups:
        sections.append(("where", "When and where"))
    if content.drifts:
        sections.append(("drift", "Drift"))
    sections.append(("calibration", "Calibration"))
    if content.labels:
        sections.append(("roc", "Labels"))
    return [*sections, ("learned", "What was learned"), ("model", "The model")]


def gauge(reason: ColumnReason) -> tuple[float, float, float] | None:
    """Where the usual range begins and ends and the value lies, in percent of a bar."""
    if reason.low is None or reason.high is None or reason.number is None:
        return None
    low, high = min(reason.low, reason.number), max(reason.high, reason.number)
    span = high - low or 1.0
    low, span = low - 0.06 * span, 1.12 * span
    ends = (reason.low, reason.high, reason.number)
    start, end, at = (100.0 * (value - low) / span for value in ends)
    return start, max(end - start, 1.0), at


def _charts(content: SimpleNamespace) -> dict[str, Any]:
    charts: dict[str, Any] = {}
    if content.views:
        largest = sorted(content.views, key=lambda view: -view[1])[:MAX_BARS]
        listed = ", ".join(f"{name} {weight:.3g}" for name, weight in largest[:8])
        charts["weights"] = bar_chart(
            "Share of each view in the decision" if content.by_evidence else "Weights by view",
            f"Bar chart, largest first: {listed}.",
            [name for name, _ in largest],
            [weight for _, weight in largest],
            "share" if content.by_evidence else "weight",
        )
    charts["alarms"] = _alarm_charts(content)
    if content.times is not None:
        times, title = content.times, f"Flagged rows by {content.times.column}"
        text = f"{content.n_flagged} flagged rows from {times.labels[0]} on."
        shown = (times.labels, times.rows, times.flagged)
        charts["times"] = time_chart(title, text, *shown, content.rate)
    for drift in content.drifts:
        title, shares = f"{drift.column} in training and new rows", (drift.training, drift.new)
        charts[f"drift {drift.column}"] = mini_chart(title, drift.words, drift.edges, *shares)
    flagged = content.n_flagged / content.n_rows
    charts["scores"] = histogram(
        "Distribution of scores",
        f"Histogram of the scores of {content.n_rows} rows with the threshold at "
        f"{content.threshold:.3g}; {100 * flagged:.3g}% lie below it.",
        content.edges,
        content.series,
        content.outline,
        content.threshold,
        "score (higher is more normal)",
    )
    at_rate = next((share for rate, _, share in content.rates if rate == content.rate), flagged)
    charts["p_values"] = _square(
        "Share of rows by p-value",
        f"{100 * at_rate:.3g}% of the rows have a p-value of at most {content.rate:.3g}.",
        "judged rows",
        content.p_curve,
        "p-value up to",
        "{y:.1%} of the rows have p up to {x:.3g}",
    )
    if content.labels:
        charts["roc"] = _square(
            "ROC curve",
            f"Rows caught against false alarms; area under the curve {content.labels['auc']:.3f}.",
            "rows caught",
            content.labels["roc"],
            "false alarms",
            "{y:.1%} caught at {x:.1%} false alarms",
        )
    return charts


def _alarm_charts(content: SimpleNamespace) -> list[tuple[str, Markup]]:
    """For views and for columns, how many listed rows have each as their first reason."""
    charts = []
    for kind in ("view", "column"):
        counts = [(name, count) for k, name, count in content.alarms if k == kind][:MAX_ALARMS]
        if len(counts) > 1:
            text = ", ".join(f"{name} {count}" for name, count in counts)
            names, values = zip(*counts, strict=True)
            title = f"Flagged rows by first {kind}"
            charts.append((kind, bar_chart(title, f"Bar chart: {text}.", names, values, "rows")))
    return charts


def _square(
    title: str,
    description: str,
    name: str,
    points: Sequence[tuple[float, float]],
    x_label: str,
    tip: str,
) -> Markup:
    lines = [
        Line("chance", "soft", [(0.0, 0.0), (1.0, 1.0)]),
        Line(name, "normal", points, [tip.format(x=x, y=y) for x, y in points]),
    ]
    return square_chart(title, description, lines, x_label)

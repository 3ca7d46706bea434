"""The demo, ``make demo``: one story, which needs no file and no network.

    python examples/demo.py [FOLDER]

A production line has 400 parts that were found good and 300 new ones (``examples/line.py`` writes
the same tables): which stand out, how rare are they, and which column says so? Then the same model
and what people would pick instead on data that ship with scikit-learn, a picture of one part, and a
report. Tables, model, picture and report go into FOLDER (``demo``).
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table as Grid
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from kernull import Explanation, Judge, MultiKernelFisherNull, join_views, read_table
from kernull.datasets import (
    load_breast_cancer_views,
    load_digits_views,
    load_wine_views,
    make_line,
)
from kernull.detector.calibration import MOST_TIMES
from kernull.explain import ColumnReason
from kernull.explain.columns import plain_number
from kernull.explain.explanation import one_in
from kernull.tables import Table

OUT = Path("demo")
#: Share of normal rows that everyone is asked to flag.
RATE = 0.05

# -- the line ----------------------------------------------------------------------------------

#: Findings that are printed; the report has all.
SHOWN = 5


class Findings:
    """Tables of a line, written into a folder, and what is found among its new parts."""

    def __init__(self, folder: Path) -> None:
        self.line = make_line()
        self.line.write(folder)
        started = time.perf_counter()
        good, self.rows = _table(folder / "good.csv"), _table(folder / "new.csv")
        self.judge = Judge(views=self.line.views, false_alarm_rate=RATE, id="part").fit(good)
        self.seconds = time.perf_counter() - started
        verdicts = self.judge.verdicts(self.rows)
        self.X = verdicts.reading.X
        self.why: Explanation = verdicts.why
        self.flagged = self.why.flagged
        order = np.argsort(self.why.scores, kind="stable")
        self.order = order[self.flagged[order]]
        self.reasons: list[list[ColumnReason]] = self.why.columns_of_rows(self.order.tolist())

    @property
    def faulty(self) -> np.ndarray:
        """Which of the new parts the inspector found faulty."""
        return np.asarray(self.line.verdict != "ok")

    def grid(self, most: int = SHOWN) -> Grid:
        """The first findings as a table."""
        title = f"The {most} parts that stand out most"
        grid = Grid(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in ("part", "1 good part in", "view", "column (usual for such)", "inspector"):
            grid.add_column(name)
        grid.columns[1].justify, grid.columns[1].no_wrap = "right", True
        rarity = self.why.rarity
        assert rarity is not None
        limit = MOST_TIMES * len(self.line.good)
        for k, i in enumerate(self.order[:most].tolist()):
            grid.add_row(
                self.line.parts[i],
                ("over " if rarity[i] >= limit else "") + one_in(rarity[i]),
                self.why.top_views[i],
                in_range(self.reasons[k][0]) if self.reasons[k] else "",
                str(self.line.verdict[i]),
            )
        return grid

    def words(self) -> str:
        """How it went, in two sentences."""
        odd, flagged = self.faulty, self.flagged
        rate = flagged[~odd].mean()
        return (
            f"A line: learned from {len(self.line.good)} good parts in {self.seconds:.1f} s, "
            f"flagged {flagged.sum()} of {len(flagged)} new ones.\n"
            f"The inspector later found {odd.sum()} faulty: {flagged[odd].sum()} of these were "
            f"flagged,\nand {flagged[~odd].sum()} of the {(~odd).sum()} good ones "
            f"({rate:.1%}; asked for: 5%)."
        )


def in_range(reason: ColumnReason) -> str:
    """A reason in a cell of a table: column, value and usual range."""
    return f"{reason.column} {reason.value} ({reason.usual})"


def _table(path: Path) -> Table:
    """A table as the model may see it: what the inspector found comes later."""
    table = read_table(path)
    columns = {name: cells for name, cells in table.columns.items() if name != "verdict"}
    return replace(table, columns=columns)


def _write_report(found: Findings, folder: Path) -> Path:
    """The model and the report page on the new parts."""
    path = folder / "line.kernull"
    found.judge.save(path)
    return found.judge.report(
        found.rows,
        folder / "report.html",
        np.where(found.faulty, -1, 1),
        title="One day of a production line",
        subtitle="400 good parts to learn from, 300 new ones to judge.",
        model_path=str(path),
    )


# -- the comparison ----------------------------------------------------------------------------

REPEATS = 3
OURS = "kernull"


@dataclass(frozen=True, eq=False)
class Problem:
    """One class as normal: half of it to learn from, the rest and all others to judge."""

    title: str
    table: np.ndarray
    views: dict[str, list[int]]
    y: Any

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
        """Training rows, test rows and the labels of the test rows."""
        targets = np.random.default_rng(seed).permutation(np.flatnonzero(self.y == 1))
        half = len(targets) // 2
        test = np.concatenate([targets[half:], np.flatnonzero(self.y == -1)])
        return self.table[targets[:half]], self.table[test], self.y[test]


def problems() -> list[Problem]:
    """Wine (one grower), breast cancer (benign) and digits (the eights), as several views."""
    sets = ((load_wine_views(), 0), (load_breast_cancer_views(), 1), (load_digits_views(), 8))
    return [
        Problem(data.name, *join_views(data.views), data.one_class(target)) for data, target in sets
    ]


def entrants(views: Any, seed: int) -> dict[str, Any]:
    """Detectors as their documentation calls them, each told the share of false alarms.

    All but ours get standardised columns.
    """
    others: dict[str, Any] = {
        "OneClassSVM, nu=0.05": OneClassSVM(nu=RATE),
        "IsolationForest": IsolationForest(contamination=RATE, random_state=seed),
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True, contamination=RATE),
    }
    scaled = {name: make_pipeline(StandardScaler(), other) for name, other in others.items()}
    return {OURS: MultiKernelFisherNull(views=views, false_alarm_rate=RATE), **scaled}


def comparison(
    step: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """AUC and share of normal rows flagged, by problem and entrant, over some random halves.

    ``step`` is called with the number of halves that are done, and of all.
    """
    out: dict[str, dict[str, list[tuple[float, float]]]] = {}
    todo = problems()
    for k, problem in enumerate(todo):
        found = out.setdefault(problem.title, {})
        for seed in range(REPEATS):
            train, test, y = problem.split(seed)
            for name, detector in entrants(problem.views, seed).items():
                model = detector.fit(train)
                false = (model.predict(test[y == 1]) == -1).mean()
                auc = roc_auc_score(y == 1, model.score_samples(test))
                found.setdefault(name, []).append((auc, false))
            step(k * REPEATS + seed + 1, len(todo) * REPEATS)
    return out


def comparison_grid(results: dict[str, dict[str, list[tuple[float, float]]]]) -> Grid:
    """Mean AUC by entrant and problem, and the false alarms of all problems; best first."""
    title = f"scikit-learn's data: AUC in %, mean of {REPEATS} random halves; nothing tuned"
    grid = Grid(title=title, box=SIMPLE_HEAD)
    grid.add_column("method")
    for title in results:
        grid.add_column(title, justify="right")
    grid.add_column(f"false alarms\n(asked: {RATE:.0%})", justify="right")
    means = {
        name: {title: np.mean([a for a, _ in by[name]]) for title, by in results.items()}
        for name in next(iter(results.values()))
    }
    best = {title: max(mean[title] for mean in means.values()) for title in results}
    for name in sorted(means, key=lambda n: -sum(means[n].values())):
        cells = [
            f"[bold]{100 * mean:.1f}[/bold]" if mean == best[problem] else f"{100 * mean:.1f}"
            for problem, mean in means[name].items()
        ]
        alarms = [f"{100 * np.mean([f for _, f in by[name]]):.0f}" for by in results.values()]
        label = f"[cyan]{name}[/cyan]" if name == OURS else name
        grid.add_row(label, *cells, " / ".join(alarms) + " %")
    return grid


# -- the picture -------------------------------------------------------------------------------

INK, QUIET, PALE, BAND, ODD = "#1f2328", "#59636e", "#e4e8ec", "#9dc3e6", "#cf222e"
SIZE = (10.0, 4.9)


@dataclass(frozen=True)
class Gauge:
    """One column: its value, what is usual for all parts, and for parts like this one."""

    name: str
    value: float
    all_parts: tuple[float, float]
    like_this: tuple[float, float]
    odd: bool


@dataclass(frozen=True, eq=False)
class Drawn:
    """All that the picture shows."""

    title: str
    callout: str
    views: dict[str, list[Gauge]]
    evidence: dict[str, float]
    usual: dict[str, float]


def drawn(found: Findings, k: int) -> Drawn:
    """What there is to draw of the k-th finding."""
    i = int(found.order[k])
    reason = found.reasons[k][0]
    assert reason.low is not None
    assert reason.high is not None
    row, usual_values = found.X[i], found.judge.usual_values()
    table = found.judge.table_
    names = table.used_
    j = names.index(reason.column)
    # What is usual follows from the other columns, of which one is known to be wrong.
    mended = row.copy()
    mended[j] = float(reason.low + reason.high) / 2
    expected = usual_values.predict(mended[None])[0]
    views: dict[str, list[Gauge]] = {}
    for view, columns in (table.views_ or {}).items():
        for c in columns:
            near = usual_values.usual_range(c, expected[c]) or usual_values.column_range(c)
            near = (reason.low, reason.high) if c == j else near
            span = tuple(usual_values.quantiles[[0, -1], c].tolist())
            views.setdefault(view, []).append(Gauge(names[c], float(row[c]), span, near, c == j))
    by_view = np.sqrt(-found.why.by_view)
    evidence, usual = by_view[i], np.quantile(by_view[~found.faulty], 0.95, axis=0)
    order = list(found.why.view_names)
    rare = found.why.how_rare(i, "good parts").removesuffix(" learned from")
    return Drawn(
        f"Part {found.line.parts[i]} is flagged: {rare}",
        f"{reason.column} {reason.value}; {plain_number(reason.low)} to "
        f"{plain_number(reason.high)} is usual for parts like this",
        views,
        dict(zip(order, evidence.tolist(), strict=True)),
        dict(zip(order, usual.tolist(), strict=True)),
    )


def typical_finding(found: Findings) -> int:
    """A true finding whose value is ordinary by itself, and odd for a part like this."""
    drive = found.line.columns[found.line.slices["drive"]]
    for k, i in enumerate(found.order.tolist()):
        if not found.reasons[k] or found.line.verdict[i] != "slipping belt":
            continue
        if found.reasons[k][0].column not in drive:
            continue
        j = found.judge.table_.used_.index(found.reasons[k][0].column)
        low, high = found.judge.usual_values().column_range(j)
        if low < found.X[i, j] < high:
            return k
    return 0


def draw_part(found: Findings, path: Path, draw: Any = None, size: Any = SIZE) -> Path:
    """Draw the typical finding, on white whatever the settings of matplotlib are."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0))
    axes.axis("off")
    (draw or _draw_wide)(axes, drawn(found, typical_finding(found)))
    figure.savefig(path)
    return path


def _draw_wide(ax: Any, what: Drawn) -> None:
    ax.text(0.3, 0.42, what.title, size=16, weight="bold", color=INK, va="center")
    top, step = 1.16, 0.77
    ax.text(8.0, top - 0.3, "evidence against it", size=11.5, color=QUIET, va="center")
    for r, (view, gauges) in enumerate(what.views.items()):
        y = top + r * step
        odd = draw_view_name(ax, what, view, 0.3, y + 0.13, 15)
        for c, gauge in enumerate(gauges):
            draw_gauge(ax, gauge, 1.75 + 1.52 * c, y, 1.28, 11.5)
        draw_bar(ax, what, view, 8.0, y + 0.13, 1.15, odd, 12)
        ax.plot([0.3, 9.7], [y + 0.49, y + 0.49], color=PALE, lw=0.8)
    y = top + 4 * step
    ax.text(0.3, y, what.callout, size=12.5, color=ODD, weight="bold", va="center")
    y += 0.34
    for x, colour, text in ((0.3, PALE, "all good parts"), (2.35, BAND, "parts like this one")):
        draw_key(ax, x, y, colour, text, 11)
    draw_tick_key(ax, 4.4, y, 11)


def draw_view_name(ax: Any, what: Drawn, view: str, x: float, y: float, size: float) -> bool:
    """The name of a view, in red where one of its columns is odd; whether one is."""
    odd = any(gauge.odd for gauge in what.views[view])
    colour, weight = (ODD, "bold") if odd else (INK, "normal")
    ax.text(x, y, view, size=size, color=colour, va="center", weight=weight)
    return odd


def draw_key(ax: Any, x: float, y: float, colour: str, text: str, size: float) -> None:
    """What a colour of the gauges means."""
    ax.plot([x, x + 0.35], [y, y], color=colour, lw=9, solid_capstyle="butt")
    ax.text(x + 0.45, y, text, size=size, color=QUIET, va="center")


def draw_tick_key(ax: Any, x: float, y: float, size: float) -> None:
    """What the tick on the bars of evidence means."""
    ax.plot([x + 0.05] * 2, [y - 0.11, y + 0.11], color=INK, lw=1.2)
    text = "evidence that one good part in twenty has"
    ax.text(x + 0.17, y, text, size=size, color=QUIET, va="center")


def draw_gauge(ax: Any, gauge: Gauge, x: float, y: float, width: float, size: float) -> None:
    """A column's value on the range of all parts, with the range of parts like this one."""
    low, high = min(gauge.all_parts[0], gauge.value), max(gauge.all_parts[1], gauge.value)

    def at(value: float) -> float:
        return x + width * float(np.clip((value - low) / (high - low), 0, 1))

    ax.plot([at(gauge.all_parts[0]), at(gauge.all_parts[1])], [y, y], color=PALE, lw=9,
            solid_capstyle="butt", zorder=1)  # fmt: skip
    ax.plot([at(gauge.like_this[0]), at(gauge.like_this[1])], [y, y], color=BAND, lw=9,
            solid_capstyle="butt", zorder=2)  # fmt: skip
    colour = ODD if gauge.odd else INK
    ax.plot(at(gauge.value), y, "o", color=colour, ms=9 if gauge.odd else 6.5, zorder=3)
    name = f"{gauge.name} {plain_number(gauge.value)}"
    ax.text(x, y + 0.29, name, size=size, color=colour, va="center",
            weight="bold" if gauge.odd else "normal")  # fmt: skip


def draw_bar(
    ax: Any, what: Drawn, view: str, x: float, y: float, width: float, odd: bool, size: float
) -> None:
    """The evidence of a view, with a tick at what one good part in twenty has."""
    unit = width / max(*what.evidence.values(), *what.usual.values())
    value, usual = what.evidence[view], what.usual[view]
    ax.barh(y, value * unit, 0.24, left=x, color=ODD if odd else BAND, zorder=2)
    ax.plot([x + usual * unit] * 2, [y - 0.19, y + 0.19], color=INK, lw=1.2, zorder=3)
    ax.text(x + max(value, usual) * unit + 0.08, y, f"{value:.1f}", size=size, color=INK,
            va="center")  # fmt: skip


def main(folder: str | Path = OUT) -> None:
    """Run the demo: tables, model, picture and report go into a folder."""
    console, out = Console(), Path(folder)
    with warnings.catch_warnings(), Progress(console=console, transient=True) as bar:
        warnings.simplefilter("ignore")
        found = Findings(out)
        bar.console.print(found.words(), found.grid())
        task = bar.add_task("Comparing on data of scikit-learn", total=None)
        results = comparison(lambda done, of: bar.update(task, completed=done, total=of))
        console.print(comparison_grid(results))
        page, picture = _write_report(found, out), "pip install 'kernull[plot]'"
        with contextlib.suppress(ImportError):
            picture = str(draw_part(found, out / "part.png"))
    console.print(f"Picture: {picture}   Report: {page}", markup=False, soft_wrap=True)
    go_on = f"Go on: kernull explain {out}/line.kernull {out}/new.csv --id part --flagged"
    console.print(go_on, markup=False, soft_wrap=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

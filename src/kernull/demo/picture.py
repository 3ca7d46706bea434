"""One flagged part as a picture: its views, the evidence of each, every column with its range."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull.inspection.findings import plain_number

if TYPE_CHECKING:
    from kernull.demo import Findings

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
    row, filler = found.reading.X[i], found.table.filler_
    names = found.table.used_
    j = names.index(reason.column)
    # What is usual follows from the other columns, of which one is known to be wrong.
    mended = row.copy()
    mended[j] = float(reason.low + reason.high) / 2
    expected = filler.expect_each(mended[None])[0]
    views: dict[str, list[Gauge]] = {}
    for view, columns in (found.table.views_ or {}).items():
        for c in columns:
            near = filler.usual_range(c, expected[c]) or filler.own_range(c)
            near = (reason.low, reason.high) if c == j else near
            span = (float(filler.quantiles[0, c]), float(filler.quantiles[-1, c]))
            views.setdefault(view, []).append(Gauge(names[c], float(row[c]), span, near, c == j))
    evidence = found.model.evidence(row[None], by="view")[0]
    good = found.model.evidence(found.reading.X[~found.faulty], by="view")
    usual = np.quantile(good, 0.95, axis=0)
    order = list(found.why.view_names)
    rare = found.why.how_rare(k, "good parts").removesuffix(" learned from")
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
    for k, i in enumerate(found.order.tolist()):
        if not found.reasons[k] or found.line.verdict[i] != "slipping belt":
            continue
        j = found.table.used_.index(found.reasons[k][0].column)
        low, high = found.table.filler_.quantiles[[5, 95], j]
        if low < found.reading.X[i, j] < high:
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

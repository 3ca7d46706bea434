"""One flagged part as a picture: its views, the evidence of each, every column with its range."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull.inspection.findings import plain_number
from kernull.models.explanation import one_in

if TYPE_CHECKING:
    from kernull.demo import Findings

__all__ = ["Drawn", "draw_part", "drawn"]

INK, QUIET, PALE, BAND, ODD = "#1f2328", "#59636e", "#e4e8ec", "#9dc3e6", "#cf222e"
#: The same columns side by side, or, for a phone, one view below the other.
WIDE, NARROW = (10.0, 4.9), (5.2, 7.5)


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
    picture: Any


def drawn(found: Findings, k: int) -> Drawn:
    """What there is to draw of the k-th finding."""
    i = int(found.order[k])
    reason, rarity = found.reasons[k][0], found.why.rarity
    assert rarity is not None
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
            low, high = filler.usual_range(c)
            near = (float(expected[c] + low), float(expected[c] + high))
            near = (reason.low, reason.high) if c == j else near
            span = (float(filler.quantiles[0, c]), float(filler.quantiles[-1, c]))
            views.setdefault(view, []).append(Gauge(names[c], float(row[c]), span, near, c == j))
    evidence = found.model.evidence(row[None], by="view")[0]
    good = found.model.evidence(found.reading.X[~found.faulty], by="view")
    usual = np.quantile(good, 0.95, axis=0)
    order = list(found.why.view_names)
    return Drawn(
        f"Part {found.line.parts[i]} is flagged: about 1 in {one_in(rarity[k])} good parts "
        "is as unusual",
        f"{reason.column} {reason.value}; {plain_number(reason.low)} to "
        f"{plain_number(reason.high)} is usual for parts like this",
        views,
        dict(zip(order, evidence.tolist(), strict=True)),
        dict(zip(order, usual.tolist(), strict=True)),
        found.line.pictures[i],
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


def draw_part(found: Findings, path: Path, *, narrow: bool = False, k: int | None = None) -> Path:
    """Draw a finding, on white whatever the settings of matplotlib are.

    Parameters
    ----------
    found : Findings
    path : pathlib.Path
        The PNG file to write.
    narrow : bool
        For a phone: views below each other.
    k : int, optional
        Which finding; one whose value is ordinary by itself by default.

    Returns
    -------
    pathlib.Path
        The file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    what = drawn(found, typical_finding(found) if k is None else k)
    figure = Figure(figsize=NARROW if narrow else WIDE, dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    width, height = NARROW if narrow else WIDE
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    (_draw_narrow if narrow else _draw_wide)(axes, what)
    figure.savefig(path)
    return path


def _draw_wide(ax: Any, what: Drawn) -> None:
    ax.text(0.3, 0.42, what.title, size=17, weight="bold", color=INK, va="center")
    top, step = 1.16, 0.77
    ax.text(8.0, top - 0.3, "evidence against it", size=11.5, color=QUIET, va="center")
    for r, (view, gauges) in enumerate(what.views.items()):
        y = top + r * step
        odd = any(g.odd for g in gauges)
        ax.text(0.3, y + 0.13, view, size=15, color=ODD if odd else INK, va="center",
                weight="bold" if odd else "normal")  # fmt: skip
        for c, gauge in enumerate(gauges):
            _gauge(ax, gauge, 1.75 + 1.52 * c, y, 1.28, 11.5)
        _bar(ax, what, view, 8.0, y + 0.13, 1.15, odd, 12)
        ax.plot([0.3, 9.7], [y + 0.49, y + 0.49], color=PALE, lw=0.8)
    _legend(ax, 0.3, top + 4 * step, what.callout, 12.5, 11)


def _draw_narrow(ax: Any, what: Drawn) -> None:
    first, _, second = what.title.partition(": ")
    ax.text(0.2, 0.35, f"{first}:", size=15.5, weight="bold", color=INK, va="center")
    ax.text(0.2, 0.68, second, size=12.5, weight="bold", color=INK, va="center")
    y = 1.12
    for view, gauges in what.views.items():
        odd = any(g.odd for g in gauges)
        ax.text(0.2, y, view, size=14, color=ODD if odd else INK, va="center",
                weight="bold" if odd else "normal")  # fmt: skip
        ax.text(2.9, y, "evidence", size=10.5, color=QUIET, va="center", ha="right")
        _bar(ax, what, view, 3.05, y, 1.45, odd, 11)
        for c, gauge in enumerate(gauges):
            _gauge(ax, gauge, 0.2 + 1.24 * c, y + 0.42, 1.06, 11)
        y += 1.3
        ax.plot([0.2, 5.0], [y - 0.28, y - 0.28], color=PALE, lw=0.8)
    _legend(ax, 0.2, y + 0.02, what.callout, 12, 10.5, stacked=True)


def _gauge(ax: Any, gauge: Gauge, x: float, y: float, width: float, size: float) -> None:
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


def _bar(
    ax: Any, what: Drawn, view: str, x: float, y: float, width: float, odd: bool, size: float
) -> None:
    """The evidence of a view, with a tick at what one good part in twenty has."""
    unit = width / max(*what.evidence.values(), *what.usual.values())
    value, usual = what.evidence[view], what.usual[view]
    ax.barh(y, value * unit, 0.24, left=x, color=ODD if odd else BAND, zorder=2)
    ax.plot([x + usual * unit] * 2, [y - 0.19, y + 0.19], color=INK, lw=1.2, zorder=3)
    ax.text(x + max(value, usual) * unit + 0.08, y, f"{value:.1f}", size=size, color=INK,
            va="center")  # fmt: skip


def _legend(
    ax: Any, x: float, y: float, callout: str, size: float, small: float, stacked: bool = False
) -> None:
    first, _, second = callout.partition("; ")
    head = f"{first};" if stacked else callout
    ax.text(x, y, head, size=size, color=ODD, weight="bold", va="center")
    if stacked:
        ax.text(x, y + 0.27, second, size=size, color=ODD, weight="bold", va="center")
        y += 0.27
    y += 0.34
    items = [(PALE, "all good parts"), (BAND, "parts like this one")]
    for colour, text in items:
        ax.plot([x, x + 0.35], [y, y], color=colour, lw=9, solid_capstyle="butt")
        ax.text(x + 0.45, y, text, size=small, color=QUIET, va="center")
        x += 1.95 if stacked else 2.05
    if stacked:
        y, x = y + 0.3, x - 3.9
    ax.plot([x + 0.05] * 2, [y - 0.11, y + 0.11], color=INK, lw=1.2)
    ax.text(x + 0.17, y, "evidence that one good part in twenty has", size=small, color=QUIET,
            va="center")  # fmt: skip

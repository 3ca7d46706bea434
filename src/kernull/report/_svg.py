"""Small charts as inline SVG: bars, histogram, lines.

Colours come from the page's style sheet by class, so that the charts follow its light or dark
theme. Every mark carries its values in ``data-tip``, which the page's script shows on hover and
on the arrow keys; the title and description are what a screen reader reads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

WIDTH, HEIGHT = 460, 270
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 44


@dataclass(frozen=True)
class Line:
    """One line of a chart: points with a text for each."""

    name: str
    css: str
    points: Sequence[tuple[float, float]]
    tips: Sequence[str] = ()


@dataclass
class Chart:
    """A chart under construction: elements, and the map from values to places."""

    title: str
    description: str
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    x_range: tuple[float, float] = (0.0, 1.0)
    y_range: tuple[float, float] = (0.0, 1.0)
    parts: list[Markup] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Place of a value on the horizontal axis."""
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * (self.width - self.left - RIGHT)

    def y(self, value: float) -> float:
        """Place of a value on the vertical axis."""
        low, high = self.y_range
        inner = self.height - TOP - BOTTOM
        return TOP + inner - (value - low) / (high - low) * inner

    def bar(
        self, ends: tuple[float, float], low: float, high: float, css: str, tip: str, apart: float
    ) -> None:
        """Append a bar that tells its values, so many pixels from its neighbours."""
        left, right = map(self.x, ends)
        top, bottom = self.y(high), self.y(low)
        self.add(
            '<rect x="{x}" y="{y}" width="{w}" height="{h}" class="mark {c}" data-tip="{t}"/>',
            x=left + apart / 2, y=top, w=max(right - left - apart, apart / 2),
            h=max(bottom - top, apart / 2), c=css, t=tip,
        )  # fmt: skip

    def line(self, x1: float, x2: float, y1: float, y2: float, css: str) -> None:
        """Append a straight line."""
        ends = {"x1": float(x1), "x2": float(x2), "y1": float(y1), "y2": float(y2)}
        self.add('<line x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}" class="{c}"/>', **ends, c=css)

    def outline(self, edges: Sequence[float], values: Sequence[float]) -> None:
        """Append the outline of a histogram."""
        path = "".join(
            f"{'L' if b else 'M'}{self.x(edges[b]):.1f} {self.y(value):.1f}"
            f"H{self.x(edges[b + 1]):.1f}"
            for b, value in enumerate(values)
        )
        self.add('<path d="{d}" class="outline"/>', d=path)

    def add(self, template: str, **values: object) -> None:
        """Append an element; values are escaped."""
        rounded = {k: f"{v:.1f}" if isinstance(v, float) else v for k, v in values.items()}
        self.parts.append(Markup(template).format(**rounded))

    def text(self, x: float, y: float, text: str, anchor: str = "middle", css: str = "") -> None:
        """Append a text."""
        self.add(
            '<text x="{x}" y="{y}" text-anchor="{a}" class="{c}">{t}</text>',
            x=float(x), y=float(y), a=anchor, c=css, t=text,
        )  # fmt: skip

    def x_axis(
        self, ticks: Sequence[tuple[float, str]], label: str, anchor: str = "middle"
    ) -> None:
        """Draw ticks with their labels below the plot, and the axis's name."""
        bottom = self.height - BOTTOM
        for value, text in ticks:
            self.line(self.x(value), self.x(value), TOP, bottom, "grid")
            self.text(self.x(value), bottom + 16, text, anchor, "x-tick")
        self.text((self.left + self.width - RIGHT) / 2, self.height - 6, label, css="axis-name")

    def y_axis(self, ticks: Sequence[tuple[float, str]]) -> None:
        """Draw ticks with their labels left of the plot."""
        for value, text in ticks:
            self.line(self.left, self.width - RIGHT, self.y(value), self.y(value), "grid")
            self.text(self.left - 6, self.y(value) + 4, text, "end")

    def render(self) -> Markup:
        """The SVG element."""
        number = re.sub(r"\W+", "-", self.title.lower())
        frame = Markup(
            '<svg viewBox="0 0 {w} {h}" role="img" tabindex="0" '
            'aria-labelledby="chart-{n}-title chart-{n}-text">'
            '<title id="chart-{n}-title">{title}</title>'
            '<desc id="chart-{n}-text">{text}</desc>{parts}</svg>'
        )
        size = {"w": f"{self.width:g}", "h": f"{self.height:g}"}
        words = {"n": number, "title": self.title, "text": self.description}
        return frame.format(**size, **words, parts=Markup("").join(self.parts))


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover a range.

    Examples
    --------
    >>> nice_ticks(0.0, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    span = high - low
    if not span > 0:
        return [low]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _labels(ticks: Sequence[float]) -> list[tuple[float, str]]:
    return [(tick, f"{tick:g}") for tick in ticks]


def _percent(ticks: Sequence[float]) -> list[tuple[float, str]]:
    return [(tick, f"{100 * tick:g}%") for tick in ticks]


def bar_chart(
    title: str, description: str, names: Sequence[str], values: Sequence[float], x_label: str
) -> Markup:
    """Horizontal bars, one a name, with the value at the end of each."""
    step, width = 26, WIDTH
    left = min(180.0, 16.0 + 7.4 * max(len(name) for name in names))
    height = TOP + BOTTOM + step * len(names)
    low, high = min(0.0, *values), max(0.0, *values)
    pad = 0.14 * (high - low or 1.0)  # room for the numbers
    chart = Chart(title, description, width, height, left, (low, high + pad))
    chart.x_axis(_labels(nice_ticks(low, high, 4)), x_label)
    room = int((left - 14) / 7.0)
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        top = TOP + step * i + 4
        start, end = sorted((chart.x(0.0), chart.x(value)))
        short = name if len(name) <= room else name[: room - 1] + "…"
        chart.text(left - 8, top + 13, short, "end")
        chart.add(
            '<rect x="{x}" y="{y}" width="{w}" height="18" rx="2" class="mark normal" '
            'data-tip="{tip}"/>',
            x=start, y=float(top), w=max(end - start, 0.8), tip=f"{name}: {value:.4g}",
        )  # fmt: skip
        chart.text(end + 5, top + 13, f"{value:.3g}", "start", "value")
    return chart.render()


def histogram(
    title: str,
    description: str,
    edges: Sequence[float],
    series: Sequence[tuple[str, str, Sequence[float]]],
    outline: Sequence[float],
    threshold: float,
    x_label: str,
) -> Markup:
    """Stacked bars by bin (name, class, share), an outline of normal rows, and the threshold."""
    bins = len(edges) - 1
    totals = [sum(values[b] for _, _, values in series) for b in range(bins)]
    high = max([*totals, *outline]) * 1.08 or 1.0
    chart = Chart(title, description, x_range=(edges[0], edges[-1]), y_range=(0.0, high))
    chart.y_axis(_percent(nice_ticks(0.0, high, 4)))
    chart.x_axis(_labels(nice_ticks(edges[0], edges[-1], 5)), x_label)
    for b in range(bins):
        base, ends = 0.0, (edges[b], edges[b + 1])
        for name, css, values in series:
            if values[b] > 0:
                tip = f"{ends[0]:.3g} to {ends[1]:.3g}: {100 * values[b]:.3g}% {name}"
                chart.bar(ends, base, base + values[b], css, tip, 1.0)
                base += values[b]
    chart.outline(edges, outline)
    at = chart.x(threshold)
    chart.line(at, at, TOP, chart.y(0.0), "threshold")
    side, shift = ("start", 5) if at < chart.width * 0.6 else ("end", -5)
    chart.text(at + shift, TOP + 10, f"threshold {threshold:.3g}", side, "halo")
    return chart.render()


def square_chart(title: str, description: str, lines: Sequence[Line], x_label: str) -> Markup:
    """Lines with points on the unit square."""
    chart = Chart(title, description)
    ticks = _percent(nice_ticks(0.0, 1.0, 5))
    chart.y_axis(ticks)
    chart.x_axis(ticks, x_label)
    for line in lines:
        path = "".join(
            f"{'L' if i else 'M'}{chart.x(x):.1f} {chart.y(y):.1f}"
            for i, (x, y) in enumerate(line.points)
        )
        chart.add('<path d="{d}" class="line {c}"/>', d=path, c=line.css)
        # Points in a crowd would hide the line: they show when pointed at.
        css, radius = (line.css, 3.2) if len(line.points) <= 30 else (f"{line.css} quiet", 5.0)
        for (x, y), tip in zip(line.points, line.tips, strict=False):
            chart.add(
                '<circle cx="{x}" cy="{y}" r="{r}" class="mark {c}" data-tip="{tip}"/>',
                x=chart.x(x), y=chart.y(y), r=radius, c=css, tip=f"{line.name}: {tip}",
            )  # fmt: skip
    return chart.render()


def time_chart(
    title: str,
    description: str,
    labels: Sequence[str],
    rows: Sequence[int],
    flagged: Sequence[int],
    usual: float,
) -> Markup:
    """Share of flagged rows in each piece of time, with what is usual as a dashed line."""
    shares = [f / n if n else 0.0 for f, n in zip(flagged, rows, strict=True)]
    high = max(*shares, 1.5 * usual) * 1.1 or 1.0
    chart = Chart(title, description, 940, 210, x_range=(0.0, len(rows)), y_range=(0.0, high))
    chart.y_axis(_percent(nice_ticks(0.0, high, 3)))
    step = max(1, -(-len(rows) // 3))  # few: the labels are long, and a phone is narrow
    chart.x_axis([(float(i), labels[i]) for i in range(0, len(rows), step)], "", "start")
    for i, (share, f, n) in enumerate(zip(shares, flagged, rows, strict=True)):
        if f:
            tip = f"{labels[i]}: {f} of {n} rows flagged"
            chart.bar((i, i + 1), 0.0, share, "odd", tip, 2.0)
    chart.line(chart.x(0.0), chart.x(len(rows)), chart.y(usual), chart.y(usual), "outline")
    return chart.render()


def mini_chart(
    title: str,
    description: str,
    edges: Sequence[str],
    training: Sequence[float],
    new: Sequence[float],
) -> Markup:
    """Two distributions on a small plot: training rows as an outline, new rows as bars."""
    bins = len(new)
    numbers = len(edges) == bins + 1
    high = max([*training, *new]) * 1.08 or 1.0
    chart = Chart(title, description, 300, 120, 8.0, (0.0, float(bins)), (0.0, high))
    bottom = chart.y(0.0)
    for b in range(bins):
        name = f"{edges[b]} to {edges[b + 1]}" if numbers else edges[b]
        tip = f"{name}: {new[b]:.1%} of new rows, {training[b]:.1%} in training"
        chart.bar((b, b + 1), 0.0, new[b], "normal", tip, 1.0)
    chart.outline(range(bins + 1), training)
    if numbers:
        for at, text, anchor in ((0, edges[0], "start"), (bins, edges[-1], "end")):
            chart.text(chart.x(at), bottom + 16, text, anchor)
    else:
        room = max(3, 40 // bins)
        for b in range(bins):
            short = edges[b] if len(edges[b]) <= room else edges[b][: room - 1] + "…"
            chart.text(chart.x(b + 0.5), bottom + 16, short)
    return chart.render()

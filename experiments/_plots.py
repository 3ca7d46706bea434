"""Figures: one style, colours that colour-blind readers can tell apart, PNG with fixed metadata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._ranks import Ranking
from kernull._typing import Array
from kernull.errors import MissingDependencyError

__all__ = ["COLOURS", "MARKERS", "critical_difference", "new_figure", "save", "shared_weights"]

#: Okabe and Ito's palette with grey in place of yellow, which is too light for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F")
#: Lines differ by marker too: colour alone must never carry the meaning.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def new_figure(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, drawn without a display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError(
            "figures need matplotlib: pip install 'kernull[plot]'."
        ) from None
    squeeze = options.pop("squeeze", True)
    share = {key: options.pop(key) for key in ("sharex", "sharey") if key in options}
    figure = Figure(layout="constrained", **options)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=squeeze, **share)
    return figure, axes


def save(figure: Any, path: Path) -> None:
    """Write a PNG without dates or versions in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140, metadata={"Software": None})


def critical_difference(
    ranking: Ranking, path: Path, title: str, highlight: str = "lp MK-FN"
) -> None:
    """Demsar's diagram: average ranks on a line, bars over methods that cannot be told apart."""
    k = len(ranking.methods)
    half = (k + 1) // 2
    cliques = ranking.cliques()
    depth = 0.35 * len(cliques) + 0.35
    figure, axes = new_figure(figsize=(8.6, 1.3 + 0.27 * half + 0.22 * len(cliques)))
    axes.set(xlim=(k + 0.1, 0.9), ylim=(-(depth + 0.55 * half + 0.1), 1.15))
    axes.axis("off")
    axes.hlines(0, 1, k, color="black", lw=1.2)
    for tick in range(1, k + 1):
        axes.vlines(tick, 0, 0.12, color="black", lw=1)
        axes.text(tick, 0.18, str(tick), ha="center", va="bottom", fontsize=9)
    for i, (method, rank) in enumerate(zip(ranking.methods, ranking.ranks, strict=True)):
        best = i < half
        level = -(depth + 0.55 * (i if best else k - 1 - i))
        edge = 0.9 if best else k + 0.1
        colour = COLOURS[1] if method == highlight else "black"
        axes.plot([rank, rank, edge], [0, level, level], color=colour, lw=1)
        side = {"ha": "left" if best else "right", "va": "center", "fontsize": 9}
        label = f" {method} ({rank:.2f}) "
        axes.text(edge, level, label, color=colour, clip_on=False, **side)
    for row, (first, last) in enumerate(cliques):
        height = -0.3 - 0.35 * row
        ends = (ranking.ranks[first] - 0.05, ranking.ranks[last] + 0.05)
        axes.hlines(height, *ends, color=COLOURS[0], lw=4)
    width = ranking.critical_difference
    axes.plot([1, 1 + width], [0.8, 0.8], color=COLOURS[0], lw=2, marker="|")
    axes.text(
        1 + width, 0.8, f"CD = {width:.2f}  ", ha="right", va="center", fontsize=9, color=COLOURS[0]
    )
    axes.set_title(title, fontsize=10)
    save(figure, path)


def shared_weights(
    table: Array, ps: Sequence[float], names: Sequence[str], path: Path, title: str
) -> None:
    """Weights of kernels (columns) for each p (rows), as shares of their sum."""
    figure, axes = new_figure(figsize=(1.5 + 0.75 * len(names), 1.6 + 0.38 * len(ps)))
    image = axes.imshow(table, aspect="auto", cmap="Blues", vmin=0.0)
    for (i, k), share in np.ndenumerate(table):
        colour = "white" if share > 0.6 * table.max() else "black"
        axes.text(k, i, f"{share:.2f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=45, ha="right")
    axes.set_yticks(range(len(ps)), [f"{p:.4g}" for p in ps], fontsize=8)
    axes.set(ylabel="p", title=title)
    figure.colorbar(image, ax=axes, label="share of the weight")
    save(figure, path)

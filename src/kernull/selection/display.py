"""The grid as a heat map and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from kernull._typing import Array
from kernull.errors import need


@dataclass(eq=False, repr=False)
class SelectionDisplay:
    """Scores of a (p, delta) grid, one panel a width, with the chosen model marked.

    Parameters
    ----------
    scores : array of shape (widths, ps, deltas)
        Mean scores.
    ps, deltas, widths : sequence of float
        The grid; a width may be "auto", and widths are (nan,) where kernels were given.
    best : tuple of int
        Index of the chosen model.
    scoring : str
        Name of the criterion.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : array of matplotlib Axes
        One a width.
    """

    scores: Array
    ps: Any
    deltas: Any
    widths: Any
    best: Any
    scoring: str = "score"

    @classmethod
    def from_estimator(cls, search: Any, **plot_params: Any) -> Self:
        """Draw the grid of a fitted `MultiKernelFisherNullCV`, with parameters of `plot`."""
        best = np.unravel_index(search.best_index_, search.scores_.shape)
        display = cls(
            search.scores_, search.ps_, search.deltas_, search.widths_, best, search.scoring_
        )
        return display.plot(**plot_params)

    def plot(
        self, *, axes: Any = None, cmap: str = "viridis", values: bool = True, vmin: Any = None
    ) -> Self:
        """Draw, with one of the ``axes`` per width; ``values`` writes each score into its cell.

        ``vmin`` is the score at the dark end of ``cmap``; by default the tenth percentile, so that
        one bad corner does not swallow the contrast.
        """
        how = "SelectionDisplay.plot needs matplotlib: pip install 'kernull[plot]'."
        plt = need("matplotlib.pyplot", how)
        count = len(self.widths)
        if axes is None:
            size = (0.55 * len(self.ps) * count + 2.2, 0.42 * len(self.deltas) + 1.6)
            figure, axes = plt.subplots(
                1, count, figsize=size, squeeze=False, sharey=True, layout="constrained"
            )
            axes = axes[0]
        else:
            axes = np.atleast_1d(axes)
            figure = axes[0].figure
        low = float(np.quantile(self.scores, 0.1)) if vmin is None else vmin
        high = float(self.scores.max())
        for i, ax in enumerate(axes):
            image = ax.imshow(
                self.scores[i].T, origin="lower", aspect="auto", cmap=cmap, vmin=low, vmax=high
            )
            ax.set_xticks(range(len(self.ps)), [_norm(p) for p in self.ps], rotation=60)
            ax.set_yticks(range(len(self.deltas)), [f"{d:g}" for d in self.deltas])
            ax.set_xlabel("p")
            if _is_width(self.widths[i]):
                ax.set_title(f"width {_norm(self.widths[i])}")
            if values:
                self._write(ax, i, low, high)
            if i == self.best[0]:
                x, y = self.best[1] - 0.5, self.best[2] - 0.5
                frame = plt.Rectangle((x, y), 1, 1, fill=False, edgecolor="red", linewidth=2)
                ax.add_patch(frame)
        axes[0].set_ylabel("delta")
        figure.colorbar(image, ax=list(axes), label=self.scoring, extend="min")
        self.figure_, self.axes_ = figure, axes
        return self

    def _write(self, ax: Any, panel: int, low: float, high: float) -> None:
        middle = (low + high) / 2
        for (x, y), score in np.ndenumerate(self.scores[panel]):
            colour = "black" if score > middle else "white"
            ax.text(
                x, y, f"{score:.2f}".lstrip("0"), ha="center", va="center", color=colour, size=6.5
            )

    def __str__(self) -> str:
        """The grid as text, one block per width: delta down, p across, the choice in brackets."""
        lines = []
        for i, width in enumerate(self.widths):
            named = f", width {_norm(width)}" if _is_width(width) else ""
            lines.append(f"{self.scoring}{named}")
            lines.append("   delta \\ p" + "".join(f"{_norm(p):>9}" for p in self.ps))
            for k, delta in enumerate(self.deltas):
                cells = [
                    f"[{self.scores[i, j, k]:.4f}]"
                    if (i, j, k) == tuple(self.best)
                    else f"{self.scores[i, j, k]:.4f} "
                    for j in range(len(self.ps))
                ]
                lines.append(f"{delta:>12g}" + "".join(f"{cell:>9}" for cell in cells))
        return "\n".join(lines)


def _is_width(width: float | str) -> bool:
    """Whether there is one: kernels that were given have none."""
    return isinstance(width, str) or not np.isnan(width)


def _norm(p: float | str) -> str:
    """32/31 rather than 1.03226."""
    if isinstance(p, str) or np.isinf(p):
        return str(p)
    fraction = Fraction(p).limit_denominator(64)
    if fraction.denominator > 1 and abs(float(fraction) - p) < 1e-9:
        return str(fraction)
    return f"{p:g}"

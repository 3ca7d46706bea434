"""Displays of weights, convergence and scores.

Each is made by ``from_estimator`` (or from what it shows), keeps the data, and has
``plot(ax=None)``; afterwards ``ax_`` and ``figure_`` are the matplotlib objects.
matplotlib is imported on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array
from kernull.errors import need

NORMAL = "#4878a8"
OUTLIER = "#c0392b"
PALE = "#9aa5b1"
#: Colours of further groups.
GROUPS = (NORMAL, "#d9952b", "#5d9b6a", "#8064a2")


class Display:
    """A picture, and the matplotlib objects that it is drawn on."""

    ax_: Any
    figure_: Any

    def _drawn_on(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _get_axes(ax: Any, **figure: Any) -> Any:
    """These axes, or those of a new figure."""
    if ax is not None:
        return ax
    plt = need("matplotlib.pyplot", "displays need matplotlib: pip install kernull[plot].")
    return plt.subplots(layout="tight", **figure)[1]


class WeightsDisplay(Display):
    """Bars of the kernel weights.

    Parameters
    ----------
    weights : array of shape (J,)
        Kernel weights b.
    names : sequence of str
        Names of the kernels.
    title : str, optional
    """

    def __init__(self, weights: Array, names: Sequence[str], title: str | None = None) -> None:
        self.weights = np.asarray(weights, dtype=float)
        self.names = [str(name) for name in names]
        self.title = title

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, most: int = 40) -> Self:
        """Display the weights of a fitted estimator: so many kernels, the heaviest first.

        Parameters
        ----------
        estimator : fitted estimator
            With ``weights_``.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        most : int
            Number of kernels, at most.
        """
        check_is_fitted(estimator)
        p = estimator.p_
        title = None if p is None else f"{type(estimator).__name__}, p = {p:g}"
        return cls(estimator.weights_, estimator.kernel_names_, title).plot(ax=ax, most=most)

    def plot(self, *, ax: Any = None, most: int = 40) -> Self:
        """Draw bars, the heaviest kernel on top.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        most : int
            Number of kernels, at most.
        """
        order = np.argsort(-self.weights, kind="stable")
        hidden = len(order) - most
        order = order[:most]
        ax = _get_axes(ax, figsize=(6.4, 1.4 + 0.26 * len(order)))
        values = self.weights[order]
        places = np.arange(len(order))
        ax.barh(places, values, height=0.66, color=np.where(values > 0, NORMAL, PALE))
        ax.set_yticks(places, [self.names[j] for j in order])
        ax.invert_yaxis()
        # Exact zeros are a statement (the kernel is out), so they are written.
        for place in np.flatnonzero(values == 0):
            ax.text(0.0, place, " 0", va="center", ha="left", color="0.4", fontsize="small")
        ax.set_xlabel("weight b" if hidden <= 0 else f"weight b ({hidden} lighter ones not shown)")
        if self.title:
            ax.set_title(self.title, fontsize="medium", loc="left")
        return self._drawn_on(ax)


class ConvergenceDisplay(Display):
    """The certified relative gap by iteration, with the tolerance.

    Parameters
    ----------
    gaps : array of shape (iterations,)
        Relative duality gap at each iteration.
    tol : float, optional
        The gap to stop at.
    label : str, optional
        Name of the run, for comparisons on one pair of axes.
    """

    def __init__(self, gaps: Array, tol: float | None = None, label: str | None = None) -> None:
        self.gaps = np.asarray(gaps, dtype=float)
        self.tol = tol
        self.label = label

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, label: str | None = None) -> Self:
        """Display the history of a fitted estimator; ``label`` is the solver by default.

        Parameters
        ----------
        estimator : fitted estimator
            With ``history_``.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        label : str, optional
            For the legend.
        """
        check_is_fitted(estimator)
        label = estimator.solver_ if label is None else label
        return cls.from_history(estimator.history_, estimator.tol_, label, ax=ax)

    @classmethod
    def from_history(
        cls, history: Any, tol: float | None = None, label: str | None = None, *, ax: Any = None
    ) -> Self:
        """Display a solver's history (of `kernull.solve`, for example).

        Parameters
        ----------
        history : History
            Of a result of a solver.
        tol : float, optional
            Tolerance, drawn as a line.
        label : str, optional
            For the legend.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        return cls(np.array([record.gap for record in history]), tol, label).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the gap on a logarithmic scale.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        ax = _get_axes(ax, figsize=(6.0, 3.6))
        steps = np.arange(1, len(self.gaps) + 1)
        shown = np.maximum(self.gaps, 1e-16)  # a gap of zero has no logarithm
        ax.plot(steps, shown, marker="o", markersize=3.5, linewidth=1.4, label=self.label)
        ax.set_yscale("log")
        if self.tol is not None:
            has_line = any(line.get_label() == "tolerance" for line in ax.get_lines())
            label = "_" if has_line else "tolerance"
            ax.axhline(self.tol, color="0.5", linewidth=1, linestyle="--", label=label)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("iteration")
        ax.set_ylabel("relative duality gap")
        if self.label is not None or self.tol is not None:
            ax.legend(frameon=False, fontsize="small")
        return self._drawn_on(ax)


class ScoresDisplay(Display):
    """Histograms of scores with the threshold.

    Parameters
    ----------
    groups : dict of str -> array
        Scores by name of their group; ``"outliers"`` is drawn in red.
    threshold : float
        Score below which rows are flagged.
    false_alarm_rate : float, optional
        The rate that the threshold stands for.
    """

    def __init__(
        self, groups: dict[str, Array], threshold: float, false_alarm_rate: float | None = None
    ) -> None:
        self.groups = {name: np.asarray(scores, float) for name, scores in groups.items()}
        self.threshold = float(threshold)
        self.false_alarm_rate = false_alarm_rate

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, bins: int = 30
    ) -> Self:
        """Display calibration scores of a fitted estimator, and scores of new rows X.

        With y, of +1 (normal) and -1 (outliers), there is a histogram for each of the two.

        Parameters
        ----------
        estimator : fitted estimator
            With ``calibration_``.
        X : array of shape (m, d), optional
            New rows.
        y : array of shape (m,), optional
            +1 for normal rows, -1 for outliers.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        bins : int
            Number of bins.
        """
        check_is_fitted(estimator)
        groups = {"calibration": estimator.calibration_.scores}
        if X is not None:
            scores = estimator.score_samples(X)
            if y is None:
                groups["new rows"] = scores
            else:
                labels = np.asarray(y)
                groups |= {"normal": scores[labels == 1], "outliers": scores[labels == -1]}
        shown = cls(groups, estimator.threshold_, estimator.false_alarm_rate_)
        return shown.plot(ax=ax, bins=bins)

    def plot(self, *, ax: Any = None, bins: int = 30) -> Self:
        """Draw one outline or filled histogram a group, each of unit area.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        bins : int
            Number of bins.
        """
        ax = _get_axes(ax, figsize=(6.4, 3.8))
        filled = {name: s for name, s in self.groups.items() if len(s)}
        edges = np.histogram_bin_edges(np.concatenate(list(filled.values())), bins)
        colours = {"calibration": PALE, "outliers": OUTLIER}
        others = [name for name in filled if name not in colours]
        colours |= {name: GROUPS[i % len(GROUPS)] for i, name in enumerate(others)}
        for name, scores in filled.items():
            # Calibration rows are the backdrop: an outline, so that nothing hides behind it.
            style: dict[str, Any] = {"histtype": "stepfilled", "alpha": 0.55}
            if name == "calibration":
                style = {"histtype": "step", "linewidth": 1.6}
            style |= {"color": colours[name], "label": f"{name} ({len(scores)})"}
            ax.hist(scores, bins=edges, weights=np.full(len(scores), 1.0 / len(scores)), **style)
        rate = "" if self.false_alarm_rate is None else f" at {self.false_alarm_rate:.1%}"
        ax.axvline(self.threshold, color="black", linewidth=1.2, label=f"threshold{rate}")
        ax.set_xlabel("score (higher is more normal)")
        ax.set_ylabel("share of the group")
        ax.legend(fontsize="small", framealpha=0.9, edgecolor="none")
        return self._drawn_on(ax)

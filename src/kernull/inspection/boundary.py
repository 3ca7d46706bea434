"""Where a model of two columns draws the line."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.utils.validation import check_is_fitted

from kernull.inspection._figures import NORMAL, OUTLIER, get_axes

__all__ = ["BoundaryDisplay"]


class BoundaryDisplay:
    """The score over the plane, and the line of the threshold.

    A thin layer over scikit-learn's ``DecisionBoundaryDisplay``: it draws the line at the
    threshold, and the rows.

    Parameters
    ----------
    surface : DecisionBoundaryDisplay
        Of the estimator's decision function.
    X : array of shape (m, 2)
        Rows to draw.
    y : array of +1 and -1, optional
        What the rows are.
    """

    ax_: Any
    figure_: Any

    def __init__(self, surface: Any, X: Any, y: Any = None) -> None:
        self.surface = surface
        self.X = np.asarray(X, dtype=float)
        self.y = None if y is None else np.asarray(y)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        grid_resolution: int = 150,
        eps: float = 0.5,
        ax: Any = None,
    ) -> Self:
        """Display a fitted estimator of two columns.

        Parameters
        ----------
        estimator : fitted estimator
        X : table of shape (m, 2)
            Rows to draw; they also set the limits.
        y : array of +1 and -1, optional
            What the rows are: +1 normal, -1 outliers.
        grid_resolution : int
            Points a side.
        eps : float
            Margin around the rows.
        ax : matplotlib axes, optional
        """
        check_is_fitted(estimator)
        if estimator.n_features_in_ != 2:
            raise ValueError(
                f"estimator: got a model of {estimator.n_features_in_} columns; a boundary can be "
                "drawn for 2."
            )
        ax = get_axes(ax, figsize=(5.6, 4.4))
        surface = DecisionBoundaryDisplay.from_estimator(
            estimator,
            X,
            response_method="decision_function",
            plot_method="contourf",
            grid_resolution=grid_resolution,
            eps=eps,
            ax=ax,
            cmap="Greys",
            levels=12,
            alpha=0.5,
        )
        return cls(surface, X, y).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the rows and the line where the score meets the threshold."""
        ax = self.surface.ax_ if ax is None else ax
        if ax is not self.surface.ax_:
            self.surface.plot(plot_method="contourf", ax=ax, cmap="Greys", levels=12, alpha=0.5)
        ax.contour(
            self.surface.xx0,
            self.surface.xx1,
            self.surface.response,
            levels=[0.0],
            colors="black",
            linewidths=1.4,
        )
        normal = np.ones(len(self.X), dtype=bool) if self.y is None else self.y == 1
        for mask, colour, label in ((normal, NORMAL, "normal"), (~normal, OUTLIER, "outliers")):
            if mask.any():
                points = self.X[mask]
                ax.scatter(
                    points[:, 0],
                    points[:, 1],
                    s=16,
                    color=colour,
                    edgecolor="white",
                    linewidth=0.5,
                    label=label,
                )
        ax.plot([], [], color="black", linewidth=1.4, label="threshold")
        ax.legend(frameon=True, fontsize="small", loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self

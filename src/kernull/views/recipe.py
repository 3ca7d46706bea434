"""The columns of each view, and how their scaling and kernels are fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.kernels import parse_kernels
from kernull.views.kernel_set import KernelSet, ScaledView, fit_view, names_by_view, parse_widths
from kernull.views.scaling import read_scalings

#: Name of all columns as one view.
WHOLE = "all views together"


@dataclass(frozen=True)
class Recipe:
    """How views of a table become scaled rows and kernels.

    Parameters
    ----------
    views : mapping of str to integer array
        Columns of each view.
    kernels, widths, scaling
        As `kernull.MultiKernelFisherNull` takes them.
    """

    views: Mapping[str, Indices]
    kernels: Any = "rbf"
    widths: Any = "auto"
    scaling: Any = "auto"

    def fit(
        self, X: Array, weight: Array | None = None, width_rows: int | None = None
    ) -> tuple[ScaledView, ...]:
        """Scalings and kernels of every view, by these rows and their positive weights.

        Widths come from the first ``width_rows`` rows; from all by default.
        """
        specs, factors = parse_kernels(self.kernels), parse_widths(self.widths)
        return tuple(
            part
            for name, columns in self.views.items()
            for part in fit_view(
                name,
                columns,
                X,
                specs,
                factors,
                read_scalings(self.scaling, name),
                weight,
                width_rows=width_rows,
            )
        )

    def fit_set(self, X: Array, weight: Array | None = None) -> KernelSet:
        """The same as one set of kernels."""
        views = self.fit(X, weight)
        return KernelSet(views, names_by_view(views))

    def whole(self) -> Recipe:
        """All columns that the views read as one view; no view where there is one alone."""
        if len(self.views) < 2:
            return Recipe({}, self.kernels, self.widths, self.scaling)
        return Recipe({WHOLE: columns_read(self.views)}, self.kernels, self.widths, self.scaling)


def columns_read(views: Mapping[str, Indices]) -> Indices:
    """Columns that are part of any view, in increasing order."""
    return np.unique(np.concatenate(list(views.values())))

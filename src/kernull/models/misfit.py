"""Misfit of the views of new rows, by witnesses from a model's training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.calibration import ViewPredictor, witness_rows
from kernull.models.kernels import TableKernels
from kernull.stacks.kernel_set import ScaledView

#: Rows below which nothing can be said of how views go together.
FEWEST = 5
#: Weight, of the largest, that an interior solver leaves where there should be none.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class ViewMisfit:
    """Misfit of rows by view, among the views that a model scores by.

    Zero for views without weight, of which the score knows nothing.
    """

    predictor: ViewPredictor
    columns: tuple[Indices, ...]
    """Columns of the views with weight."""
    place: tuple[int, ...]
    """Where these views stand among those that the model scores by."""
    n_views: int

    @classmethod
    def of(cls, model: Any, kept: Mask) -> ViewMisfit | None:
        """Learn it from the training rows of a `KernelModel`, for the views of some kernels.

        None where there is nothing to fit to: fewer than two views with weight, hardly any rows
        that are known to be normal, or given kernels, of which a model keeps none.
        """
        if not isinstance(model.kernels, TableKernels):
            return None
        kernels, weights = model.kernels.set, model.rule.weights * model.kernels.scale
        used = kept & (weights > NEGLIGIBLE * weights.max())
        columns = {view.name: view.columns for view in kernels.select(used).views}
        rows = _normal_rows(model)
        if len(columns) < 2 or len(rows) < FEWEST:
            return None
        names = list(dict.fromkeys(view.name for view in kernels.select(kept).views))
        views: dict[str, ScaledView] = {}
        for view in kernels.select(used).views:
            # A view may be there in several scalings: the plainest tells best what it was.
            if view.name not in views or view.scaler.kind == "standard":
                views[view.name] = view
        given = [view.scaler.inverse_transform(view.train[rows]) for view in views.values()]
        return cls(
            ViewPredictor.of(given),
            tuple(columns.values()),
            tuple(names.index(name) for name in columns),
            len(names),
        )

    def __call__(self, table: Array) -> tuple[Array, Array]:
        """Misfit of rows (m, V) and of normal rows (w, V)."""
        seen = np.zeros((len(table), self.n_views))
        usual = np.zeros((len(self.predictor.usual), self.n_views))
        seen[:, self.place] = self.predictor.misfit([table[:, own] for own in self.columns])
        usual[:, self.place] = self.predictor.usual
        return seen, usual


def _normal_rows(model: Any) -> Indices:
    """Training rows that stand as witnesses, drawn by their weight."""
    n = model.kernels.n - model.kernels.n_reference  # rows of a reference come last
    weight = None if model.system is None else model.system.row_weight
    if weight is None:
        weight = model.calibration_weight
    landmarks = model.rule.coef.ndim != 1  # whose weights are not kept
    known = weight is not None and not landmarks and len(weight) >= n
    return witness_rows(n, weight[:n] if known else None)

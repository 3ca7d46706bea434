"""Misfit of the views of new rows, by witnesses from a model's training rows."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.calibration import ViewPredictor, witness_rows
from kernull.stacks.kernel_set import KernelSet, ScaledView

__all__ = ["misfit_of"]

#: Rows below which nothing can be said of how views go together.
FEWEST = 5
#: Weight, of the largest, that an interior solver leaves where there should be none.
NEGLIGIBLE = 1e-6
#: The bank asked last, which of its kernels, and their witnesses: rows are often explained one by
#: one, and witnesses cost more than a row.
_latest: tuple[weakref.ref[KernelSet], bytes, ViewPredictor] | None = None


def misfit_of(model: Any, table: Array | None, kept: Mask) -> tuple[Array, Array] | None:
    """Misfit of rows (m, V) and of normal rows (w, V), by view among those of the kept kernels.

    Zero for views without weight, of which the score knows nothing. None where there is nothing
    to fit to: fewer than two views with weight, hardly any rows that are known to be normal, or
    precomputed kernels, of which a model keeps none.
    """
    bank = model.bank_
    if bank is None or table is None:
        return None
    weights = model._scaled_weights()
    used = kept & (weights > NEGLIGIBLE * weights.max())
    columns = {view.name: view.columns for view in bank.select(used).views}
    rows = _normal_rows(model)
    if len(columns) < 2 or len(rows) < FEWEST:
        return None
    witnesses = _witnesses(bank, used, rows)
    names = list(dict.fromkeys(view.name for view in bank.select(kept).views))
    seen, usual = np.zeros((len(table), len(names))), np.zeros((len(rows), len(names)))
    place = [names.index(name) for name in columns]
    seen[:, place] = witnesses.misfit([table[:, own] for own in columns.values()])
    usual[:, place] = witnesses.usual
    return seen, usual


def _normal_rows(model: Any) -> Indices:
    """Rows of the bank that stand as witnesses, drawn by their weight."""
    n = model.bank_.n - model._n_reference_kept  # rows of a reference come last
    weight = getattr(model, "_row_weight", None)
    if weight is None:
        weight = model._calibration_weight
    landmarks = np.ndim(getattr(model, "coef_", ())) != 1  # whose weights are not kept
    known = weight is not None and not landmarks and len(weight) >= n
    return witness_rows(n, weight[:n] if known else None)


def _witnesses(bank: KernelSet, used: Mask, rows: Indices) -> ViewPredictor:
    """ViewPredictor from these rows of the views of the used kernels, as they were given."""
    global _latest
    known = _latest
    if known is None or known[0]() is not bank or known[1] != used.tobytes():
        views: dict[str, ScaledView] = {}
        for view in bank.select(used).views:
            # A view may be there in several scalings: the plainest tells best what it was.
            if view.name not in views or view.scaler.kind == "standard":
                views[view.name] = view
        given = [view.scaler.inverse_transform(view.train[rows]) for view in views.values()]
        known = weakref.ref(bank), used.tobytes(), ViewPredictor.of(given)
        _latest = known
    return known[2]

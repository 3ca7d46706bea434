"""Misfit of the views of new rows, by witnesses from a model's training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array, Mask
from kernull.calibration import Witnesses, witness_rows

__all__ = ["misfit_of"]

#: Rows below which nothing can be said of how views go together.
FEWEST = 5
#: Weight, of the largest, that an interior solver leaves where there should be none.
NEGLIGIBLE = 1e-6


def misfit_of(model: Any, table: Array | None, kept: Mask) -> tuple[Array, Array] | None:
    """Misfit of rows (m, V) and of normal rows (w, V), by view among those of the kept kernels.

    Zero for views without weight, of which the score knows nothing. None where there is nothing
    to fit to: fewer than two views with weight, hardly any rows, or precomputed kernels, of which
    a model keeps none.
    """
    bank = model.bank_
    if bank is None or table is None:
        return None
    weights = model._scaled_weights()
    used = kept & (weights > NEGLIGIBLE * weights.max())
    views = {view.name: view for view in bank.select(used).views}
    # Rows of a reference come last; landmarks are taken as they are.
    last = model._n_reference if np.ndim(getattr(model, "coef_", ())) == 1 else 0
    pick = witness_rows(bank.n - last)
    if len(views) < 2 or len(pick) < FEWEST:
        return None
    witnesses = Witnesses.of(
        [view.scaler.inverse_transform(view.train[pick]) for view in views.values()]
    )
    seen = witnesses.misfit([table[:, view.columns] for view in views.values()])
    names = list(dict.fromkeys(view.name for view in bank.select(kept).views))
    place = [names.index(name) for name in views]
    out = np.zeros((len(seen), len(names))), np.zeros((len(pick), len(names)))
    out[0][:, place], out[1][:, place] = seen, witnesses.usual
    return out

"""Agreement of the views of new rows, by witnesses from a model's training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array, Mask
from kernull.calibration import Witnesses
from kernull.estimators._arrays import as_numpy

__all__ = ["agreement_of"]

#: Training rows that stand as witnesses: enough to know how views go together, and few enough
#: that judging a million rows costs about as much as scoring them.
WITNESSES = 200


def agreement_of(model: Any, table: Array | None, kept: Mask) -> tuple[Array, Array] | None:
    """Agreement of rows (m, J) and of normal rows (w, J), by kernel among the kept ones.

    None where there is nothing to agree with: fewer than two views with weight, or precomputed
    kernels, of which a model keeps none.
    """
    bank = model.bank_
    if bank is None or table is None or not hasattr(model, "ridge_"):
        return None
    weights = as_numpy(model.weights_)
    used = kept & (weights > 0)
    names = np.asarray(bank.kernel_views, dtype=object)[used]
    index = {name: v for v, name in enumerate(dict.fromkeys(names))}
    if len(index) < 2:
        return None
    w = min(bank.n, WITNESSES)
    part = bank.select(used).take(np.linspace(0, bank.n - 1, w).round().astype(np.intp))
    witnesses = Witnesses.of(
        np.stack([K for _, K in part.matrices()]),
        weights[used],
        np.array([index[name] for name in names], dtype=np.intp),
        float(model.ridge_) * w / model._stack_shape[1],  # the ridge grows with the rows
    )
    seen, usual = np.zeros((len(table), len(kept))), np.zeros((w, len(kept)))
    step = witnesses.rows_at_once
    for start in range(0, len(table), step):
        rows = slice(start, start + step)
        kernels = np.stack([K for _, K in part.matrices(table[rows])])
        seen[rows, used] = witnesses.agreement(kernels)
    usual[:, used] = witnesses.usual
    return seen[:, kept], usual[:, kept]

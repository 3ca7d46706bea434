"""Agreement of the views of new rows, by witnesses from a model's training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array, Mask
from kernull.calibration import Witnesses, view_numbers, witness_rows

__all__ = ["agreement_of"]


def agreement_of(model: Any, table: Array | None, kept: Mask) -> tuple[Array, Array] | None:
    """Agreement of rows (m, J) and of normal rows (w, J), by kernel among the kept ones.

    None where there is nothing to agree with: fewer than two views with weight, or precomputed
    kernels, of which a model keeps none.
    """
    bank = model.bank_
    if bank is None or table is None or not hasattr(model, "ridge_"):
        return None
    weights = model._scaled_weights()
    used = kept & (weights > 0)
    chosen = bank.select(used)
    numbers = view_numbers(chosen)
    if len(np.unique(numbers)) < 2:
        return None
    part = chosen.take(witness_rows(chosen.n))
    kernels = np.stack([K for _, K in part.matrices()])
    ridge = float(model.ridge_) * part.n / model._stack_shape[1]  # it grows with the rows
    witnesses = Witnesses.of(kernels, weights[used], numbers, ridge)
    seen = np.zeros((len(table), len(kept)))
    step = witnesses.rows_at_once
    for start in range(0, len(table), step):
        rows = slice(start, start + step)
        kernels = np.stack([K for _, K in part.matrices(table[rows])])
        seen[rows, used] = witnesses.agreement(kernels)
    usual = model._refitted_agreement
    if usual is None or not kept.all():
        usual = np.zeros((len(witnesses.usual), len(kept)))
        usual[:, used] = witnesses.usual
    return seen[:, kept], usual[:, kept]

r"""Leave-one-out kernel by kernel: what each view gives a row that the model did not see.

Let :math:`G = (\rho W^{-1} + K_b)^{-1}` (W holds the row weights) and a = G1. Removing row i turns
the coefficients into

.. math:: a^{-i} = a - \kappa_i\, G e_i, \qquad \kappa_i = a_i / G_{ii}

(its i-th entry is zero, as it must be), so the contribution of kernel j to the projection of row
i by the model that never saw it is

.. math:: c_{ij}^{-i} = b_j \left[ (K_j a)_i - \kappa_i (K_j G)_{ii} \right].

The diagonal of K_j G is a row-by-row dot product of two symmetric matrices: all J n^2 terms
together cost no more than one product K_j v a kernel. Their sum over j is
:math:`1 - a_i / G_{ii}`, the textbook formula.

A row is left out whole, whatever its weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration.left_out_scores import not_above_own
from kernull.mkl import RidgeInverse
from kernull.stacks import Stack

#: Bytes of kernel rows held at once.
CHUNK_BYTES = 64 * 2**20


def leave_one_out_contributions(stack: Stack, weights: Array, inverse: RidgeInverse) -> Array:
    r"""Contribution of each kernel to each training row's leave-one-out projection: (n, J).

    .. math:: c_{ij}^{-i} = b_j \left[ (K_j a)_i - \kappa_i (K_j G)_{ii} \right]

    Exact at fixed kernel weights b; rows that this puts above their score as new rows are lowered
    to it (`not_above_own`). Rows add up to the leave-one-out projections.
    """
    G = inverse.inverse
    a = inverse.coef()
    kappa = a / inverse.diagonal
    out = np.empty((inverse.n, stack.J))
    for rows in _chunks(np.arange(inverse.n), stack):
        K = stack.rows(rows)  # (J, rows, n)
        out[rows] = (K @ a).T - kappa[rows, None] * np.einsum("jik,ik->ij", K, G[rows])
    own = 1.0 - inverse.ridge / inverse.row_weight * a
    return not_above_own(out * weights, own)


def attributed_contributions(
    stack: Stack, weights: Array, coef: Array, projections: Array, rows: Indices
) -> Array:
    r"""The same where G cannot be had: leave-one-out projections, divided among the kernels.

    .. math::

       c_{ij}^{-i} \approx b_j (K_j a)_i - (y_i - y_i^{-i})\,
       \frac{b_j k_j(x_i, x_i)}{\sum_l b_l k_l(x_i, x_i)}

    What a row gives itself is shared out in proportion to b_j k_j(x_i, x_i). Sums are those given,
    to rounding; the shares are exact to first order in 1/ridge, which is large (delta n) wherever n
    is. ``projections`` are those of the m ``rows``; the result has shape (m, J).
    """
    out, own = _with_own(stack, coef, rows)
    out = out * weights
    own = np.maximum(own * weights, np.finfo(float).tiny)
    surplus = out.sum(axis=1) - projections
    return np.asarray(out - surplus[:, None] * own / own.sum(axis=1, keepdims=True))


def _with_own(stack: Any, coef: Array, rows: Indices) -> tuple[Array, Array]:
    """(K_j a)_i and k_j(x_i, x_i) of some rows, both of shape (m, J)."""
    if hasattr(stack, "combined_there"):  # kernels stay on their device
        return stack[rows].products(coef).T, stack.diagonal()[:, rows].T
    out, own = np.empty((len(rows), stack.J)), np.empty((len(rows), stack.J))
    place = 0
    for part in _chunks(rows, stack):
        K = stack.rows(part)
        end = place + len(part)
        out[place:end] = (K @ coef).T
        own[place:end] = K[:, np.arange(len(part)), part].T
        place = end
    return out, own


def _chunks(rows: Indices, stack: Stack) -> list[Indices]:
    step = max(1, CHUNK_BYTES // (8 * stack.n * stack.J))
    return [rows[start : start + step] for start in range(0, len(rows), step)]

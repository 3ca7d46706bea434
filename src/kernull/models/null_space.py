r"""The unregularised Fisher null-space: a = pinv(K) 1, and its leave-one-out projections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from kernull._typing import Array

#: A share of a row outside the range of the kernel that is more than rounding.
_OUTSIDE = 1e-8


@dataclass(frozen=True)
class NullSpace:
    """The pseudo-inverse solution, and what leave-one-out needs of it."""

    coef: Array
    rank: int
    inverse: Array
    """Diagonal of the pseudo-inverse of the (row-scaled) kernel."""
    outside: Array
    """Diagonal of the projector onto its null space."""
    residual: Array
    """What the (row-scaled) right-hand side has in its null space."""


def null_space(K: Array, weight: Array | None = None, *, single: bool = False) -> NullSpace:
    """Solve K a = 1 in the least-squares sense, with the shortest a.

    A row of weight w counts as w copies; ``single`` says that K was kept in single precision, which
    raises the cut-off of eigenvalues.
    """
    root = np.ones(len(K)) if weight is None else np.sqrt(weight)
    values, vectors = eigh(K * root[:, None] * root, check_finite=False)
    epsilon = float(np.finfo(np.float32 if single else np.float64).eps)
    real = values > len(K) * epsilon * float(np.abs(values).max())
    values, vectors = values[real], vectors[:, real]
    share = vectors.T @ root
    return NullSpace(
        coef=root * (vectors @ (share / values)),
        rank=int(real.sum()),
        inverse=(vectors**2) @ (1.0 / values),
        outside=np.maximum(1.0 - (vectors**2).sum(axis=1), 0.0),
        residual=root - vectors @ share,
    )


def null_space_leave_one_out(space: NullSpace, weight: Array | None = None) -> Array:
    r"""Projection of each row by the null space of the others.

    The limit of the closed form of the ridge solution as the ridge goes to zero. With P the
    projector onto the null space of K,

    .. math::

       1 - y_i^{-i} = \begin{cases}
           (P1)_i / P_{ii} & P_{ii} > 0 \text{ (the others span the row)} \\
           a_i / (K^+)_{ii} & P_{ii} = 0
       \end{cases}

    whatever the weight of the row.
    """
    w = np.ones(len(space.coef)) if weight is None else np.asarray(weight, dtype=float)
    lost = np.where(
        space.outside > _OUTSIDE,
        np.sqrt(w) * space.residual / np.maximum(w * space.outside, 1e-300),
        space.coef / (w * np.maximum(space.inverse, 1e-300)),
    )
    return np.asarray(1.0 - lost)

r"""Kernels on a common scale: each divided by what two different rows have in common on average.

.. math:: \tilde K_j = K_j / m_j^\alpha, \qquad m_j = \frac{1}{n (n - 1)} \sum_{i \ne k} K_{j,ik}

The learned weights follow :math:`u_j = a'K_j a`. For coefficients that are all alike this is the
sum of the entries of K_j, largest for the kernel that finds all rows alike: the widest one.
Divided by m_j, the off-diagonal parts of all kernels sum to the same, and what is left to compare
is how a kernel's similarities are distributed over the rows, and its diagonal, 1/m_j, which
favours narrow kernels. :math:`\alpha` between 0 and 1 lies between the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.operators.base import Stack

#: Exponents by name.
NORMALISATIONS = {"none": 0.0, "offdiagonal": 1.0}
#: Means below this share of the diagonal count as this much: a kernel so narrow that it finds no
#: two rows alike would otherwise be blown up until it drowned ridge and rounding alike.
MEAN_FLOOR = 1e-6
#: Rows that the mean absolute entry is taken over, where the mean itself is no measure.
SIZE_ROWS = 500


def read_normalisation(normalize: Any) -> float:
    """The exponent that ``normalize`` stands for."""
    if isinstance(normalize, str) and normalize in NORMALISATIONS:
        return NORMALISATIONS[normalize]
    is_number = isinstance(normalize, int | float | np.number) and not isinstance(normalize, bool)
    if is_number and 0.0 <= normalize <= 1.0:
        return float(normalize)
    raise ValueError(
        f"normalize: got {normalize!r}; expected one of {sorted(NORMALISATIONS)}, or an exponent "
        "from 0 (none) to 1 (offdiagonal)."
    )


def off_diagonal_means(stack: Stack, row_weight: Array | None = None) -> Array:
    r"""Mean kernel value of two different rows, for each kernel: one pass.

    .. math::

       m_j = \frac{w'K_jw - \sum_i \min(w_i, 1) w_i K_{j,ii}}{\sum_i w_i (W - \min(w_i, 1))},
       \qquad W = \sum_i w_i

    A weight counts as that many copies of a row, each of which meets the others, as in the mean
    distance; with unit weights this is the plain mean.

    Parameters
    ----------
    stack : Stack
        J kernels of n rows.
    row_weight : array of shape (n,), optional

    Returns
    -------
    array of shape (J,)
    """
    w = np.ones(stack.n) if row_weight is None else np.asarray(row_weight, dtype=float)
    itself = np.minimum(w, 1.0)  # a copy of a row does not meet itself
    total = stack.products(w) @ w - stack.diagonal() @ (itself * w)
    pairs = float(w @ (w.sum() - itself))
    return np.asarray(total / pairs) if pairs > 0 else np.zeros(stack.J)  # of one row


def normalising_factors(stack: Stack, exponent: float, row_weight: Array | None = None) -> Array:
    """Factors of the kernels, of shape (J,): the mean off-diagonal entry to minus a power.

    The exponent is in [0, 1]; 0 leaves kernels as they are. Weights are numbers of copies.

    Parameters
    ----------
    stack : Stack
        J kernels of n rows.
    exponent : float
        Power that the mean entry is taken to.
    row_weight : array of shape (n,), optional

    Returns
    -------
    array of shape (J,)
    """
    if exponent == 0.0:
        return np.ones(stack.J)
    means = off_diagonal_means(stack, row_weight)
    floor = MEAN_FLOOR * stack.diagonal().mean(axis=1)
    # Kernels of centred columns, linear or cosine, have a mean of nought or below.
    for j in np.flatnonzero(means <= floor):
        means[j] = _mean_size(stack, int(j), row_weight)
    return np.asarray(np.maximum(means, np.maximum(floor, np.finfo(float).tiny)) ** -exponent)


def _mean_size(stack: Stack, j: int, row_weight: Array | None) -> float:
    """Mean absolute entry of one kernel off its diagonal, by at most `SIZE_ROWS` of its rows."""
    w = np.ones(stack.n) if row_weight is None else np.asarray(row_weight, dtype=float)
    rows = np.linspace(0, stack.n - 1, min(stack.n, SIZE_ROWS)).astype(np.intp)
    values = np.abs(stack.rows(rows)[j])
    values[np.arange(len(rows)), rows] = 0.0
    pairs = float(w[rows] @ (w.sum() - w[rows]))
    return float(w[rows] @ values @ w) / pairs if pairs > 0 else 0.0

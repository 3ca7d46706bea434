"""The nearest of all rows, in blocks: no matrix of new rows by training rows is kept."""

from __future__ import annotations

import numpy as np

from kernull._typing import Array, Indices, Mask

#: New rows and training rows of a block of distances: 4 MB of float64, which stay in the cache.
#: 2,000 new rows against 100,000 of 30 columns take 0.26 s on one core; with float32, 0.13 s.
NEW_ROWS, TRAINING_ROWS = 256, 2048


def nearest_distances(
    new: Array, rows: Array, centre: Array, neighbours: Mask | None = None
) -> Array:
    r"""Distance of each new row to the nearest training row.

    The nearest is the row of least :math:`\|y\|^2 - 2x'y`; its distance is computed again from
    differences, so that a distance of zero is zero.

    Parameters
    ----------
    new : array of shape (m, d)
    rows : array of shape (n, d)
        Training rows.
    centre : array of shape (d,)
        Subtracted from all rows: fewer digits are lost in products.
    neighbours : boolean array of shape (n,), optional
        Which rows may be the nearest; all by default.

    Returns
    -------
    distances : array of shape (m,)

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> nearest_distances(np.array([[3.0, 0.0], [3.0, 4.0]]), rows, np.zeros(2))
    array([3., 0.])
    """
    out = np.empty(len(new))
    for start in range(0, len(new), NEW_ROWS):
        part = slice(start, start + NEW_ROWS)
        off = new[part] - rows[_nearest(new[part] - centre, rows, centre, neighbours)]
        out[part] = np.sqrt(np.einsum("ij,ij->i", off, off))
    return out


def _nearest(new: Array, rows: Array, centre: Array, neighbours: Mask | None) -> Indices:
    """Index of the nearest training row of each of a block of centred new rows."""
    left, place = -2.0 * new, np.arange(len(new))
    nearest, least = np.zeros(len(new), dtype=np.intp), np.full(len(new), np.inf)
    for start in range(0, len(rows), TRAINING_ROWS):
        block = rows[start : start + TRAINING_ROWS] - centre
        squares = np.einsum("ij,ij->i", block, block)
        if neighbours is not None:
            squares[~neighbours[start : start + TRAINING_ROWS]] = np.inf
        relative = left @ block.T
        relative += squares
        column = relative.argmin(axis=1)
        value = relative[place, column]
        nearer = value < least
        nearest[nearer], least[nearer] = column[nearer] + start, value[nearer]
    return nearest

"""The nearest of all rows, in blocks: no matrix of new rows by training rows is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._containers import tensor_on
from kernull._typing import Array

#: New rows and training rows of a block of distances: 4 MB of float64, which stay in the cache.
#: 2,000 new rows against 100,000 of 30 columns take 0.26 s on one core; with float32, 0.13 s.
BLOCK = 256, 2048
#: The same on a GPU: 2 GB.
BLOCK_ON_DEVICE = 4096, 65_536


def nearest_distances(
    new: Any, rows: Any, centre: Any, neighbours: Any = None, device: Any = None
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
    device : torch device, optional
        Where distances are computed, if not on the host.

    Returns
    -------
    distances : array of shape (m,)

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> nearest_distances(np.array([[3.0, 0.0], [3.0, 4.0]]), rows, np.zeros(2))
    array([3., 0.])
    """
    out, size = np.empty(len(new)), BLOCK
    rows = rows if neighbours is None else rows[neighbours]
    if device is not None:
        size = BLOCK_ON_DEVICE
        new, rows, centre = (tensor_on(values, device) for values in (new, rows, centre))
    for start in range(0, len(new), size[0]):
        part = slice(start, start + size[0])
        distances = _to_nearest(new[part], rows, centre, size[1])
        out[part] = distances if device is None else distances.cpu()
    return out


def _to_nearest(new: Any, rows: Any, centre: Any, size: int) -> Any:
    """Distance of each of a block of new rows to the nearest training row: arrays or tensors."""
    left, place = -2.0 * (new - centre), range(len(new))
    nearest: Any = None
    for start in range(0, len(rows), size):
        block = rows[start : start + size] - centre
        relative = left @ block.T
        relative += (block * block).sum(1)
        column = relative.argmin(1)
        value = relative[place, column]
        if nearest is None:
            nearest, least = column, value
        nearer = value < least
        nearest[nearer], least[nearer] = column[nearer] + start, value[nearer]
    off = new - rows[nearest]
    return (off * off).sum(1) ** 0.5

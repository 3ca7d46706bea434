r"""The width of the kernel that a row would have met, had it not been among the training rows.

Without row i the scaling differs, and all distances of the others with it. A scaling gives its own
training rows the same mean squared distance whichever rows they are, so the others lie further
apart than in the plain scaling by about

.. math:: c_i = \sqrt{m / m_{(-i)}}

with m the mean squared distance of all rows and :math:`m_{(-i)}` that of the others. Distances of
row i to them grow by c_i as well, and so does the width: what is left is the row's own move.

The coefficients without row i come from the plain kernels of the others. The width must therefore
be the plain one times c_i and nothing else. (A median without row i is a percent larger or
smaller. Refitted kernels would follow it and score much the same; plain coefficients of a kernel
that interpolates do not, and the errors of left-out scores are three to ten times as large.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array


def left_out_widths(
    Z: Array, widths: Any, *, sample_weight: Array | None = None, groups: Any = None
) -> Array:
    """Width of each row's own left-out kernel, for each of F widths of all rows: (n, F).

    Z are the rows of one view in the scaling of all of them; weights are positive, rows of equal
    ``groups`` are left out together.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[-1.0], [0.0], [1.0], [8.0]])
    >>> left_out_widths(Z, [0.5])[:, 0].round(2)  # the last row makes up most of the unit
    array([0.5 , 0.46, 0.44, 2.17])
    """
    n = len(Z)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    group = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    count = int(group.max()) + 1
    Z = Z - weight @ Z / weight.sum()
    own, sizes = np.bincount(group, weight, count), np.einsum("ij,ij->i", Z, Z)
    squares = np.bincount(group, weight * sizes, count)
    if count == n:
        outside2 = np.bincount(group, weight**2 * sizes, count)
    else:
        outside = np.zeros((count, Z.shape[1]))
        np.add.at(outside, group, weight[:, None] * Z)
        outside2 = np.einsum("ij,ij->i", outside, outside)
    total, rest = weight.sum(), np.maximum(weight.sum() - own, 1e-300)
    # Sums of all rows are zero: those of the others are minus the group's own.
    spread = (squares.sum() - squares) / rest - outside2 / rest**2
    whole = squares.sum() / total
    ratio = np.divide(whole, spread, out=np.ones(count), where=spread > 1e-12 * whole)
    return np.asarray(np.sqrt(ratio)[group][:, None] * np.asarray(widths, dtype=float))

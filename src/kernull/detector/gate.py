r"""Views, and the whole, count by the odds that rows of mixed parts differ from rows.

.. math:: \min(\max(\sqrt{A / (1 - A)}, 1/2), 2)

A is the area under the ROC curve between rows left out and mixed rows, by the best score. Mixed
rows of a view have each cell from another row, mixed rows of the whole each view. A view of noise
may take most of the learned weight, since a kernel that hardly varies fits targets that are all one
best; its rows look like rows of mixed cells. Where views belong together, the whole sees what no
view does; where rows are fewer than columns, it sees less than they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from kernull._typing import Array, Indices

#: Mixed rows: as many as there are rows, but at least 500 and at most 1,000.
MIXED_ROWS = (500, 1000)
#: Area beyond which a view counts no more: twice as much as at an area of one half. With three
#: times, a row 7 deviations off in 4 columns of noise beside 400 correlated ones is flagged in 61%
#: instead of 73%; with a lower limit of a tenth instead of a half, in 25 to 36%.
AREA, MOST = 0.8, 2.0


def draw_parts(n: int, d: int, random_state: int = 0) -> Indices:
    """The row, of n, that each of d parts of each mixed row comes from, of shape (m, d).

    Parameters
    ----------
    n : int
    d : int
        Number of parts.
    random_state : int

    Returns
    -------
    integer array of shape (m, d)
    """
    size = (int(np.clip(n, *MIXED_ROWS)), d)
    return np.random.default_rng(random_state).integers(n, size=size)


def mixed_rows(X: Array, part: Indices) -> Array:
    """Rows whose parts come from different rows.

    Parameters
    ----------
    X : array of shape (n, d)
        In random order.
    part : integer array of shape (d,)
        Number of the part of each column, below d; columns of a part come from one row.

    Returns
    -------
    mixed : array of shape (m, d)
    """
    return np.asarray(np.take_along_axis(X, draw_parts(*X.shape)[:, part], axis=0))


def factors_by_odds(left_out: Array, mixed: Array, view: Any) -> Array:
    """What the weight of each score is multiplied by, of shape (C,), from 1/2 to 2.

    Parameters
    ----------
    left_out, mixed : array of shape (n, C) and (m, C)
        Evidence against rows that were left out, and mixed rows.
    view : array of shape (C,)
        View of each score; the scores of a view have the factor of the best of them.

    Examples
    --------
    >>> factors_by_odds(np.array([[0.0], [1.0]]), np.array([[2.0], [0.5]]), ["a"]).round(2)
    array([1.73])
    """
    n, m = len(left_out), len(mixed)
    # Evidence that differs by rounding alone is equal.
    ranks = rankdata(np.round(np.vstack([left_out, mixed]), 9), axis=0)
    area = (ranks[n:].sum(axis=0) - 0.5 * m * (m + 1)) / (n * m)
    view = np.asarray(view)
    best = np.array([area[view == v].max() for v in view]).clip(1.0 - AREA, AREA)
    return np.asarray(np.sqrt(best / (1.0 - best)))

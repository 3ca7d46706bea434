"""Views whose rows cannot be told from rows of mixed cells count less.

A view of noise may take most of the learned weight, since a kernel that hardly varies fits targets
that are all one best. Its rows look like rows of which each cell comes from another row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from kernull._typing import Array, Indices

#: Rows of mixed cells: as many as there are rows, but at least 500 and at most 1,000.
MIXED_ROWS = (500, 1000)
#: A view counts in full from this separation (2A - 1, with the area A under the ROC curve) on, in
#: proportion below, and never less than half. A lower floor misses odd rows: with a tenth, 25 to
#: 36% of rows are flagged that are 7 deviations off in a view of 4 columns beside one of 400.
FULL, LEAST = 0.1, 0.5


def mixed_cells(n: int, d: int, random_state: int = 0) -> Indices:
    """The row that each cell of each mixed row comes from, of shape (m, d)."""
    size = (int(np.clip(n, *MIXED_ROWS)), d)
    return np.random.default_rng(random_state).integers(n, size=size)


def separation(left_out: Array, mixed: Array) -> Array:
    """2A - 1 of each kind of evidence, between left-out rows (n, C) and mixed rows (m, C).

    Positive where there is more evidence against mixed rows.

    Examples
    --------
    >>> separation(np.array([[0.0], [1.0]]), np.array([[2.0], [0.5]]))
    array([0.5])
    """
    n, m = len(left_out), len(mixed)
    ranks = rankdata(np.vstack([left_out, mixed]), axis=0)
    areas = (ranks[n:].sum(axis=0) - 0.5 * m * (m + 1)) / (n * m)
    return np.asarray(2.0 * areas - 1.0)


def view_factors(left_out: Array, mixed: Array, view: Indices, columns: Sequence[int]) -> Array:
    """What the weights of each view are multiplied by, of shape (V,).

    Parameters
    ----------
    left_out, mixed : array of shape (n, C) and (m, C)
        Evidence against rows that were left out, and rows of mixed cells.
    view : integer array of shape (C,)
        View of each kind of evidence.
    columns : sequence of length V
        Number of columns of each view that vary: of one alone nothing can be mixed.
    """
    apart = separation(left_out, mixed)
    best = np.array([apart[view == v].max() for v in range(len(columns))])
    return np.where(np.asarray(columns) > 1, np.clip(best / FULL, LEAST, 1.0), 1.0)

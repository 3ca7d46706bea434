"""Nearest neighbours, without scikit-learn's parallel helper.

That helper calls `warnings.resetwarnings` around every tree query, even of one thread. The filters
belong to the process: of several threads, the last one out may leave them empty for good.
"""

from __future__ import annotations

from sklearn.neighbors import KDTree, NearestNeighbors

from kernull._typing import Array, Indices

#: From this many columns on, trees are slower than looking at all rows (scikit-learn's rule).
BRUTE_COLUMNS = 15


def nearest(rows: Array, query: Array, k: int) -> tuple[Array, Indices]:
    """Distances to the k nearest rows, ascending, and their numbers; both of shape (m, k).

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.kernels.neighbours import nearest
    >>> nearest(np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[4.0]]), 2)[1]
    array([[2, 3]])
    """
    if rows.shape[1] > BRUTE_COLUMNS or k >= len(rows) // 2:
        found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(rows).kneighbors(query)
    else:
        found = KDTree(rows, leaf_size=30, metric="euclidean").query(query, k=k)
    return found[0], found[1]

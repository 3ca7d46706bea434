r"""The width of the kernel that a row would have met, had it not been among the training rows.

A width is a factor of the mean distance D, or the median distance to the nearest neighbour. Row i
is one of the rows that set it. Without row i the scaling differs too, but a scaling gives its
own training rows the same mean squared distance whichever rows they are, so distances of the others
in the plain scaling are rescaled to that:

.. math:: s_{(-i)} = s(\text{others}) \sqrt{m / m_{(-i)}}

with m the mean squared distance of all rows and :math:`m_{(-i)}` that of the others. This is near,
not exact: O(n^2) for all rows, where refits would take O(n^3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from kernull._typing import Array, Indices
from kernull.kernels.functions import (
    AUTO_RANGE,
    BLOCK_ROWS,
    auto_factor,
    mean_distance,
    squared_blocks,
    weighted_median,
)

#: Rows beyond which one of them hardly moves a mean or a median.
FEW_ROWS = 500


def left_out_widths(
    Z: Array,
    factors: Iterable[float | str] = ("auto",),
    *,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    groups: Any = None,
    rescale: bool = True,
) -> Array:
    """Width of each row's own left-out kernel, for each factor: (n, factors).

    Z are the rows of one view in the scaling of all of them; ``rescale`` is False for the scaling
    "none", which knows no rows. ``factors`` are those of the mean distance, or "auto", as in
    `KernelSpec.fit`. Weights are positive, of mean one; rows of equal ``groups`` are left out
    together. Beyond `FEW_ROWS` rows, where no single row matters, it is the width of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> left_out_widths(Z, [1.0], rescale=False)[3, 0].round(3)  # of the rows 0, 1, 2
    np.float64(1.333)
    """
    factors = tuple(factors)
    n = len(Z)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    if n > FEW_ROWS:
        mean = mean_distance(Z, metric, weight) or 1.0
        whole = [
            mean * (auto_factor(Z, mean, metric, weight) if isinstance(f, str) else f)
            for f in factors
        ]
        return np.tile(whole, (n, 1))
    group = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    if int(group.max()) + 1 == n:
        group = np.arange(n)  # each row a group of its own, whatever its label
    Z = Z - Z.mean(axis=0)
    totals, inner, nearest = _pass(Z, metric, weight, group)
    size = _sizes(Z, weight, group) if rescale else np.ones(len(inner))
    if len(inner) == n and (weight == 1.0).all():
        return _of_single_rows(totals, nearest, size, factors)
    out = np.empty((len(inner), len(factors)))
    for g in range(len(out)):
        others = group != g
        scale = others.sum() / weight[others].sum()
        rest = weight[others] * scale
        pairs = float(rest @ (rest.sum() - np.minimum(rest, 1.0)))
        total = totals.sum() - 2.0 * totals[~others].sum() + inner[g]
        mean = scale**2 * total / max(pairs, 1e-300) * size[g] or 1.0
        middle = _median_without(nearest, weight, group, g) * size[g]
        automatic = mean * np.clip(middle / mean, *AUTO_RANGE)
        out[g] = [automatic if isinstance(f, str) else mean * f for f in factors]
    return np.asarray(out[group])


def _of_single_rows(
    totals: Array,
    nearest: tuple[Array, Array, Indices],
    size: Array,
    factors: Sequence[float | str],
) -> Array:
    """All at once where no row has a weight or a group."""
    n = len(totals)
    first, second, owner = nearest
    mean = (totals.sum() - 2.0 * totals) / max((n - 1.0) * (n - 2.0), 1.0) * size
    mean = np.where(mean > 0, mean, 1.0)
    low, high = (n - 2) // 2, (n - 1) // 2
    # A row that is nobody's nearest takes one value away from those in order, and changes none.
    ordered, place = np.sort(first), np.empty(n, dtype=np.intp)
    place[np.argsort(first, kind="stable")] = np.arange(n)
    middle = ordered[low + (place <= low)] / 2 + ordered[high + (place <= high)] / 2
    some = np.unique(owner) if np.isfinite(first).all() else np.arange(n)
    values = np.tile(first, (len(some), 1))
    values[np.searchsorted(some, owner), np.arange(n)] = second
    values[np.arange(len(some)), some] = np.inf  # the last in order: the median is the others'
    known = np.isfinite(values).sum(axis=1) == n - 1
    values.partition((low, high), axis=1)
    middle[some] = np.where(known, values[:, low] / 2 + values[:, high] / 2, 0.0)
    middle = middle * size
    automatic = np.clip(middle, AUTO_RANGE[0] * mean, AUTO_RANGE[1] * mean)
    return np.column_stack([automatic if isinstance(f, str) else mean * f for f in factors])


def _sizes(Z: Array, weight: Array, group: Indices) -> Array:
    """Root of the mean squared distance of all rows over that without each group."""
    groups = int(group.max()) + 1
    sums = np.zeros((groups, Z.shape[1]))
    np.add.at(sums, group, weight[:, None] * Z)  # n is small
    squares = np.bincount(group, weight * np.einsum("ij,ij->i", Z, Z), groups)
    W, total, centre = weight.sum(), squares.sum(), sums.sum(axis=0)
    rest = W - np.bincount(group, weight, groups)
    spread = (total - squares) / rest - (((centre - sums) / rest[:, None]) ** 2).sum(axis=1)
    whole = total / W - (centre / W) @ (centre / W)
    ratio = np.divide(whole, spread, out=np.ones(groups), where=spread > 1e-12 * whole)
    return np.asarray(np.sqrt(ratio))


def _pass(
    Z: Array, metric: str, weight: Array, group: Indices
) -> tuple[Array, Array, tuple[Array, Array, Indices]]:
    """w_i sum_k w_k d_ik of each row, the same within groups, and the two nearest of each row.

    The second nearest is that outside the group of the nearest; copies are no neighbours.
    """
    n = len(Z)
    totals, inner = np.empty(n), np.zeros(int(group.max()) + 1)
    first, second, owner = np.full(n, np.inf), np.full(n, np.inf), np.full(n, -1)
    size = np.linalg.norm(Z, axis=1) if metric == "euclidean" else np.abs(Z).sum(axis=1)
    copy = 1e-7 * float(size.max(initial=0.0))
    single = len(inner) == n
    squared = squared_blocks(Z) if metric == "euclidean" else None
    for start in range(0, n, BLOCK_ROWS):
        rows = np.arange(start, min(start + BLOCK_ROWS, n))
        if squared is None:
            block = pairwise_distances(Z[rows], Z, metric=metric)
        else:
            block = np.sqrt(squared(slice(start, start + BLOCK_ROWS), slice(None)))
        block[np.arange(len(rows)), rows] = 0.0
        totals[rows] = weight[rows] * (block @ weight)
        if not single:
            same = group[rows][:, None] == group
            np.add.at(inner, group[rows], weight[rows] * (np.where(same, block, 0.0) @ weight))
        block[block <= copy] = np.inf
        place = block.argmin(axis=1)
        first[rows], owner[rows] = block[np.arange(len(rows)), place], group[place]
        if single:
            block[np.arange(len(rows)), place] = np.inf
        else:
            block[group[place][:, None] == group] = np.inf
        second[rows] = block.min(axis=1)
    return totals, inner, (first, second, owner)


def _median_without(
    nearest: tuple[Array, Array, Indices], weight: Array, group: Indices, g: int
) -> float:
    first, second, owner = nearest
    kept = group != g
    values = np.where(owner == g, second, first)[kept]
    if not len(values) or not np.isfinite(values).all():  # the others are copies of one row
        return 0.0
    if (weight == weight[0]).all():
        return float(np.median(values))
    return weighted_median(values, weight[kept])

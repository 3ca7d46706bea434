r"""Squared distances of each row to all others under a scaling that never saw the row.

Leave-one-out at a fixed scaling is not leave-one-out: a covariance that has seen row i draws it
towards the others. `left_out_distances` gives, for every row i,

.. math:: d^2_{(-i)}(i, k) = \| T_{(-i)}(x_i) - T_{(-i)}(x_k) \|^2

where :math:`T_{(-i)}` is the `ViewScaler` fitted without row i (or without the group of row i), in
closed form: O(n^2 min(n, d)) for all rows, in blocks of rows. The result is not symmetric.

=============== ==================================================================================
``none``        exact: the plain distances
``standard``    exact
``whiten-raw``  exact, Ledoit-Wolf's shrinkage refitted for every row
``whiten``      exact up to `FEW` rows; beyond them near (shrinkage followed to first order, small
                entries one by one): squared distances off by a percent, by five at most
``quantile``    exact where n or d is small, else near: off by about 1/n
=============== ==================================================================================

With groups, ``standard`` keeps its closed form and the other scalings are refitted once for each
group of more than one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.calibration.left_out_quantile import quantile_rows
from kernull.calibration.left_out_whitening import FEW, SMALL, whiten_raw_rows, whiten_rows
from kernull.calibration.left_out_wide import standard_wide, whiten_wide
from kernull.views.scaling import (
    ROUNDING,
    SCALINGS,
    ViewScaler,
    constant_columns,
    no_rule_for,
    unseen_step,
)

#: Bytes that a block of distances may take.
BLOCK_BYTES = 32 * 2**20
#: Columns up to which squares and values are kept one above the other.
STACKED_COLUMNS = 512
#: Trust below which products of it, or of its inverse, would be no numbers.
LEAST_TRUST = 1e-100
#: Share of a row's largest squared distance that is rounding.
COPY = 1e-14

Rows = Callable[[Indices], Array]


def trust(sample_weight: Any, n: int) -> Array:
    """Row weights of mean one: how much each row counts against the others.

    Only ratios matter, so a constant weight is no weight at all.

    Examples
    --------
    >>> trust([2.0, 2.0, 8.0], 3)
    array([0.5, 0.5, 2. ])
    """
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n,) or not np.isfinite(weight).all() or not (weight > 0).all():
        raise ValueError(
            f"sample_weight: got shape {weight.shape}; expected {(n,)}, positive numbers. Leave "
            "rows of weight zero out beforehand: they take no part."
        )
    if (weight == weight[0]).all():
        return np.ones(n)
    return np.asarray(np.maximum(weight * (n / weight.sum()), LEAST_TRUST))


def read_groups(groups: Any, n: int) -> Indices:
    """Number of the group of each row, from 0; a group of its own for each row where None.

    Every row needs a label: NaN and None are refused, not taken for one group more.
    """
    if groups is None:
        return np.arange(n)
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups: got shape {labels.shape}; expected {(n,)}, one label per row.")
    if labels.dtype.kind not in "biu":
        # A list as it came: next to text, NumPy makes a text of NaN.
        given = groups if isinstance(groups, list | tuple) else labels
        lost = [row for row, label in enumerate(given) if is_no_label(label)]
        if lost:
            raise ValueError(
                f"groups: {len(lost):,} of {n:,} rows have no label (first: row {lost[0]}, "
                f"{given[lost[0]]!r}); expected one for every row. Give rows that belong to no "
                "other a label of their own."
            )
    numbers = np.ravel(np.unique(labels, return_inverse=True)[1]).astype(np.intp)
    if numbers.max(initial=0) < 1 and n > 1:
        raise ValueError("groups: all rows are of one group; expected at least two groups.")
    return numbers


def is_no_label(label: Any) -> bool:
    """Whether a label is none: None, NaN, NaT or pandas' NA."""
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA neither does nor does not
        return True


@dataclass(frozen=True)
class LeftOutDistances:
    """Left-out squared distances of n rows, computed in blocks of rows on demand.

    Entries between rows of one group, a row and itself among them, are infinite: a kernel of the
    distance is zero there, and no row is its own neighbour.
    """

    n: int
    group: Indices
    _rows: Rows
    scaled: bool = True
    """Whether no single row can be far beyond all others."""

    @property
    def single(self) -> bool:
        """Whether every row is a group of its own."""
        return int(self.group.max(initial=-1)) + 1 == self.n

    def rows(self, index: Any = None) -> Array:
        """Squared distances of some rows (all by default) to all rows: (r, n)."""
        index = np.arange(self.n) if index is None else np.asarray(index)
        out = self._rows(index)
        # Copies come out at the rounding of |x|^2 + |y|^2 - 2x'y, above or below zero.
        least = COPY * out.max(axis=1) if self.scaled else np.zeros(len(index))
        if self.single:
            out[np.arange(len(index)), index] = np.inf
        else:
            out[self.group[index][:, None] == self.group] = np.inf
        for row in np.flatnonzero(out.min(axis=1) <= least):  # few rows have copies, as a rule
            out[row, out[row] <= least[row]] = 0.0
        return out

    def blocks(self, limit: int = BLOCK_BYTES) -> list[Indices]:
        """Rows in blocks whose distances take at most so many bytes."""
        step = max(1, limit // (8 * self.n))
        return [np.arange(s, min(s + step, self.n)) for s in range(0, self.n, step)]


def left_out_distances(
    kind: str, X: Array, sample_weight: Any = None, groups: Any = None
) -> LeftOutDistances:
    """Squared distances under the scaling of one view fitted without each row.

    X, of shape (n, d), is not scaled yet; of the weights, which are positive, only ratios matter;
    rows with equal ``groups`` are left out together.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.views import ViewScaler
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> Z = ViewScaler.fit("standard", X[1:]).transform(X)  # without row 0
    >>> found = left_out_distances("standard", X).rows([0])[0]
    >>> bool(np.allclose(found[1:], ((Z[0] - Z[1:]) ** 2).sum(axis=1)))
    True
    """
    if kind not in SCALINGS:
        raise ValueError(f"scaling: got {kind!r}; expected one of {SCALINGS}.")
    X = np.asarray(X, dtype=float)
    n, weight, group = len(X), trust(sample_weight, len(X)), read_groups(groups, len(X))
    if kind == "none":
        return LeftOutDistances(n, group, _plain(X), scaled=False)
    constant = constant_columns(X)
    X = X[:, ~constant] if constant.any() else X
    if not X.shape[1]:
        return LeftOutDistances(n, group, lambda index: np.zeros((len(index), n)))
    single_other = n - int(np.bincount(group).max()) < 2  # all its columns are constant
    if single_other or (kind in ("whiten", "whiten-raw") and X.shape[1] == 1):
        kind = "standard"  # the same
    single, wide = int(group.max()) + 1 == n, X.shape[1] > n
    if kind == "standard":
        if single and wide:
            alone = others_constant(X, group)[0]
            return LeftOutDistances(n, group, standard_wide(X, weight, alone))
        return LeftOutDistances(n, group, _standard(X, weight, group))
    if kind not in ("whiten", "whiten-raw", "quantile"):
        raise no_rule_for(kind)
    refit = _refitted(kind, X, weight, group)
    if not single or (kind == "whiten" and n <= FEW and X.shape[1] > SMALL):
        return LeftOutDistances(n, group, refit)
    if kind == "quantile":
        return LeftOutDistances(n, group, quantile_rows(X, weight))
    alone = others_constant(X, group)[0]
    whiten = whiten_wide if wide and X.shape[1] > SMALL else whiten_rows
    make = whiten_raw_rows if kind == "whiten-raw" else whiten
    return LeftOutDistances(n, group, make(X, weight, alone, refit))


def _plain(X: Array) -> Rows:
    Z = X - X.mean(axis=0)
    squares = np.einsum("ij,ij->i", Z, Z)

    def rows(index: Indices) -> Array:
        sizes = squares[index][:, None] + squares
        out = sizes - 2.0 * (Z[index] @ Z.T)
        out[out <= 10 * np.finfo(float).eps * sizes] = 0.0
        return np.asarray(out)

    return rows


def _refitted(kind: str, X: Array, weight: Array, group: Indices) -> Rows:
    """By refits without each group, one after the other: the slow truth."""

    def rows(index: Indices) -> Array:
        out = np.empty((len(index), len(X)))
        for g in np.unique(group[index]):
            mine, others = np.flatnonzero(group[index] == g), group != g
            rest = trust(weight[others], int(others.sum()))
            Z = ViewScaler.fit(kind, X[others], rest).transform(X)
            for place in mine:
                difference = Z - Z[index[place]]
                out[place] = np.einsum("ij,ij->i", difference, difference)
        return out

    return rows


def others_constant(X: Array, group: Indices) -> tuple[Mask, Mask]:
    """Columns that are constant without the group of a row, and that row is off: (n, d).

    Also whether each column varies outside each group, of shape (groups, d).
    """
    groups = int(group.max()) + 1
    alone, varies = np.zeros(X.shape, dtype=bool), np.ones((groups, X.shape[1]), dtype=bool)
    # Three rows of different groups that differ: without any one group, two of them are left.
    first = np.unique(group, return_index=True)[1][:3]
    size = ROUNDING * np.maximum(X.max(axis=0), -X.min(axis=0))
    sure = np.full(X.shape[1], len(first) == 3)
    for a, b in combinations(first, 2):
        sure &= np.abs(X[a] - X[b]) > size
    if not sure.all():
        alone[:, ~sure], varies[:, ~sure] = _constant_outside(X[:, ~sure], group)
    return alone, varies


def _constant_outside(X: Array, group: Indices) -> tuple[Mask, Mask]:
    order = np.argsort(group, kind="stable")
    lowest = highest = X[order]
    if int(group.max()) + 1 < len(X):
        starts = np.searchsorted(group[order], np.arange(group.max() + 1))
        lowest = np.minimum.reduceat(lowest, starts, axis=0)
        highest = np.maximum.reduceat(highest, starts, axis=0)
    low, high = _lowest_outside(lowest), -_lowest_outside(-highest)
    size = np.maximum(np.abs(low), np.abs(high))
    spread = high - low
    constant = (spread <= ROUNDING * size)[group]
    return constant & (np.abs(X - low[group]) > (ROUNDING * size)[group]), spread > 0


def _lowest_outside(lowest: Array) -> Array:
    """From the lowest value of each group to the lowest value of the other groups: (groups, d)."""
    first = lowest.argmin(axis=0)
    columns = np.arange(lowest.shape[1])
    out = np.broadcast_to(lowest[first, columns], lowest.shape).copy()
    rest = lowest.copy()
    rest[first, columns] = np.inf
    out[first, columns] = rest.min(axis=0)
    return out


def variances_without(X: Array, weight: Array, group: Indices) -> Array:
    r"""Variance of each column without each group, of shape (groups, d).

    .. math:: V_g = \frac{W v - q_g}{W_g} - \Big(\frac{m_g}{W_g}\Big)^2

    with :math:`W_g` the weight outside the group, and :math:`m_g, q_g` the group's own sums of wz
    and wz^2. Where a group holds nearly all the variance of a column (one group at most), the
    difference is lost in rounding and the variance is computed from the other rows.
    """
    Z = X - weight @ X / weight.sum()
    squares, groups = weight[:, None] * Z**2, int(group.max()) + 1
    rest, total = (weight.sum() - np.bincount(group, weight))[:, None], squares.sum(axis=0)
    if groups == len(X):  # one row each: its sum is known from its square
        V = np.empty(X.shape)
        V[group] = squares
        V *= 1.0 + np.bincount(group, weight)[:, None] / rest
    else:
        V, sums = np.zeros((groups, X.shape[1])), np.zeros((groups, X.shape[1]))
        np.add.at(V, group, squares)
        np.add.at(sums, group, weight[:, None] * Z)
        V += sums**2 / rest
    V = np.maximum((total - V) / rest, 0.0)
    for g, c in zip(*np.nonzero(V * weight.sum() < 1e-6 * total), strict=True):
        others = group != g
        mean = np.average(X[others, c], weights=weight[others])
        V[g, c] = np.average((X[others, c] - mean) ** 2, weights=weight[others])
    return np.asarray(V)


def _standard(X: Array, weight: Array, group: Indices) -> Rows:
    r"""sum_c (z_ic - z_kc)^2 / V_ic: two products."""
    n = len(X)
    Z = X - weight @ X / weight.sum()
    alone, varies = others_constant(X, group)
    V = variances_without(X, weight, group)
    gain = np.divide(1.0, V, out=np.zeros_like(V), where=(V > 0) & varies)
    step = unseen_step("standard", n) ** 2 if alone.any() else 0.0
    squares = Z**2
    few = X.shape[1] <= STACKED_COLUMNS  # one product: adding two takes its time
    right = np.column_stack([squares, Z, np.ones(n)]).T if few else np.empty((0, n))

    def rows(index: Indices) -> Array:
        A, z = gain[group[index]], Z[index]
        if alone.any():
            A = np.where(alone[index], 0.0, A)
        own = (A * squares[index]).sum(axis=1) + alone[index].sum(axis=1) * step
        if few:
            return np.asarray(np.column_stack([A, -2.0 * A * z, own]) @ right)
        out = A @ squares.T
        out -= 2.0 * (A * z) @ Z.T
        out += own[:, None]
        return np.asarray(out)

    return rows

r"""Normal scores: each column by the ranks of its training values, ties at mid-rank.

With distinct training values :math:`v_1 < \dots < v_m` of a column, and F the weight below a value
plus half of the weight at it, as a share of the whole,

.. math:: z(v_k) = \Phi^{-1}(F(v_k)), \qquad F(v) = \frac{W_{<v} + W_{=v}/2}{W}

linear between the values, and linear beyond the ends with the slope of the outer tenth: far away
is far away, in whatever unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtri

from kernull._runtime import in_threads
from kernull._typing import Array, Indices

Found = TypeVar("Found")

#: Ranks beyond which the slope outside the training range is taken.
OUTER = 0.1
#: Cells whose ranks are found at a time.
RANKED_CELLS = 2**16
#: Cells from which columns are worked on in threads.
MANY_CELLS = 2**20


class Knots(NamedTuple):
    """Values of all columns and their scores, one column after the other."""

    values: Array
    """Distinct training values of each column in increasing order, of shape (K,)."""
    scores: Array
    """Their normal scores, of shape (K,)."""
    starts: Indices
    """Where each column begins, of shape (d + 1,)."""
    slopes: Array
    """Slope below and above the training range of each column, of shape (d, 2)."""


def scores_of_knots(X: Array, sample_weight: Array | None = None) -> tuple[Knots, Array]:
    """Normal scores of the training values, and of the rows themselves, of shape (n, d).

    Constant columns have one knot and slope zero. Of weights only ratios matter.

    Examples
    --------
    >>> import numpy as np
    >>> knots, _ = scores_of_knots(np.array([[1.0], [2.0], [2.0], [9.0]]))
    >>> knots.values, np.round(knots.scores, 2)
    (array([1., 2., 9.]), array([-1.15,  0.  ,  1.15]))
    """
    own = np.empty(X.shape)

    def work(columns: slice) -> tuple[Array, Array, Indices, Array]:
        ranks = _ranks(np.ascontiguousarray(X[:, columns].T), sample_weight)
        share = ranks.middle / (ranks.below[:, -1:] + ranks.at[:, -1:])
        share = np.clip(share, 1e-300, 1.0 - 1e-16)  # next to no weight may lie beyond a value
        scores, values = ndtri(share), ranks.values
        own[:, columns] = ranks.of_rows(scores).T
        first = np.broadcast_to(ranks.starts == np.arange(len(X)), values.shape)
        scores = np.broadcast_to(scores, values.shape)
        slopes, counts = _slopes(ranks, share, scores), first.sum(axis=1)
        if first.all():  # nothing ties
            return values.ravel(), scores.ravel(), counts, slopes
        return values[first], scores[first], counts, slopes

    parts = _for_columns(work, _few_columns(X), X.size)
    counts = np.concatenate([part[2] for part in parts] or [np.empty(0, dtype=np.intp)])
    knots = Knots(
        np.concatenate([part[0] for part in parts] or [np.empty(0)]),
        np.concatenate([part[1] for part in parts] or [np.empty(0)]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        np.vstack([part[3] for part in parts] or [np.empty((0, 2))]),
    )
    return knots, own


class Ranks(NamedTuple):
    """Some columns in increasing order, each a row; runs are entries of equal value.

    What says where runs are is one row, of shape (1, n), where no column has ties nor rows weights.
    """

    order: Indices
    """Which row each entry comes from, of shape (d, n), as are all others."""
    values: Array
    starts: Indices
    """Where the run of each entry begins."""
    ends: Indices
    """Where it ends, that entry included."""
    below: Array
    """Weight of lower values."""
    at: Array
    """Weight of its run."""
    places: Indices
    """Which entry is that of each row."""

    @property
    def middle(self) -> Array:
        """Weight below a value plus half of the weight at it."""
        return self.below + self.at / 2

    def of_rows(self, entries: Array) -> Array:
        """From entries in order to those of the rows: (d, n) or (1, n) -> (d, n)."""
        if len(entries) == 1:
            return np.asarray(entries[0].take(self.places))
        d, n = self.places.shape
        return np.asarray(entries.ravel().take(self.places + n * np.arange(d)[:, None]))


def _few_columns(X: Array) -> list[slice]:
    d, step = X.shape[1], max(1, RANKED_CELLS // max(len(X), 1))
    return [slice(first, min(first + step, d)) for first in range(0, d, step)]


def _for_columns(work: Callable[[Any], Found], parts: Sequence[Any], cells: int) -> list[Found]:
    """Each part of some work on so many cells, in threads where there are many."""
    return in_threads(work, parts) if cells >= MANY_CELLS else [work(part) for part in parts]


def _ranks(columns: Array, sample_weight: Array | None) -> Ranks:
    order = np.argsort(columns, axis=1)
    d, n = columns.shape
    flat, places = order + n * np.arange(d)[:, None], np.empty((d, n), dtype=np.intp)
    values = columns.ravel().take(flat)
    places.ravel()[flat] = np.arange(n)
    place, other = np.arange(n)[None], values[:, 1:] != values[:, :-1]
    starts = ends = place
    if not other.all():
        edge = np.ones((d, 1), dtype=bool)
        first, last = np.hstack([edge, other]), np.hstack([other, edge])
        starts = np.maximum.accumulate(np.where(first, place, 0), axis=1)
        ends = np.minimum.accumulate(np.where(last, place, n)[:, ::-1], axis=1)[:, ::-1]
    if sample_weight is None:
        below, at = starts.astype(float), (ends - starts + 1).astype(float)
    else:
        total = np.zeros((d, n + 1))
        np.cumsum(np.asarray(sample_weight, dtype=float)[order], axis=1, out=total[:, 1:])
        starts, ends = np.broadcast_to(starts, (d, n)), np.broadcast_to(ends, (d, n))
        below = np.take_along_axis(total, starts, axis=1)
        at = np.take_along_axis(total, ends + 1, axis=1) - below
    return Ranks(order, values, starts, ends, below, at, places)


def _slopes(ranks: Ranks, share: Array, scores: Array) -> Array:
    """Slopes below and above the values of each column, of shape (d, 2): 0 where it has but one."""
    (d, n), ends, starts = ranks.values.shape, ranks.ends[:, :1], ranks.starts[:, -1:]
    if not n:
        return np.zeros((d, 2))
    # From the ends to the first values beyond the outer tenth, or to the next ones.
    low = np.maximum((share < OUTER).sum(axis=1, keepdims=True), ends + 1)
    high = np.minimum((share <= 1 - OUTER).sum(axis=1, keepdims=True), starts) - 1
    low, high = np.minimum(low, n - 1), np.maximum(high, 0)
    at = np.hstack([low, high]) + np.zeros((d, 1), dtype=np.intp)

    def steps(entries: Array) -> Array:
        return (np.take_along_axis(entries, at, axis=1) - entries[:, [0, -1]]) * [1.0, -1.0]

    rise, run = steps(scores), steps(ranks.values)
    return np.divide(rise, run, out=np.zeros((d, 2)), where=starts > 0)


def to_scores(X: Array, knots: Knots) -> Array:
    """Normal scores of rows, of shape (m, d)."""
    return _map(X, knots.values, knots.scores, knots.starts, knots.slopes)


def from_scores(Z: Array, knots: Knots) -> Array:
    """The values that have these scores; constant columns come back as their value."""
    slopes = np.divide(1.0, knots.slopes, out=np.zeros_like(knots.slopes), where=knots.slopes > 0)
    return _map(Z, knots.scores, knots.values, knots.starts, slopes)


def _map(X: Array, left: Array, right: Array, starts: Indices, slopes: Array) -> Array:
    columns = np.ascontiguousarray(X.T)
    out = np.empty(columns.shape)

    def work(c: int) -> None:
        a, b = starts[c], starts[c + 1]
        out[c] = np.interp(columns[c], left[a:b], right[a:b])

    _for_columns(work, range(len(columns)), X.size)
    lowest, highest = left[starts[:-1]][:, None], left[starts[1:] - 1][:, None]
    out += slopes[:, :1] * np.minimum(columns - lowest, 0.0)
    out += slopes[:, 1:] * np.maximum(columns - highest, 0.0)
    return np.ascontiguousarray(out.T)

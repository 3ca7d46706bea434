r"""Normal scores: each column by the ranks of its training values, ties at mid-rank.

With distinct training values :math:`v_1 < \dots < v_m` of a column, and F the weight below a value
plus half of the weight at it, as a share of the whole,

.. math:: z(v_k) = \Phi^{-1}(F(v_k)), \qquad F(v) = \frac{W_{<v} + W_{=v}/2}{W}

linear between the values, and linear beyond the ends with the slope of the outer tenth: far away
is far away, in whatever unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from kernull._typing import Array, Indices

#: Ranks beyond which the slope outside the training range is taken.
OUTER = 0.1


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

    Parameters
    ----------
    X : array of shape (n, d)
    sample_weight : array of shape (n,), optional

    Returns
    -------
    knots : Knots
        Of each column.
    Z : array of shape (n, d)
        Normal scores of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> knots, _ = scores_of_knots(np.array([[1.0], [2.0], [2.0], [9.0]]))
    >>> knots.values, np.round(knots.scores, 2)
    (array([1., 2., 9.]), array([-1.15,  0.  ,  1.15]))
    """
    n, d = X.shape
    columns = np.ascontiguousarray(X.T)
    order = np.argsort(columns, axis=1)
    values = np.take_along_axis(columns, order, axis=1)
    is_first = np.ones((d, n), dtype=bool)
    np.not_equal(values[:, 1:], values[:, :-1], out=is_first[:, 1:])
    begin = np.flatnonzero(is_first)  # entry of each knot, where a run of equal values begins
    starts = np.searchsorted(begin, n * np.arange(d + 1))
    end = np.append(begin[1:], n * d)
    counts = np.ones(n) if sample_weight is None else sample_weight
    upto = np.cumsum(counts[order], axis=1).ravel()[end - 1]  # weight up to each knot
    before = np.append(0.0, upto[:-1])
    before[starts[:-1]] = 0.0
    total = np.repeat(upto[starts[1:] - 1], np.diff(starts))
    # Next to no weight may lie beyond a value.
    share = np.clip((before + upto) / (2.0 * total), 1e-300, 1.0 - 1e-16)
    values, scores = values.ravel()[begin], ndtri(share)
    rows = np.empty((d, n))
    np.put_along_axis(rows, order, scores.repeat(end - begin).reshape(d, n), axis=1)
    return Knots(values, scores, starts, _slopes(values, scores, share, starts)), rows.T


def _slopes(values: Array, scores: Array, share: Array, starts: Indices) -> Array:
    """Slopes below and above the values of each column, of shape (d, 2): 0 where it has but one.

    From the ends to the first values beyond the outer tenth, or to the next ones.
    """
    first, last = starts[:-1], starts[1:] - 1
    low = first + np.maximum(np.add.reduceat(share < OUTER, first, dtype=np.intp), 1)
    high = first + np.add.reduceat(share <= 1.0 - OUTER, first, dtype=np.intp) - 1
    low, high = np.minimum(low, last), np.maximum(np.minimum(high, last - 1), first)
    rise = np.stack([scores[low] - scores[first], scores[last] - scores[high]], axis=1)
    run = np.stack([values[low] - values[first], values[last] - values[high]], axis=1)
    return np.divide(rise, run, out=np.zeros(run.shape), where=run > 0)


def to_scores(X: Array, knots: Knots) -> Array:
    """Normal scores of rows, of shape (m, d).

    Parameters
    ----------
    X : array of shape (m, d)
    knots : Knots
        Of each column.

    Returns
    -------
    array of shape (m, d)
    """
    values, scores, starts, slopes = knots
    columns = np.ascontiguousarray(X.T)
    lowest, highest = values[starts[:-1]], values[starts[1:] - 1]
    pieces = zip(columns, starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    out = np.stack([np.interp(x, values[a:b], scores[a:b]) for x, a, b in pieces])
    out += slopes[:, :1] * np.minimum(columns - lowest[:, None], 0.0)
    out += slopes[:, 1:] * np.maximum(columns - highest[:, None], 0.0)
    return np.ascontiguousarray(out.T)

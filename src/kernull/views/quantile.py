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

__all__ = ["Knots", "fit_knots", "from_scores", "knots_of", "step_of_scores", "to_scores"]

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


def fit_knots(X: Array, sample_weight: Array | None = None) -> Knots:
    """Normal scores of the training values; constant columns have one knot and slope zero.

    Parameters
    ----------
    X : array of shape (n, d)
    sample_weight : array of shape (n,), optional
        How much each row counts; only ratios matter.

    Examples
    --------
    >>> import numpy as np
    >>> knots = fit_knots(np.array([[1.0], [2.0], [2.0], [9.0]]))
    >>> knots.values, np.round(knots.scores, 2)
    (array([1., 2., 9.]), array([-1.15, 0. , 1.15]))
    """
    columns = []
    for column in X.T:
        values, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        at = counts if sample_weight is None else np.bincount(np.ravel(place), sample_weight)
        columns.append(knots_of(values, at.astype(float)))
    return Knots(
        np.concatenate([column.values for column in columns] or [np.empty(0)]),
        np.concatenate([column.scores for column in columns] or [np.empty(0)]),
        np.cumsum([0, *(len(column.values) for column in columns)]).astype(np.intp),
        np.vstack([column.slopes for column in columns] or [np.empty((0, 2))]),
    )


def knots_of(values: Array, at: Array) -> Knots:
    """Knots of one column from its distinct values in increasing order and their weights."""
    share = (np.cumsum(at) - at / 2) / at.sum()
    scores = ndtri(share)
    m = len(values)
    slopes = np.zeros((1, 2))
    if m > 1:
        low = min(max(int(np.searchsorted(share, OUTER)), 1), m - 1)
        high = max(min(int(np.searchsorted(share, 1 - OUTER, side="right")) - 1, m - 2), 0)
        slopes[0] = (
            (scores[low] - scores[0]) / (values[low] - values[0]),
            (scores[-1] - scores[high]) / (values[-1] - values[high]),
        )
    return Knots(values, scores, np.array([0, m]), slopes)


def to_scores(X: Array, knots: Knots) -> Array:
    """Normal scores of rows, of shape (m, d)."""
    return _map(X, knots.values, knots.scores, knots.starts, knots.slopes)


def from_scores(Z: Array, knots: Knots) -> Array:
    """The values that have these scores; constant columns come back as their value."""
    slopes = np.divide(1.0, knots.slopes, out=np.zeros_like(knots.slopes), where=knots.slopes > 0)
    return _map(Z, knots.scores, knots.values, knots.starts, slopes)


def _map(X: Array, left: Array, right: Array, starts: Indices, slopes: Array) -> Array:
    out = np.empty(X.shape)
    for c in range(X.shape[1]):
        a, b = left[starts[c] : starts[c + 1]], right[starts[c] : starts[c + 1]]
        x = X[:, c]
        below, above = np.minimum(x - a[0], 0.0), np.maximum(x - a[-1], 0.0)
        out[:, c] = np.interp(x, a, b) + slopes[c, 0] * below + slopes[c, 1] * above
    return out


def step_of_scores(n: float) -> float:
    """Score of a value off a constant column, as though that row were one more of n."""
    return float(ndtri((n + 0.5) / (n + 1.0)) - ndtri(0.5 * n / (n + 1.0)))

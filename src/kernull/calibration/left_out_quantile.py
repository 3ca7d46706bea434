"""Normal scores without row i: closed forms behind `left_out_distances`.

Without row i the ranks of the others move by one towards it, and it has the score of a new row:
between its neighbours, or beyond the ends by the slope of the outer tenth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from kernull._typing import Array, Indices
from kernull.views.quantile import OUTER, Ranks, ranked_columns
from kernull.views.scaling import ROUNDING, unseen_step

#: Entries (rows x rows x columns) up to which others' ranks are shifted one by one.
EXACT_CELLS = 5 * 10**5

Rows = Callable[[Indices], Array]


def quantile_rows(X: Array, weight: Array) -> Rows:
    """Each row by the ranks of the others; their own scores move by one rank towards it."""
    n, d = X.shape
    weighted = bool((weight != weight[0]).any())
    if n * n * d > EXACT_CELLS:
        return _near_rows(X, weight)
    columns, (U, above, below) = np.ascontiguousarray(X.T), np.empty((3, d, n))
    W, score, tied = float(weight.sum()), _Scores(weight), np.zeros(d, dtype=bool)
    for some, ranks in ranked_columns(X, None if score.unit else weight):
        without, Y, up, down = _scores_without(ranks, weight, W, score)
        tied[some] = (ranks.starts != ranks.ends).any(axis=1)
        for out, entries in ((U, without), (above, Y + up), (below, Y - down)):
            out[some] = ranks.of_rows(entries)

    def rows(index: Indices) -> Array:
        out = np.zeros((len(index), n))
        for c, y in enumerate(columns):
            x = y[index][:, None]
            if weighted:
                scores = _moved_scores(y, weight, x, weight[index][:, None])
            else:
                scores = np.where(x > y, above[c], below[c])
            scores -= U[c, index][:, None]
            if tied[c]:  # else a row ties with itself alone, which nobody asks for
                scores[x == y] = 0.0
            out += np.square(scores, out=scores)
        return out

    return rows


def _near_rows(X: Array, weight: Array) -> Rows:
    r"""The same, others moving by their mean move m as a share of the usual difference u.

    .. math:: (|t| - m)^2 \approx t^2 - 2 |t| m \approx t^2 (1 - 2m/u)
    """
    n, d = X.shape
    left, right, constant = np.empty((n, 2 * d)), np.empty((2 * d, n)), np.zeros(n)
    W, score = float(weight.sum()), _Scores(weight)
    for columns, ranks in ranked_columns(X, None if score.unit else weight):
        without, Y, up, down = _scores_without(ranks, weight, W, score)
        moves = _mean_moves(ranks, _own_weight(ranks, weight, score), W, Y, up, down)
        closing, both = (
            1.0 - np.minimum(2.0 * moves, 0.5),
            slice(columns.start + d, columns.stop + d),
        )
        U = ranks.of_rows(without).T
        np.square(U, out=left[:, columns])
        np.multiply(U, -2.0, out=left[:, both])
        right[columns], right[both] = ranks.of_rows(closing), ranks.of_rows(closing * Y)
        constant += ranks.of_rows(closing * Y * Y).sum(axis=0)
    return lambda index: np.asarray(left[index] @ right + constant)


def _moved_scores(column: Array, weight: Array, x: Array, w: Array) -> Array:
    """Scores of a column without rows of value x and weight w (not tied with it): (r, n)."""
    _, place = np.unique(column, return_inverse=True)
    at = np.bincount(np.ravel(place), weight)
    middle = (np.cumsum(at) - at / 2)[np.ravel(place)]
    share = (middle - np.where(x < column, w, 0.0)) / (weight.sum() - w)
    return np.asarray(ndtri(np.clip(share, 1e-300, 1 - 1e-16)))


class _Scores:
    """Normal scores of weights below a value, of n rows or of n - 1.

    Where all rows weigh one, such a weight is one of 2n numbers: their scores are looked up.
    """

    def __init__(self, weight: Array) -> None:
        n = len(weight)
        self.unit = bool((weight == 1.0).all())
        if self.unit:
            halves = np.arange(2 * n + 1) / 2
            self.tables = {total: _score(halves / total) for total in (float(n), n - 1.0)}

    def __call__(self, below: Array, total: Array | float) -> Array:
        if not self.unit:
            return _score(below / total)
        known = self.tables[float(np.ravel(total)[0])] if np.size(total) else self.empty
        return np.asarray(known[(2.0 * below).astype(np.intp)])

    empty = np.zeros(1)


def _score(share: Array) -> Array:
    return np.asarray(ndtri(np.clip(share, 1e-300, 1 - 1e-16)))


def _scores_without(
    ranks: Ranks, weight: Array, W: float, score: _Scores
) -> tuple[Array, Array, Array, Array]:
    """Scores of entries without themselves, of all entries, and how far these move.

    The moves are those of an entry when one of unit weight above it (up), or below it (down), is
    left out. W is the sum of the weights.
    """
    middle, first = ranks.middle, ranks.starts == 0
    usual = score(middle, W)
    up = score(middle, W - 1.0) - usual
    lower = np.where(first, middle, np.maximum(middle - 1.0, 1e-9))
    down = np.where(first, 0.0, usual - score(lower, W - 1.0))
    # where the value is seen again, then where it is not
    own = _own_weight(ranks, weight, score)
    without = score(middle - own / 2, W - own) + np.zeros(ranks.values.shape)
    _set_alone(without, ranks, own, W, score)
    return without, usual, up, down


def _own_weight(ranks: Ranks, weight: Array, score: _Scores) -> Array:
    return np.ones((1, len(weight))) if score.unit else weight[ranks.order]


def _mean_moves(ranks: Ranks, weight: Array, W: float, Y: Array, up: Array, down: Array) -> Array:
    """Mean move of each score, as a share of the column's usual difference u of two scores."""
    above = W - ranks.below - ranks.at
    weighted = weight * Y
    usual = W * (weighted * Y).sum(axis=1) - weighted.sum(axis=1) ** 2
    usual /= np.maximum((weighted * (ranks.below - above)).sum(axis=1), 1e-300)
    return np.asarray((above * up + ranks.below * down) / (W - ranks.at) / usual[:, None])


def _set_alone(out: Array, ranks: Ranks, weight: Array, W: float, score: _Scores) -> None:
    """Scores of rows whose value no other row has: between its neighbours, or beyond the ends."""
    values, middle = ranks.values, ranks.middle
    n = values.shape[1]
    single = ranks.starts == ranks.ends
    before, own, after = (slice(None, -2), slice(1, -1), slice(2, None))
    w, rest = weight[:, own], W - weight[:, own]
    left, right = score(middle[:, before], rest), score(middle[:, after] - w, rest)
    part, run = values[:, own] - values[:, before], values[:, after] - values[:, before]
    if single.all():
        part /= run
        part *= right - left
        np.add(part, left, out=out[:, own])
    else:
        np.divide(part, run, out=part, where=single[:, own])
        np.copyto(out[:, own], left + part * (right - left), where=single[:, own])
    for at, first, last in ((0, 1, n - 1), (n - 1, 0, n - 2)):
        column = np.flatnonzero(np.broadcast_to(single[:, at], len(values)))
        low, high = values[column, first], values[column, last]
        step = np.sign(values[column, at] - low) * unseen_step("quantile", n)
        constant = high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high))
        out[column, at] = np.where(constant, step, _beyond(ranks, weight, W, column, at))


def _beyond(ranks: Ranks, weight: Array, W: float, column: Indices, at: int) -> Array:
    """Scores of rows beyond all others, the first (at = 0) or last, by the slope of those."""
    values, n = ranks.values, ranks.values.shape[1]
    middle, weight = (a if len(a) == 1 else a[column] for a in (ranks.middle, weight))
    starts, ends = (a if len(a) == 1 else a[column] for a in (ranks.starts, ranks.ends))
    w, pick = weight[:, [at]], np.arange(len(middle))
    if at == 0:
        share = (middle - w) / (W - w)
        share[:, 0] = -np.inf
        end, other = 1, (share >= OUTER).argmax(axis=1)  # the outer tenth ends here
        beside = np.minimum(ends[:, 1] + 1, n - 1)
        other = np.where(starts[pick, other] <= 1, beside, other)
    else:
        share = middle / (W - w)
        share[:, -1] = np.inf
        end, other = n - 2, np.maximum((share <= 1 - OUTER).sum(axis=1) - 1, 0)
        beside = np.maximum(starts[:, n - 2] - 1, 0)
        other = np.where(ends[pick, other] >= n - 2, beside, other)
    scores = _score(np.stack([share[:, end], share[pick, other]]))
    last = values[column, end]
    run = values[column, other] - last
    slope = np.divide(scores[1] - scores[0], run, out=np.zeros(len(column)), where=run != 0)
    return np.asarray(scores[0] + slope * (values[column, at] - last))

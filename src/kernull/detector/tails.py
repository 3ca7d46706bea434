r"""From scores to evidence: how small the p-value of a score is among the left-out scores of rows.

.. math:: e(s) = -\log p(s), \qquad p(s) = \frac{1 + R\{i : s_i \le s\}}{R + 1}

with R the weight of the rows. Below the lowest left-out score :math:`s_1` that stays at log(R + 1);
for scores that extrapolate it grows, :math:`e(s) = \log(R + 1) + (s_1 - s) / \tau`, with tau the
mean excess of the lowest tenth.

A row that was learned from is judged by the left-out scores of the other folds, as a new row is
judged by those of all rows. Below the lowest of these its tail is the predictive one,
:math:`k \log(1 + x / (k \tau))`: with an exponential tail the lowest of 12 to 30 rows looks
impossible, and rows that are 100 deviations off are missed in up to a quarter of draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import FEWEST_VALUES, TIE_ROUNDING, lowered, mean_excess
from kernull.detector.cross_fit import has_copies

#: The scale of a tail is at least this share of the range of the scores.
LEAST_TAIL_SCALE = 1e-3
#: Evidence beyond this is this much, so that squares of it can be added up.
MOST_EVIDENCE = 1e12


@dataclass(frozen=True, eq=False)
class Tails:
    """Left-out scores of several kinds, in order.

    Parameters
    ----------
    ordered, counts : array of shape (n, C)
        Scores of each kind in increasing order, lowered by the slack for ties, and the weight of
        the rows up to each.
    scale : array of shape (C,)
        Mean excess of the lowest tenth; infinite for kinds that do not extrapolate.
    tail_weight : array of shape (C,)
        Weight of the rows that it comes from.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).normal(size=(99, 1))
    >>> tails = Tails.fit(scores, np.ones(99), np.array([True]))
    >>> tails.evidence(np.array([[-0.5], [-9.0]])).round(1).ravel()
    array([ 1.1, 27.2])
    """

    ordered: Array
    counts: Array
    scale: Array
    tail_weight: Array

    @classmethod
    def fit(
        cls, scores: Array, weight: Array, extrapolates: Mask, total: float | None = None
    ) -> Tails:
        """From left-out scores (n, C), higher for more normal rows, and the weights of the rows.

        ``total`` is what the weights are brought to sum to; their sum by default.
        """
        n, order = len(scores), np.broadcast_to(np.arange(len(scores))[:, None], scores.shape)
        if np.ptp(weight) > 0:
            # Ties, which rounding may part, in the order of weights: not in that of the rows.
            by_weight = np.argsort(weight, kind="stable")
            order = by_weight[np.argsort(np.round(scores[by_weight], 9), axis=0, kind="stable")]
        ordered = lowered(np.sort(scores, axis=0))
        total = float(weight.sum()) if total is None else total
        counts = np.cumsum(weight[order], axis=0)
        counts *= total / counts[-1:]
        scale, tail_weight = np.full(scores.shape[1], np.inf), np.ones(scores.shape[1])
        different = 1 + (np.diff(ordered, axis=0) > TIE_ROUNDING).sum(axis=0)
        for c in np.flatnonzero(extrapolates & (different >= min(FEWEST_VALUES, n / 2))):
            if n > 1:
                least = LEAST_TAIL_SCALE * float(ordered[-1, c] - ordered[0, c])
                excess, tail_weight[c] = mean_excess(ordered[:, c], counts[:, c])
                scale[c] = max(excess, least, 1e-300)
        # Sums of the same weights in another order are the same, so that their evidence ties.
        counts = np.round(counts, 9)
        counts[-1] = total
        return cls(ordered, counts, scale, tail_weight)

    def evidence(self, scores: Array, *, predictive: bool = False) -> Array:
        """Evidence in nats, of shape (m, C), against rows with these scores; never negative.

        The tail is exponential, or ``predictive``: what an exponential one of a scale from k rows
        comes to, k log(1 + x / (k tau)) in place of x / tau.

        Parameters
        ----------
        scores : array of shape (m, C)
            Scores of rows.
        predictive : bool
            Whether the tail allows for the error of its scale.

        Returns
        -------
        array of shape (m, C)
        """
        scores = np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        columns = zip(np.ascontiguousarray(self.ordered.T), scores.T, strict=True)
        place = [ordered.searchsorted(column, side="right") for ordered, column in columns]
        counts = np.vstack([np.zeros(self.counts.shape[1]), self.counts])
        count = np.take_along_axis(counts, np.reshape(place, scores.shape[::-1]).T, axis=0)
        out = -np.log(np.minimum((1.0 + count) / (counts[-1, 0] + 1.0), 1.0))
        with np.errstate(over="ignore", invalid="ignore"):  # no number is as far as can be
            beyond = np.where(scores < self.ordered[0], (self.ordered[0] - scores) / self.scale, 0)
        if predictive:
            beyond = self.tail_weight * np.log1p(beyond / self.tail_weight)
        return np.asarray(np.nan_to_num(out + beyond, nan=MOST_EVIDENCE).clip(0.0, MOST_EVIDENCE))


def left_out_evidence(scores: Array, weight: Array, extrapolates: Mask, fold: Indices) -> Array:
    """Evidence (n, C) against each row by the left-out scores of the rows of other folds.

    Parameters
    ----------
    scores : array of shape (n, C)
    weight : array of shape (n,)
        What each row counts in ranks.
    extrapolates : mask of shape (C,)
        Scores with a tail.
    fold : integer array of shape (n,)

    Returns
    -------
    array of shape (n, C)
    """
    out, total = np.empty(scores.shape), float(weight.sum())
    for k in range(fold.max() + 1):
        held = fold == k
        others = Tails.fit(scores[~held], weight[~held], extrapolates, total)
        out[held] = others.evidence(scores[held], predictive=True)
    # Scores that tie, as those of copies do, are judged as a new one that ties with them is.
    tied = [has_copies(np.round(column, 9), fold) for column in scores.T]
    as_new = Tails.fit(scores, weight, extrapolates, total).evidence(scores)
    return np.where(np.stack(tied, axis=1), as_new, out)

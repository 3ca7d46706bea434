"""Conformal p-values and the threshold that belongs to a false-alarm rate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.stats import false_discovery_control

from kernull._typing import Array, Mask
from kernull.errors import TooFewRowsWarning

#: Relative size of differences between scores, and between rates, that are taken for rounding.
SLACK = 1e-12
#: What a row that scores as a calibration row does lies above it, in ranks: it is not below it.
EDGE = 1e-6
#: Share of the rows, and fewest rows, that the scale of a tail is learned from.
TAIL_SHARE, TAIL_ROWS = 0.1, 5
#: With fewer different scores than this nothing is known of a tail.
FEWEST_VALUES = 20
#: Rarities end at so many times the rows: beyond, no row speaks for the shape of the tail.
MOST_TIMES = 100
#: Where numbers between two others are looked at together.
PARTS, NEARER = np.arange(1, 64) / 64, 0.5 ** np.arange(7, 40)


@dataclass(frozen=True)
class Calibration:
    r"""Scores of calibration rows, ready to judge new ones.

    .. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{m + 1}

    A row of weight w counts as w rows; weights have mean one.

    p is a multiple of 1/(m + 1), so a rate between two of them is rounded down: with 48 rows, 5%
    becomes 4.1%. That is the price of the bound :math:`P(p \le \alpha) \le \alpha` that held-out
    rows have. Rows left out by folds have no such bound to lose, and ``smooth`` interpolates: as
    s(x) goes from one calibration score to the next, so does p, by the last row at or below s(x).

    .. math:: p(x) = \frac{\#\{i : s_i \le s(x)\} + f}{m + 1}, \qquad
        f = \frac{s(x) - s_{(k)}}{s_{(k+1)} - s_{(k)}}, \quad s_{(k)} \le s(x) < s_{(k+1)}

    At multiples of 1/(m + 1) both flag the same rows.

    Parameters
    ----------
    scores : array of shape (m,)
        Scores of rows that the model did not see, in increasing order.
    counts : array of shape (m,)
        Cumulative weight of the rows up to each score.
    smooth : bool
        Whether p-values interpolate between the ranks.
    """

    scores: Array
    counts: Array
    smooth: bool = False

    @classmethod
    def of(
        cls, scores: Array, sample_weight: Array | None = None, *, smooth: bool = False
    ) -> Calibration:
        """Sort calibration scores."""
        order = np.argsort(scores, kind="stable")
        weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, float)
        return cls(np.asarray(scores, dtype=float)[order], np.cumsum(weight[order]), smooth)

    def __repr__(self) -> str:
        low, high = (self.scores[0], self.scores[-1]) if len(self.scores) else (None, None)
        return f"Calibration({self.total:g} rows, scores from {low:.3g} to {high:.3g})"

    @property
    def total(self) -> float:
        """Number of calibration rows (their weight)."""
        return float(self.counts[-1])

    def p_values(self, scores: Array) -> Array:
        """P-value of each score: small where few calibration rows score as low."""
        # A score that is no number (values that overflow) is below all others, as for flags.
        scores = np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        below = np.searchsorted(self.scores, scores, side="right")
        counts = np.concatenate([[0.0], self.counts])
        ranks = 1.0 + counts[below]
        if self.smooth:  # ranks count in full at the next calibration score, in part until there
            left, m = np.maximum(below, 1) - 1, len(self.scores)
            low, high = self.scores[left], self.scores[np.minimum(below, m - 1)]
            between = (below > 0) & (below < m)
            part = np.divide(scores - low, high - low, out=np.ones_like(low), where=between)
            # Of rows with equal scores one counts in part: a row that ties with them is like them.
            equal = counts[left + 1] - counts[np.searchsorted(self.scores, low, side="left")]
            ranks -= np.minimum(equal, 1.0) * (1.0 - np.maximum(part, EDGE))
        return np.asarray(ranks / (self.counts[-1] + 1.0))

    def rarity(self, scores: Array) -> Array:
        r"""How rare each score is, at least 1: one in so many normal rows scores as low.

        It is 1/p; for a score that is x below the lowest calibration score it is

        .. math:: (m + 1) \Big(1 + \frac{x}{k \tau}\Big)^k

        with the mean excess tau of the lowest k of these (a tenth, at least 5), and at most 100 m,
        which stands for all rarer rows.
        """
        one_in = 1.0 / self.p_values(scores)
        below = scores < self.scores[0]
        if len(self.scores) > 1 and len(np.unique(self.scores)) >= FEWEST_VALUES:
            tau, k = mean_excess(self.scores, self.counts)
            if tau > 0:
                with np.errstate(over="ignore"):
                    one_in[below] *= (1.0 + (self.scores[0] - scores[below]) / tau / k) ** k
        return np.asarray(np.minimum(one_in, MOST_TIMES * self.total))

    def threshold(self, rate: float) -> tuple[float, float]:
        """Score below which rows are flagged, and the rate it stands for.

        A row is flagged (score < threshold) exactly where its p-value is at most the rate. The
        smallest p-value that m rows can give is 1/(m + 1): a lower rate cannot be honoured, so
        that one is used instead, with a warning.
        """
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < rate < 1:
            raise ValueError(f"false_alarm_rate: got {rate!r}; expected a number in (0, 1).")
        total = float(self.counts[-1])
        lowest = 1.0 / (total + 1.0)
        if rate < lowest * (1 - 1e-12):
            warnings.warn(
                f"false_alarm_rate={rate:g} needs at least {int(np.ceil(1 / rate)) - 1} "
                f"calibration rows (a group counts as one), got {total:g}: the lowest rate these "
                f"can certify is {lowest:.3g}, which is used instead.",
                TooFewRowsWarning,
                stacklevel=2,
            )
            rate = lowest
        # p(s) <= rate  <=>  1 + #{s_i <= s} <= rate (m + 1)  <=>  s < the first score beyond.
        allowed = rate * (total + 1.0) - 1.0
        position = int(np.searchsorted(self.counts, allowed * (1 + SLACK) + SLACK, side="right"))
        beyond = float(self.scores[min(position, len(self.scores) - 1)])
        after = int(np.searchsorted(self.scores, beyond, side="right"))
        limit = rate * (1 + SLACK)
        known = not self.smooth or after == len(self.scores)
        if known or self.p_values(np.array([beyond]))[0] > limit:
            return beyond, float(rate)
        # p-values interpolate: the lowest number whose p-value is above the rate, found among the
        # floating-point numbers themselves, so that flags and p-values agree on every score there
        # is (a rate such as 3/10, which is no binary number, up to its rounding).
        low, high, parts = beyond, float(self.scores[after]), PARTS
        while True:  # many at a time: a call takes as long for a hundred numbers as for one
            between = low + (high - low) * parts
            between = between[(between > low) & (between < high)]
            if not len(between):
                return high, float(rate)
            ends = np.concatenate([[low], between, [high]])
            p = self.p_values(ends)
            first = int(np.searchsorted(p[1:-1] > limit, True))
            (low, high), (less, more) = ends[first : first + 2].tolist(), p[first : first + 2]
            # P-values grow evenly from one calibration score to the next, but for the jump there.
            likely = (limit - less) / (more - less)
            parts = np.sort(np.concatenate([PARTS, likely + NEARER, likely - NEARER]))

    def is_threshold(self, threshold: float, rate: float) -> bool:
        """Whether `threshold` gives this threshold for the rate: two p-values tell, mostly."""
        if self.smooth and self.scores[0] < threshold <= self.scores[-1]:
            before = np.nextafter(threshold, -np.inf)
            p_before, p = self.p_values(np.array([before, threshold]))
            limit = rate * (1 + SLACK)
            if 1.0 / (self.total + 1.0) <= rate and p_before <= limit < p:
                return True
        return self.threshold(rate)[0] == threshold


def mean_excess(ordered: Array, counts: Array) -> tuple[float, float]:
    """By how much the lowest tenth of scores lies below the next one on average; and its weight.

    Parameters
    ----------
    ordered : array of shape (m,)
        Two scores or more, in increasing order.
    counts : array of shape (m,)
        Cumulative weight of the rows up to each score.
    """
    tenth = np.searchsorted(counts, TAIL_SHARE * counts[-1] * (1.0 + 1e-9), side="right")
    k = int(np.clip(tenth, min(TAIL_ROWS, len(ordered) - 1), len(ordered) - 1))
    weight = np.diff(counts[:k], prepend=0.0)
    return float(weight @ (ordered[k] - ordered[:k]) / weight.sum()), float(counts[k - 1])


def minus_rounding(scores: Array) -> Array:
    """Scores of rows held out, less a slack for rounding.

    A row's score may differ in its last digits with the rows it is scored together with. Lowered
    by `SLACK` of their size, calibration rows never fall below themselves; p-values can only grow
    by that, so nothing that holds for them is lost.
    """
    return np.asarray(scores - SLACK * np.abs(scores).max(initial=0.0))


def discoveries(p_values: Array, fdr: float) -> Mask:
    """Rows that Benjamini and Hochberg's procedure flags at this false discovery rate."""
    if isinstance(fdr, bool) or not isinstance(fdr, Real) or not 0 < fdr < 1:
        raise ValueError(f"fdr: got {fdr!r}; expected a number in (0, 1).")
    return np.asarray(false_discovery_control(p_values) <= fdr)

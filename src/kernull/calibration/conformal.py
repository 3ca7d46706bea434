"""Conformal p-values and the threshold that belongs to a false-alarm rate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real

import numpy as np

from kernull._typing import Array
from kernull.errors import TooFewRowsWarning

__all__ = ["Calibration"]


@dataclass(frozen=True)
class Calibration:
    r"""Scores of calibration rows, ready to judge new ones.

    .. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{m + 1}

    A row of weight w counts as w rows.

    Parameters
    ----------
    scores : array of shape (m,)
        Scores of rows that the model did not see, in increasing order.
    counts : array of shape (m,)
        Cumulative weight of the rows up to each score.
    """

    scores: Array
    counts: Array

    @classmethod
    def of(cls, scores: Array, sample_weight: Array | None = None) -> Calibration:
        """Sort calibration scores."""
        order = np.argsort(scores, kind="stable")
        weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, float)
        return cls(np.asarray(scores, dtype=float)[order], np.cumsum(weight[order]))

    @property
    def total(self) -> float:
        """Number of calibration rows (their weight)."""
        return float(self.counts[-1])

    def p_values(self, scores: Array) -> Array:
        """P-value of each score: small where few calibration rows score as low."""
        below = np.searchsorted(self.scores, scores, side="right")
        counts = np.concatenate([[0.0], self.counts])
        return np.asarray((1.0 + counts[below]) / (self.total + 1.0))

    def threshold(self, rate: float) -> tuple[float, float]:
        """Score below which rows are flagged, and the rate it stands for.

        A row is flagged (score < threshold) exactly where its p-value is at most the rate. The
        smallest p-value that m rows can give is 1/(m + 1): a lower rate cannot be honoured, so
        that one is used instead, with a warning.
        """
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < rate < 1:
            raise ValueError(f"false_alarm_rate: got {rate!r}; expected a number in (0, 1).")
        lowest = 1.0 / (self.total + 1.0)
        if rate < lowest * (1 - 1e-12):
            warnings.warn(
                f"false_alarm_rate={rate:g} needs at least {int(np.ceil(1 / rate)) - 1} "
                f"calibration rows, got {self.total:g}: the lowest rate these can certify is "
                f"{lowest:.3g}, which is used instead.",
                TooFewRowsWarning,
                stacklevel=2,
            )
            rate = lowest
        # p(s) <= rate  <=>  1 + #{s_i <= s} <= rate (m + 1)  <=>  s < the first score beyond.
        allowed = rate * (self.total + 1.0) - 1.0
        position = int(np.searchsorted(self.counts, allowed * (1 + 1e-12) + 1e-12, side="right"))
        return float(self.scores[min(position, len(self.scores) - 1)]), float(rate)

"""Conformal p-values and the threshold that belongs to a false-alarm rate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.stats import false_discovery_control

from kernull._typing import Array, Mask
from kernull.errors import TooFewRowsWarning

__all__ = ["Calibration", "discoveries", "lowered"]

#: Relative size of differences between scores that are taken for rounding.
SLACK = 1e-12


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


def lowered(scores: Array) -> Array:
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

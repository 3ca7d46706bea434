"""Ranks of new rows among rows that were left out, and the p-values that follow."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np

from kernull._typing import Array, Indices
from kernull.errors import TooFewRowsWarning

#: Share of the rows, and fewest rows, whose mean excess is the scale of the tail. With fewer than
#: five, the scale is chance.
TAIL_SHARE, TAIL_ROWS = 0.1, 5
#: Smallest scale of the tail, as a share of the range of the scores: rows that tie have none.
LEAST_SCALE = 1e-3
#: A rarity is at most this many times the rows: beyond, no row speaks for it.
MOST_TIMES = 100


@dataclass(frozen=True, eq=False)
class LeftOutRanks:
    r"""Scores of rows by models that did not see them, which new rows are ranked among.

    A new row x is scored by the model of every fold k, and each score is compared with those of
    the rows that this model did not see either (cross-conformal prediction, Vovk 2015; CV+, Barber
    et al. 2021):

    .. math:: p(x) = \frac{1 + \sum_k \#\{i \text{ in fold } k: s_i \le s_k(x)\}}{n + 1}

    A row that equals a row of fold k ties with it, whatever the other folds' models say. Between
    two left-out scores of a fold the count is interpolated, so that rates are not rounded down to
    multiples of 1/(n + 1).

    Parameters
    ----------
    left_out : array of shape (n,)
        Score of each row by the model of its fold; higher is more normal.
    fold : integer array of shape (n,)
        Fold of each row, from 0.
    groups : integer array of shape (n,), optional
        Group of each row, from 0. Each group counts as one row: rows of a group are alike, and so
        many as there are groups can be told apart.

    Examples
    --------
    >>> ranks = LeftOutRanks(np.array([3.0, 1.0, 2.0, 4.0]), np.array([0, 0, 1, 1]))
    >>> ranks.p_values(np.array([[0.0, 0.0], [2.0, 3.0], [9.0, 9.0]]))
    array([0.2, 0.5, 1. ])
    """

    left_out: Array
    fold: Indices
    groups: Indices | None = None

    @cached_property
    def row_weight(self) -> Array:
        """What each row counts, of shape (n,): one, or its share of its group."""
        if self.groups is None:
            return np.ones(len(self.left_out))
        return np.asarray(1.0 / np.bincount(self.groups)[self.groups])

    @cached_property
    def total(self) -> float:
        """Number of rows, or of groups."""
        return float(self.row_weight.sum())

    @cached_property
    def _folds(self) -> list[tuple[Array, Array]]:
        """Left-out scores of each fold in increasing order, and their cumulative weights from 0."""
        out = []
        for k in range(self.fold.max() + 1):
            rows = np.flatnonzero(self.fold == k)
            rows = rows[np.argsort(self.left_out[rows], kind="stable")]
            counts = np.concatenate([[0.0], np.cumsum(self.row_weight[rows])])
            out.append((self.left_out[rows], counts))
        return out

    def p_values(self, scores: Array) -> Array:
        """P-value of each new row: small where few left-out rows score as low.

        Parameters
        ----------
        scores : array of shape (m, folds)
            Score of each new row by the model of each fold.

        Returns
        -------
        array of shape (m,), between 1/(n + 1) and 1
        """
        ranks = np.zeros(len(scores))
        for (ordered, counts), s in zip(self._folds, scores.T, strict=True):
            below = np.searchsorted(ordered, s, side="right")
            part = np.ones(len(s))
            inside = (below > 0) & (below < len(ordered))
            low, high = ordered[below[inside] - 1], ordered[below[inside]]
            part[inside] = (s[inside] - low) / (high - low)
            ranks += counts[below] + part * counts[-1] / self.total
        return np.asarray(np.minimum(ranks / (self.total + 1.0), 1.0))

    @cached_property
    def _tail(self) -> tuple[float, int, float]:
        """The lowest left-out score, and the rows and the scale of the tail below it."""
        ordered = np.sort(self.left_out)
        n = len(ordered)
        k = min(max(TAIL_ROWS, int(TAIL_SHARE * n)), n - 1)
        excess = float((ordered[k] - ordered[:k]).mean()) if k else 0.0
        least = LEAST_SCALE * float(ordered[-1] - ordered[0])
        return float(ordered[0]), max(k, 1), max(excess, least, float(np.finfo(float).tiny))

    def log_p_values(self, scores: Array) -> Array:
        r"""Logarithm of p, continued below 1/(n + 1) where a row lies below all left-out rows.

        With the mean excess :math:`\tau` of the k lowest left-out scores, k rows predict a row an
        excess x below them all with probability :math:`(1 + x / k\tau)^{-k}`.

        Parameters
        ----------
        scores : array of shape (m, folds)
            Score of each new row by the model of each fold.

        Returns
        -------
        array of shape (m,), at most 0
        """
        lowest, k, tau = self._tail
        excess = np.maximum(lowest - scores, 0.0).mean(axis=1)
        excess[(scores > lowest).any(axis=1)] = 0.0
        return np.asarray(np.log(self.p_values(scores)) - k * np.log1p(excess / (k * tau)))

    def left_out_p_values(self) -> Array:
        """P-value of each left-out row, itself among them, of shape (n,)."""
        ordered = np.sort(self.left_out)
        order = np.argsort(self.left_out, kind="stable")
        counts = np.concatenate([[0.0], np.cumsum(self.row_weight[order])])
        below = np.searchsorted(ordered, self.left_out, side="right")
        return np.asarray(counts[below] / self.total)

    def read_rate(self, false_alarm_rate: float) -> float:
        """The rate that is kept: the one asked for, or the lowest that so many rows can tell."""
        asked, lowest = false_alarm_rate, 1.0 / (self.total + 1.0)
        if isinstance(asked, bool) or not isinstance(asked, Real) or not 0 < asked < 1:
            raise ValueError(f"false_alarm_rate: got {asked!r}; expected a number in (0, 1).")
        if asked >= lowest * (1 - 1e-12):
            return float(asked)
        warnings.warn(
            f"false_alarm_rate={asked:g} needs at least {int(np.ceil(1 / asked)) - 1} rows, got "
            f"{self.total:g}: the lowest rate these can certify is {lowest:.3g}, which is used "
            "instead.",
            TooFewRowsWarning,
            stacklevel=3,
        )
        return lowest

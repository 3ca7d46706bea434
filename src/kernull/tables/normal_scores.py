r"""Columns of any shape as normal scores, and back: what empty cells are drawn by.

A value is as far up as the share of training values below it; its score is the normal quantile of
that share. Scores hang together as normal numbers do, whatever the shape of the columns: relations
of skewed columns are not bent by their largest values, and a drawn value is one that the column can
have.

Between quantiles that are kept, values are interpolated. Beyond `START` they follow the tail

.. math:: x = m + (x_0 - m)\,(s / s_0)^{-h}

with the median m, the value :math:`x_0` with a share :math:`s_0` beyond it, and h the mean of
:math:`\log((x - m) / (x_0 - m))` of those. A training row with the largest value then neither ends
what can be drawn, as a new row may lie beyond it, nor is it surrounded by cells that were filled in
after its own. Columns whose values repeat (counts, pixels that are mostly black) are taken as they
are, within what was seen: scores of a few rare values would be far out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from kernull._typing import Array, Mask

#: Where tails begin.
START = 0.95
#: What fewer than one in so many samples has is not drawn.
SAMPLES = 20.0


@dataclass(frozen=True)
class NormalScores:
    """Quantiles of the columns, of shape (q, d) at equal steps, and the number of their rows.

    Examples
    --------
    >>> x = np.exp(np.linspace(-1.0, 1.0, 101))[:, None]
    >>> shapes = NormalScores(x, 300)
    >>> shapes.scores(x[[20, 50, 80]]).ravel().round(1).tolist()
    [-0.9, 0.0, 0.9]
    >>> shapes.values(np.array([[-0.9], [0.0], [0.9]])).ravel().round(1).tolist()
    [0.5, 1.0, 1.9]
    """

    quantiles: Array
    rows: int

    def scores(self, X: Array) -> Array:
        """Normal scores of values, of shape (m, d), with mean 0 and variance 1 in training."""
        centre, spread = self._standard
        return np.asarray((self._plain(X) - centre) / spread)

    def values(self, Z: Array) -> Array:
        """Values of normal scores, of shape (m, d)."""
        level = self._bounded(ndtr(Z))
        X = np.column_stack(
            [np.interp(u, self._levels, q) for u, q in zip(level.T, self.quantiles.T, strict=True)]
        )
        middle = self.quantiles[len(self.quantiles) // 2]
        for sign, reach, heavy in self._tails:
            share = (level if sign < 0 else 1.0 - level) / self._beyond
            far = middle + sign * reach * np.maximum(share, 1e-300) ** -heavy
            X = np.where((share < 1.0) & (heavy > 0), far, X)
        centre, spread = self._standard
        linear = np.clip(centre + spread * Z, self.quantiles[0], self.quantiles[-1])
        return np.where(self._stepped, linear, X)

    def _plain(self, X: Array) -> Array:
        """Scores that are not standardised, or values where these repeat."""
        up, q = self._levels, self.quantiles
        columns = [np.interp(x, c, up) for x, c in zip(X.T, q.T, strict=True)]
        level = np.column_stack(columns)
        middle = q[len(q) // 2]
        for sign, reach, heavy in self._tails:
            ratio = np.maximum(sign * (X - middle) / reach, 1.0)
            share = self._beyond * ratio ** (-1.0 / np.where(heavy > 0, heavy, 1.0))
            beyond = share if sign < 0 else 1.0 - share
            level = np.where((ratio > 1.0) & (heavy > 0), beyond, level)
        return np.where(self._stepped, np.clip(X, q[0], q[-1]), ndtri(self._bounded(level)))

    @cached_property
    def _stepped(self) -> Mask:
        return np.asarray((np.diff(self.quantiles, axis=0) <= 0).any(axis=0))

    def _bounded(self, level: Array) -> Array:
        least = 1.0 / (SAMPLES * (self.rows + 1.0))
        return np.clip(level, least, 1.0 - least)

    @property
    def _levels(self) -> Array:
        """Shares below the quantiles: of n rows, the lowest has 1/(n + 1)."""
        return np.linspace(1.0, max(self.rows, 1), len(self.quantiles)) / (self.rows + 1.0)

    @property
    def _beyond(self) -> float:
        return float(1.0 - self._levels[self._start])

    @property
    def _start(self) -> int:
        return round(START * (len(self.quantiles) - 1))

    @cached_property
    def _tails(self) -> list[tuple[float, Array, Array]]:
        """Of each side: its sign, where its tail begins, and h, which is zero if there is none."""
        out = []
        for sign in (-1.0, 1.0):
            q = self.quantiles if sign > 0 else -self.quantiles[::-1]
            top = q[self._start :] - q[len(q) // 2]
            told = (top[0] > 0) & (np.diff(top, axis=0) > 0).all(axis=0)
            logs = np.log(np.where(told, top, 1.0) / np.where(told, top[0], 1.0))
            out.append((sign, np.where(told, top[0], 1.0), (logs[1:] + logs[:-1]).mean(axis=0) / 2))
        return out

    @cached_property
    def _standard(self) -> tuple[Array, Array]:
        found = self._plain(self.quantiles)
        spread = found.std(axis=0)
        return found.mean(axis=0), np.where(spread > 0, spread, 1.0)

r"""Has what comes changed? A sequential test over scores, with a stated false-alarm rate.

Each score gets its rank among the scores of normal rows and all that came before it, as a number p
between 0 and 1 (ties by chance). While new rows are like the normal ones (exchangeable), the p are
independent and uniform, whatever the data. A bet :math:`f_k(p) \ge 0` with
:math:`\int_0^1 f_k = 1` does not gain on the average then, so of

.. math:: R_t = \sum_k w_k R_t^k, \qquad R_t^k = (1 + R_{t-1}^k) f_k(p_t)

(Shiryaev and Roberts' statistic) :math:`R_t - t` is a martingale, and the mean number of rows until
:math:`R_t` first reaches A is at least A: an alarm at A = 100,000 is false at most once in 100,000
rows, on the average. The bets pay where many rows are flagged (small p), and where the mean of the
scores falls or rises.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Powers of the bets on small p, and slopes of those on the mean.
POWERS = (0.3, 0.5, 0.7)
SLOPES = (-0.9, 0.9)
#: Scores that are kept to rank new ones among.
MOST = 200_000


class DriftTest:
    """Watch scores one by one, beside ``normal`` ones of rows that the model left out.

    ``rows`` is the least mean number of rows between false alarms; ``seed`` that of broken ties.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> test = DriftTest(rng.normal(size=500), rows=10_000)
    >>> any(test.see(score) for score in rng.normal(size=500))
    False
    >>> any(test.see(score) for score in rng.normal(size=200) - 1.0)
    True
    """

    def __init__(self, normal: Sequence[float] | Any, rows: float = 1e5, seed: int = 0) -> None:
        self.known = sorted(float(score) for score in normal)
        self.rows = rows
        self.random = np.random.default_rng(seed)
        self.R = np.zeros(len(POWERS) + len(SLOPES))
        self.seen: list[float] = []

    def state(self) -> dict[str, Any]:
        """What the test has learned since it began, for JSON."""
        random = self.random.bit_generator.state
        return {"R": self.R.tolist(), "seen": self.seen, "random": random}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave, with the same normal scores."""
        R, seen = np.array(state["R"], dtype=float), [float(score) for score in state["seen"]]
        if R.shape != self.R.shape or not (np.isfinite(R).all() and (R >= 0).all()):
            raise ValueError("R: expected one number per bet.")
        self.random.bit_generator.state = state["random"]
        self.R, self.seen, self.known = R, seen, sorted([*self.known, *seen])

    def see(self, score: float) -> bool:
        """Take in one score; True where it raises the alarm, after which the test starts anew."""
        if np.isnan(score):
            return False
        low, high = bisect_left(self.known, score), bisect_right(self.known, score)
        p = (low + self.random.random() * (high - low + 1)) / (len(self.known) + 1)
        if len(self.known) < MOST:
            insort(self.known, float(score))
            self.seen.append(float(score))
        p = max(p, 1e-12)
        bets = [e * p ** (e - 1.0) for e in POWERS] + [1.0 + s * (2.0 * p - 1.0) for s in SLOPES]
        self.R = (1.0 + self.R) * np.array(bets)
        if self.R.mean() < self.rows:
            return False
        self.R[:] = 0.0
        return True

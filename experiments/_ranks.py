"""Comparing methods over many problems: average ranks, Friedman's test, critical differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, friedmanchisquare, rankdata, studentized_range, wilcoxon

from kernull._typing import Array

__all__ = ["Ranking", "paired", "rank_methods"]


@dataclass(frozen=True)
class Ranking:
    r"""Average ranks of k methods over N problems (1 is best).

    The critical difference is Nemenyi's,
    :math:`CD = q_\alpha \sqrt{k(k+1) / (6N)}`: methods whose average ranks differ by less cannot
    be told apart at level alpha.

    Attributes
    ----------
    methods : tuple of str
        From best to worst.
    ranks : tuple of float
        Their average ranks.
    critical_difference : float
    p_value : float
        Friedman's test that all methods are equal.
    n_problems : int
    alpha : float
    """

    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    critical_difference: float
    p_value: float
    n_problems: int
    alpha: float

    def cliques(self) -> list[tuple[int, int]]:
        """Largest runs (first, last) of methods that cannot be told apart."""
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(self.ranks):
            last = max(
                k for k, other in enumerate(self.ranks) if other - rank < self.critical_difference
            )
            if last > first and not (found and found[-1][1] >= last):
                found.append((first, last))
        return found


def rank_methods(methods: Sequence[str], scores: Any, alpha: float = 0.05) -> Ranking:
    """Rank methods by a table of scores, higher is better.

    Parameters
    ----------
    methods : sequence of str
        Names of the k methods.
    scores : array of shape (N, k)
        One row per problem. Scores that differ by rounding errors alone (beyond the tenth
        significant digit) are ties, and ties share their rank.
    alpha : float
        Level of the critical difference.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> ranking = rank_methods(["a", "b"], [[0.9, 0.8], [0.7, 0.6], [0.9, 0.9]])
    >>> ranking.methods
    ('a', 'b')
    >>> [round(r, 2) for r in ranking.ranks]
    [1.17, 1.83]
    >>> rank_methods(["a", "b"], [[0.3, 0.1 + 0.2], [0.5, 0.4]]).ranks
    (1.25, 1.75)
    """
    table = np.asarray(scores, dtype=float)
    N, k = table.shape
    if k != len(methods) or k < 2 or N < 2:
        raise ValueError(
            f"scores: got shape {table.shape} for {len(methods)} methods; expected one row per "
            "problem, one column per method, at least two of each."
        )
    ranks = np.apply_along_axis(rankdata, 1, -_rounded(table))
    mean = ranks.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    q = float(studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2.0)
    return Ranking(
        tuple(methods[i] for i in order),
        tuple(float(mean[i]) for i in order),
        float(q * np.sqrt(k * (k + 1) / (6.0 * N))),
        _friedman(ranks),
        N,
        alpha,
    )


def _rounded(table: Array) -> Array:
    """Ten significant digits of the largest entry: the same sum in another order ties with it."""
    largest = float(np.abs(table).max())
    digits = 10 - int(np.ceil(np.log10(largest))) if largest > 0 else 10
    return np.round(table, digits)


def _friedman(ranks: Array) -> float:
    """P-value of Friedman's chi-square; 1 where every problem is a tie of all methods."""
    if np.ptp(ranks, axis=1).max() == 0:
        return 1.0
    if ranks.shape[1] == 2:  # SciPy asks for three; with two it is the sign test's chi-square
        wins = float(np.sum(ranks[:, 0] < ranks[:, 1]))
        losses = float(np.sum(ranks[:, 0] > ranks[:, 1]))
        return float(chi2.sf((wins - losses) ** 2 / (wins + losses), 1))
    return float(friedmanchisquare(*ranks.T).pvalue)


def paired(ours: Any, theirs: Any) -> tuple[float, int, int, float]:
    """Mean difference, wins, losses, and the p-value of Wilcoxon's signed-rank test (two-sided)."""
    both = _rounded(np.array([ours, theirs], dtype=float))
    difference = both[0] - both[1]
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    if wins + losses == 0:
        return 0.0, 0, 0, 1.0
    p_value = float(wilcoxon(difference, zero_method="zsplit").pvalue)
    return float(difference.mean()), wins, losses, p_value

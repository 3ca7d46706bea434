r"""Evidence that a row is not normal, in nats, from the scores that normal rows got when left out.

.. math:: e(x) = -\log p(x), \qquad
   p(x) = \frac{1 + \#\{k : S_k \le s(x)\}}{n + 1} \quad \text{inside the sample}

where between two of the S the count rises linearly, so that no two scores tie. Below the minimum m
an exponential tail, :math:`p(x) = e^{-(m - s(x))/\tau} / (n + 1)`; tau is the mean excess of the
lowest tenth (at least five) under the next value, no less than a thousandth of the spread of S.
Evidence of any score is comparable with that of any other, free of units, and has no upper end.
Where S has fewer than 20 different values nothing is known of the tail: e is log(n + 1) down to an
edge, if one is given, and rises by one for each unit below it. (For minus the logarithm of a
distance, with the size of the sample as the edge: a row ten times as far away as any two training
rows has log 10 more.)

Rows count by their weights, of mean one. A training row is ranked among the others, those of its
group left out; if it lies below them all, minimum and tail are theirs. So much for rows that are
left out. But a threshold compares them with a new row, which all n of them judge, and by rights it
would be there when they are judged: else the second lowest row, with the lowest away, looks as odd
as the lowest one, and small samples flag too few. The new rows that matter stand out: they lie
below all others, so that a training row has one row more below it, but not in every kind of score.
In what share of the kinds is seen from the oddest twentieth of the training rows: where they lie
below all the rest (by Laplace's rule, for they are few). Evidence is the mean of both, with the new
row by that share.

Of the tail that a training row meets below all the others, k rows tell: for an excess of x it has
:math:`k \log(1 + x / (k \tau))` more than the lowest, as a tail predicts whose scale was
learned from k rows. Without that care one normal row of a small sample looks impossible, and no new
row can look odder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.calibration.left_out_distances import read_groups, trust
from kernull.calibration.left_out_scores import lower_ties

__all__ = ["Tails", "combine", "rarity"]

#: Share of the rows, and fewest rows, that the tail is learned from.
TAIL_SHARE, TAIL_ROWS = 0.1, 5
#: tau is at least this share of the spread.
LEAST_TAU = 1e-3
#: Share of the rows that show in how many kinds of score a row that stands out does so.
ODD_SHARE = 0.05
#: Below so many different values there is no tail.
FEWEST_VALUES = 20
#: Scores of one kernel that tie are lowered by so many n-ths of their spread, at least and at most,
#: and by no more than this share of it: with a ridge that is small, the projection of a row that is
#: alone in its column moves by nineteen n-ths with one row more.
TIED, TIED_SHARE = (3.0, 25.0), 0.05
#: Differences of this relative size are rounding.
SLACK = 1e-9
#: Tail steps up to which evidence is linear; beyond, it grows with the fourth root, so that no
#: score whatever is infinite and their squares can still be added up.
LINEAR = 1e12
LARGEST = np.finfo(float).max
#: Times the rows learned from: a rarity beyond is the shape of a tail, which no row speaks for.
MOST_TIMES = 100


@dataclass(frozen=True, eq=False)
class Tails:
    """Left-out scores of J kinds, ready to turn new scores into evidence.

    Parameters
    ----------
    ordered : array of shape (n, J)
        The scores of each kind in increasing order, less a slack for rounding, divided by 4.
    counts : array of shape (n, J)
        Cumulative weight of the rows up to each score.
    tau : array of shape (J,)
        Scale of the tail, divided by 4; infinite where there is none.
    distinct : integer array of shape (J,)
        Number of different scores.
    own : array of shape (n, J)
        Evidence of the training rows, each ranked among the others.
    edges : array of shape (J,)
        Where scores without a tail begin to count by themselves, divided by 4; minus infinity
        where they never do.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).normal(size=(99, 2))
    >>> tails = Tails.fit(scores)
    >>> e = tails.evidence(np.array([[0.0, -1e6], [-9.0, np.nan]]))
    >>> bool(np.isfinite(e).all()), bool(e[1, 0] > np.log(100) > e[0, 0])
    (True, True)
    """

    ordered: Array
    counts: Array
    tau: Array
    distinct: Indices
    own: Array
    edges: Array

    @classmethod
    def fit(
        cls,
        scores: Array,
        sample_weight: Any = None,
        groups: Any = None,
        share: float = TAIL_SHARE,
        edges: Array | None = None,
        beside: Array | None = None,
    ) -> Tails:
        """From left-out scores, of shape (n, J) or (n,); higher is more normal.

        Scores of a kind without a tail add evidence below the kind's edge, if there is one.
        ``beside``, of shape (J, n), are the scores with the lowest row of each kind gone as well,
        which that row is compared with; NaN where it makes no difference.

        Scores that tie are lowered first, by `lower_ties`.
        """
        S = _bounded(scores)
        n, J = S.shape
        S = lower_ties(S, _tied_rows(n))
        weight, group = trust(sample_weight, n), read_groups(groups, n)
        ordered, counts = np.empty((n, J)), np.empty((n, J))
        tau, distinct = np.empty(J), np.empty(J, dtype=np.intp)
        own = np.empty((n, J))
        edge = np.full(J, -np.inf) if edges is None else 0.25 * np.asarray(edges, dtype=float)
        below = _share_below(S)
        for j in range(J):
            column = _column(S[:, j], weight, share)
            ordered[:, j], counts[:, j], tau[j], distinct[j] = column
            known = None if beside is None or np.isnan(beside[j]).any() else 0.25 * beside[j]
            own[:, j] = _among_others(S[:, j], weight, group, share, column, edge[j], known, below)
        return cls(ordered, counts, tau, distinct, own, edge)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.ordered)

    def evidence(self, scores: Array) -> Array:
        """Evidence of new scores, of shape (m, J): falls as a score rises, never below zero."""
        s = _bounded(scores)
        out = np.empty(s.shape)
        for j in range(s.shape[1]):
            known = self.ordered[:, j], self.counts[:, j], self.tau[j], self.edges[j]
            out[:, j] = _evidence(s[:, j], *known)
        return out

    def extrapolates(self, scores: Array) -> Mask:
        """Where a score lies below all that was seen, so that its evidence rests on the tail."""
        return np.asarray(_bounded(scores) < self.ordered[0])


def _tied_rows(n: int) -> float:
    """By how many n-ths of their spread scores that tie are lowered."""
    return max(TIED[0], min(TIED[1], TIED_SHARE * n))


def _bounded(scores: Array) -> Array:
    """Scores divided by 4, so that differences are finite; no number is lower than any number."""
    S = np.asarray(scores, dtype=float)
    S = S[:, None] if S.ndim == 1 else S
    infinite = np.where(S > 0, LARGEST, -LARGEST)  # what is no number is not above zero
    return np.where(np.isfinite(S), 0.25 * S, 0.3 * infinite)


def _column(
    S: Array, weight: Array, share: float, fewest: int = FEWEST_VALUES
) -> tuple[Array, Array, float, int]:
    """Scores of one kind in order with their weights, tau, and the number of different ones."""
    n = len(S)
    order = np.argsort(S, kind="stable")
    c = S[order]
    # Rows that are copies may differ in their last digits.
    typical = _typical(c)
    distinct = 1 + int((np.diff(c) > SLACK * (np.abs(c[1:]) + typical)).sum()) if n else 0
    counts = np.cumsum(weight[order])
    c = c - SLACK * (np.abs(c) + typical)
    if n < 2 or distinct < fewest:
        return c, counts, np.inf, distinct
    lowest = int(np.searchsorted(counts, share * counts[-1] * (1 + SLACK), side="right"))
    k = min(max(TAIL_ROWS, lowest), n - 1)
    part = weight[order][:k] / weight[order][:k].sum()
    tau = max(float(part @ (c[k] - c[:k])), LEAST_TAU * float(c[-1] - c[0]), 1e-300)
    return c, counts, tau, distinct


def _evidence(
    s: Array, ordered: Array, counts: Array, tau: float, edge: float, told: float = np.inf
) -> Array:
    """Evidence of scores; ``told`` is the number of rows that the tail is known from."""
    total = counts[-1] + 1.0
    at = np.searchsorted(ordered, s, side="right")
    below = np.concatenate([[0.0], counts])[at]
    inside = np.flatnonzero((at > 0) & (at < len(ordered)))
    k = at[inside]
    lower = _raised(ordered[k - 1], ordered, 2.0)  # a copy counts as much as its kind
    step = np.maximum(s[inside] - lower, 0.0) / np.maximum(ordered[k] - lower, 1e-300)
    below[inside] += np.minimum(step, 1.0) * (counts[k] - counts[k - 1])
    out = -np.log(np.minimum((1.0 + below) / total, 1.0))
    start, scale = (ordered[0], tau) if np.isfinite(tau) else (min(ordered[0], edge), 0.25)
    under = s < start
    if np.isfinite(start):
        steps = _tail(start - s[under], scale)
        predicted = np.isfinite(tau) and np.isfinite(told)
        out[under] = np.log(total) + (told * np.log1p(steps / told) if predicted else steps)
    return np.asarray(np.maximum(out, 0.0))


def _tail(excess: Array, tau: float) -> Array:
    """Steps of tau, bent so that it is finite and still rises with every number."""
    root = np.sqrt(excess) / np.sqrt(tau)  # its square may be too large for a number
    steps = np.minimum(root, np.sqrt(LINEAR))
    far = np.maximum(np.sqrt(root / np.sqrt(LINEAR)), 1.0)
    near = np.where(root > steps, 0.0, excess) / tau
    return np.asarray(np.where(root > steps, LINEAR * far, near))


def _among_others(
    S: Array,
    weight: Array,
    group: Indices,
    share: float,
    column: tuple[Array, Array, float, int],
    edge: float = -np.inf,
    beside: Array | None = None,
    new: float = 1.0,
) -> Array:
    """Evidence of each score among those outside its group, and by the share ``new`` a new one.

    ``column`` is that of all of them.
    """
    ordered, counts, tau, _ = column
    # New rows meet a tail if all rows together have one; so does a row that is left out.
    fewest = 2 if np.isfinite(tau) else len(S) + 1
    total = counts[-1]
    below = np.concatenate([[0.0], counts])[np.searchsorted(ordered, S, side="right")]
    sizes, held = np.bincount(group), np.bincount(group, weight)
    if len(sizes) == len(S):
        mine = weight
    else:  # the weight of its own group at or below each score
        mine = np.empty(len(S))
        for g in range(len(sizes)):
            rows = np.flatnonzero(group == g)
            as_low = S[rows][None, :] <= _raised(S[rows], S)[:, None]
            mine[rows] = as_low @ weight[rows]
    others = len(S) - sizes[group]
    scale = others / (total - held[group])  # their weights have mean one too
    count = np.maximum(below - mine, 0.0) * scale
    lowest = np.flatnonzero(count < 1e-9)
    step = _step_to_next(S, weight) * scale
    step[lowest] = 0.0  # what is next below the others is of its own group
    count += step
    with_new = -np.log(np.minimum((2.0 + count) / (others + 2.0), 1.0))
    out = -np.log(np.minimum((1.0 + count) / (others + 1.0), 1.0))
    for g in np.unique(group[lowest]):
        rows, rest = lowest[group[lowest] == g], group != g
        known = S if beside is None else np.minimum(S, beside)
        c, n_c, tau, _ = _column(known[rest], trust(weight[rest], int(rest.sum())), share, fewest)
        told = max(TAIL_ROWS, int(share * len(c)))
        out[rows] = _evidence(S[rows], c, n_c, tau, edge, told)
    return np.asarray(np.maximum(out + new * (with_new - out), 0.0))


def _share_below(S: Array) -> float:
    """Share of the kinds in which the oddest rows lie below all the rest, by Laplace's rule."""
    (n, J), order = S.shape, np.argsort(S, axis=0, kind="stable")
    # Among different scores, as copies differ by rounding; and among all, the last of its kind.
    places, ranks = np.empty((n, J), dtype=np.intp), np.empty((n, J))
    for j in range(J):
        c = S[order[:, j], j]
        differ = np.diff(c) > SLACK * (np.abs(c[1:]) + _typical(c))
        place = np.append(0, np.cumsum(differ))[:n]
        places[order[:, j], j] = place
        ranks[order[:, j], j] = np.searchsorted(place, place, side="right")
    odd = np.argsort((np.log(ranks / (n + 1.0)) ** 2).sum(axis=1), kind="stable")[::-1]
    k = max(1, int(ODD_SHARE * n))
    lie_below = places[odd[:k]] <= places[odd[k:]].min(axis=0, initial=n)
    return float((lie_below.sum() + 1.0) / (k * J + 2.0))


def _step_to_next(S: Array, weight: Array) -> Array:
    """Part of the next row's weight that each score counts, between its two neighbours."""
    order = np.argsort(S, kind="stable")
    c = S[order]
    out = np.zeros(len(S))
    if len(S) > 2:
        raised = _raised(c[:-1], c)
        lower, upper = raised[:-1], raised[1:]
        alone = (c[1:-1] > lower) & (c[2:] > upper)  # a copy counts as much as its kind
        step = np.divide(c[1:-1] - lower, c[2:] - lower, out=np.zeros(len(c) - 2), where=alone)
        out[order[1:-1]] = step * weight[order[2:]]
    return out


def _raised(values: Array, S: Array, times: float = 1.0) -> Array:
    """Values plus the slack that ordered scores are lowered by."""
    return np.asarray(values + times * SLACK * (np.abs(values) + _typical(S)))


def _typical(S: Array) -> float:
    """Median distance of scores from their median."""
    return _median(np.abs(S - _median(S)))


def _median(values: Array) -> float:
    """Of numbers alone: NumPy's own looks for others, several times as long as for the median."""
    if not len(values):
        return float("nan")
    low, high = (len(values) - 1) // 2, len(values) // 2
    parted = np.partition(values, (low, high))
    return float(parted[low] + parted[high]) / 2.0


def combine(evidence: Array, weights: Array) -> Array:
    r"""Evidence of each row from all kinds, :math:`E = \| b \circ e \|_2 / \max b`.

    Parameters
    ----------
    evidence : array of shape (m, J)
    weights : array of shape (J,)
        Weights b >= 0, not all zero.

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> combine(np.array([[3.0, 8.0]]), np.array([0.5, 0.25]))
    array([5.])
    """
    parts = evidence * (weights / np.max(weights))
    largest = np.maximum(parts.max(axis=1), np.finfo(float).tiny)
    return np.asarray(largest * ((parts / largest[:, None]) ** 2).sum(axis=1) ** 0.5)


def rarity(combined: Array, tails: Tails) -> tuple[Array, Mask]:
    """How rare a row is: one in so many normal rows has as much evidence against it.

    Parameters
    ----------
    combined : array of shape (m,)
        E of new rows.
    tails : Tails
        Fitted to minus the left-out E of the training rows.

    Returns
    -------
    one_in : array of shape (m,)
        At least 1, and at most `MOST_TIMES` the training rows, which stands for all beyond.
    extrapolates : boolean array of shape (m,)
        Where no training row had as much, so that the number rests on the tail.
    """
    scores = -np.asarray(combined, dtype=float)
    one_in = np.exp(np.minimum(tails.evidence(scores)[:, 0], 690.0))
    return np.minimum(one_in, float(MOST_TIMES * len(tails.own))), tails.extrapolates(scores)[:, 0]

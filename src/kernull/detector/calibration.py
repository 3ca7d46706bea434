"""From scores of rows that a model did not see to a threshold, p-values and rarities.

`Calibration` has the definitions, `Cross` and `Split` say which rows the scores come from. Before
them: what weights and groups of rows count in ranks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

import numpy as np
from scipy.stats import false_discovery_control
from sklearn.utils import check_random_state

from kernull._fields import Checked, Shape, stored
from kernull._typing import Array, Indices, Mask
from kernull.errors import TooFewRowsWarning

#: Weight below which products of it, or of its inverse, would be no numbers.
LEAST_WEIGHT_OF_ROW = 1e-100


def relative_weights(weight: Array | None) -> Array | None:
    """Row weights of mean one; None where all are equal, for only ratios matter.

    Parameters
    ----------
    weight : array of shape (n,) or None
        Positive.

    Returns
    -------
    array of shape (n,) or None

    Examples
    --------
    >>> relative_weights(np.array([2.0, 2.0, 8.0]))
    array([0.5, 0.5, 2. ])
    """
    if weight is None or (weight == weight[0]).all():
        return None
    return np.asarray(np.maximum(weight * (len(weight) / weight.sum()), LEAST_WEIGHT_OF_ROW))


def read_groups(groups: Any, n: int) -> Indices:
    """Number of the group of each row, from 0; one group a row where None.

    Every row needs a label: NaN and None are refused, not taken for one group more.

    Parameters
    ----------
    groups : array of shape (n,) or None
        Label of the group of each row.
    n : int

    Returns
    -------
    integer array of shape (n,)
    """
    if groups is None:
        return np.arange(n)
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups: got shape {labels.shape}; expected {(n,)}, one label per row.")
    if labels.dtype.kind not in "biu":
        # A list as it came: next to text, NumPy makes a text of NaN.
        given = groups if isinstance(groups, list | tuple) else labels
        lost = [row for row, label in enumerate(given) if is_no_label(label)]
        if lost:
            raise ValueError(
                f"groups: {len(lost):,} of {n:,} rows have no label (first: row {lost[0]}, "
                f"{given[lost[0]]!r}); expected one for every row. Give rows that belong to no "
                "other a label that no other row has."
            )
    numbers = np.ravel(np.unique(labels, return_inverse=True)[1]).astype(np.intp)
    if numbers.max(initial=0) < 1 and n > 1:
        raise ValueError("groups: all rows are of one group; expected at least two groups.")
    return numbers


def is_no_label(label: Any) -> bool:
    """Whether a label is none: None, NaN, NaT or pandas' NA."""
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA neither does nor does not
        return True


def rank_weights(weight: Array | None, groups: Indices | None, n: int) -> Array:
    r"""What each row counts in ranks: all rows of a group together as one row.

    Rows of weights w count :math:`(\sum w)^2 / \sum w^2` together, the number of rows of equal
    weight that they are worth. Counted as n, 300 rows of which 30 weigh 50 times as much as others
    have a false discovery proportion of 0.16 at 0.1; counted as 41, of 0.

    Parameters
    ----------
    weight : array of shape (n,) or None
        Weights of the rows; None: all one.
    groups : integer array of shape (n,) or None
        Group of each row; None: each by itself.
    n : int

    Returns
    -------
    array of shape (n,)
        Their sum is the number of groups of equal weight.

    Examples
    --------
    >>> rank_weights(np.array([1.0, 1.0, 2.0]), None, 3).round(2)
    array([0.67, 0.67, 1.33])
    """
    out = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    if groups is None:
        return np.asarray(out * (out.sum() / (out @ out)))
    out = out / np.bincount(groups)[groups]
    each = np.bincount(groups, out)
    return np.asarray(out * (each.sum() / (each @ each)))


# -- Conformal p-values and the threshold that belongs to a false-alarm rate. --


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
#: Left-out scores are lowered by this share of their interquartile range, and by this much: equal
#: rows tie although the models of their folds differ a little.
TIE_SHARE, TIE_ROUNDING = 0.01, 1e-9
#: Numbers between two others that are looked at together: as quick as one.
BETWEEN = 129


@stored
@dataclass(frozen=True)
class Calibration(Checked):
    r"""Scores of calibration rows, ready to judge new ones.

    .. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{m + 1}

    A row of weight w counts as w rows; weights are those of `rank_weights`.

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

    scores: Annotated[Array, Shape("m")]
    counts: Annotated[Array, Shape("m")]
    smooth: bool = False

    def contradiction(self) -> str | None:
        """What does not fit together."""
        if not len(self.scores) or (np.diff(self.scores) < 0).any():
            return "scores that are not in order"
        grows = (np.diff(self.counts, prepend=0.0) > 0).all()
        return None if grows else "counts that do not grow"

    @classmethod
    def of(
        cls, scores: Array, sample_weight: Array | None = None, *, smooth: bool = False
    ) -> Calibration:
        """Sort calibration scores.

        Parameters
        ----------
        scores : array of shape (n,)
            Scores of rows that the model did not see.
        sample_weight : array of shape (n,), optional
            What each row counts in ranks; one by default.
        smooth : bool
            Whether p-values interpolate between ranks, as for rows left out by folds.
        """
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
        """P-value of each score: small where few calibration rows score as low.

        Parameters
        ----------
        scores : array of shape (m,)
            Scores of new rows; higher is more normal.

        Returns
        -------
        array of shape (m,)
        """
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
        which stands for all rarer rows. With fewer than 20 different scores it is 1/p.

        Parameters
        ----------
        scores : array of shape (r,)
            Scores of new rows; higher is more normal.

        Returns
        -------
        array of shape (r,)
            At most `MOST_TIMES` times the number of rows.
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

        Parameters
        ----------
        rate : float in (0, 1)
            Share of new normal rows to be flagged.

        Returns
        -------
        threshold : float
        rate : float
            The rate that is kept: the one asked for, or the lowest that can be.
        """
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < rate < 1:
            raise ValueError(f"false_alarm_rate: got {rate!r}; expected a number in (0, 1).")
        total = float(self.counts[-1])
        lowest = 1.0 / (total + 1.0)
        if rate < lowest * (1 - 1e-12):
            warnings.warn(
                f"false_alarm_rate={rate:g} needs at least {int(np.ceil(1 / rate)) - 1} "
                f"calibration rows (a group counts as one, and n rows of unequal weights w as "
                f"(sum w)^2 / sum w^2), got {total:g}: the lowest rate these "
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
        # p-values interpolate: the lowest number whose p-value is above the rate, among the
        # floating-point numbers themselves, so that flags and p-values agree on every score there
        # is (a rate such as 3/10, which is no binary number, up to its rounding).
        ends = np.array([beyond, self.scores[after]])
        while len(between := np.unique(np.linspace(*ends, BETWEEN))) > 2:
            first = int(np.searchsorted(self.p_values(between[1:-1]) > limit, True))
            ends = between[first : first + 2]
        return float(ends[1]), float(rate)


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


def lowered(scores: Array) -> Array:
    """Left-out scores (n,) or (n, C) less the slack for ties.

    Parameters
    ----------
    scores : array of shape (n,) or (n, C)

    Returns
    -------
    array of the same shape
    """
    low, high = np.quantile(scores, [0.25, 0.75], axis=0)
    return np.asarray(scores - (TIE_SHARE * (high - low) + TIE_ROUNDING))


def discoveries(p_values: Array, fdr: float) -> Mask:
    """Rows that Benjamini and Hochberg's procedure flags at this false discovery rate.

    Parameters
    ----------
    p_values : array of shape (m,)
        P-value of each row.
    fdr : float in (0, 1)
        Largest expected share of false discoveries among the flagged rows.

    Returns
    -------
    mask of shape (m,)
        True where a row is flagged.
    """
    if isinstance(fdr, bool) or not isinstance(fdr, Real) or not 0 < fdr < 1:
        raise ValueError(f"fdr: got {fdr!r}; expected a number in (0, 1).")
    return np.asarray(false_discovery_control(p_values) <= fdr)


# -- Which scores a threshold comes from: of rows left out by folds, or of rows held out. --


#: Folds of ``calibration="cross"``. To a model of a tenth less of few rows, rows left out look
#: odder than new rows do to the model of all: on five kinds of tables of 100 rows, ten folds flag
#: 4.0% of new rows at 5%, and twenty 4.8%. So they do where columns are many: of 600 rows of five
#: factors in 400 columns ten flag 7.5%, and twenty 5.4%.
FOLDS, FOLDS_OF_FEW, FEW = 10, 20, 200
#: Rows up to which folds of a sum over kernels are solved, and rows held out beyond.
MOST_ROWS, HELD_OUT = 4000, 2000
#: Share of the rows that ``calibration="split"`` holds out.
HELD_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores of rows by models that did not see them.

    Parameters
    ----------
    scores : array of shape (m,)
        Of the calibration rows.
    weight : array of shape (m,), optional
        What each row counts; None where all are one.
    contributions : array of shape (m, J), optional
        What each kernel contributed, of scores that are sums over kernels.
    evidence : array of shape (m, C), optional
        Evidence against each row, of rows held out that are judged by it.
    smooth : bool, default=True
        Whether p-values interpolate: those of rows held out count, for their bound to hold.
    """

    scores: Array
    weight: Array | None = None
    contributions: Array | None = None
    evidence: Array | None = None
    smooth: bool = True

    @classmethod
    def held_out(cls, scores: Array, weight: Array | None, **parts: Array | None) -> LeftOut:
        """Scores of rows held out.

        Less the rounding by which a row's score may differ with the rows that are scored with it.
        """
        scores = scores - SLACK * np.abs(scores).max(initial=0.0)
        return cls(scores, weight, **parts, smooth=False)


@stored
@dataclass(frozen=True)
class Cross:
    """Every row is scored by a model fitted without its fold; all rows are learned from.

    Parameters
    ----------
    folds : int, optional
        Number of folds, at least 2; by default 10, and 20 of up to 200 rows, or of at most twice as
        many rows as columns. Where rows (or groups) are fewer, each is a fold.

    Notes
    -----
    A model that decides by the sum of its kernels is solved once a fold. Beyond 4,000 rows that
    would take long: 2,000 rows are then held out instead, as by `Split`.
    """

    folds: int | None = None

    def __post_init__(self) -> None:
        if self.folds is None:
            return
        whole = isinstance(self.folds, int | np.integer) and not isinstance(self.folds, bool)
        if not whole or self.folds < 2:
            raise ValueError(f"folds: got {self.folds!r}; expected a whole number, at least 2.")

    def count(self, n: int, columns: int = 0) -> int:
        """Number of folds of so many rows.

        Parameters
        ----------
        n : int
            Number of rows, or of groups.
        columns : int, default=0
            Number of columns that the views read.

        Returns
        -------
        int
            ``folds``, or by default 20 of up to max(200, 2 ``columns``) rows and 10 of more.
        """
        if self.folds is not None:
            return int(self.folds)
        return FOLDS_OF_FEW if n <= max(FEW, 2 * columns) else FOLDS


@stored
@dataclass(frozen=True)
class Split:
    """Rows held out of learning set the threshold: it has a bound in any finite sample.

    Parameters
    ----------
    fraction : float in (0, 1) or int, default=0.25
        Share, or number, of the rows that are held out.
    """

    fraction: float | int = HELD_SHARE

    def __post_init__(self) -> None:
        count_of(self.fraction, 100)


def read_calibration(calibration: Any) -> Cross | Split:
    """What ``calibration`` stands for.

    Parameters
    ----------
    calibration : str, Cross or Split
        ``"cross"``, ``"split"``, or an object.
    """
    if isinstance(calibration, Cross | Split):
        return calibration
    known: dict[str, type[Cross] | type[Split]] = {"cross": Cross, "split": Split}
    if not isinstance(calibration, str) or calibration not in known:
        raise ValueError(
            f"calibration: got {calibration!r}; expected 'cross' (scores of all rows, each by a "
            "model fitted without its fold), 'split' (scores of rows held out), Cross(folds=20) or "
            "Split(0.3)."
        )
    return known[calibration]()


def hold_out(
    order: Indices,
    fraction: float | int,
    sample_weight: Array | None = None,
    groups: Indices | None = None,
) -> tuple[Array, Indices]:
    """Draw the rows that a fit does not see, so that their scores are those of new rows.

    Parameters
    ----------
    order : integer array of shape (k,)
        Rows of positive weight, in the order of the draw.
    fraction : float in (0, 1) or int
        Share or number of the rows to hold out.
    sample_weight : array of shape (n,), optional
        Rows of weight zero are neither fitted nor held out.
    groups : array of shape (n,), optional
        Whole groups are drawn until there are enough rows.

    Returns
    -------
    weight : array of shape (n,)
        Weights for the fit: zero for rows that are held out.
    held : integer array
        Positions of these rows, in increasing order.
    """
    weight = np.ones(len(order)) if sample_weight is None else np.array(sample_weight, dtype=float)
    count = count_of(fraction, len(order))
    if not 1 <= count <= len(order) - 2:
        raise ValueError(
            f"calibration: Split({fraction!r}) holds out {count} rows of n_samples = "
            f"{len(order)}; expected at least 1 row held out and 2 left to learn from."
        )
    # Groups in the order of the draw, until they have enough rows.
    _, first, group = np.unique(
        order if groups is None else groups[order], return_index=True, return_inverse=True
    )
    drawn = np.argsort(first)
    enough = np.searchsorted(np.cumsum(np.bincount(group)[drawn]), count) + 1
    held = np.sort(order[np.isin(group, drawn[:enough])])
    if len(held) > len(order) - 2:
        raise ValueError(
            "groups: holding out whole groups leaves fewer than 2 rows to learn from; use smaller "
            "groups, a smaller share in Split, or calibration='cross'."
        )
    weight[held] = 0.0
    return weight, held


def check_seed(random_state: Any) -> np.random.RandomState:
    """scikit-learn's check of a seed, with an error that names the parameter.

    Parameters
    ----------
    random_state : int, RandomState or None
        As in scikit-learn.
    """
    try:
        return check_random_state(random_state)  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state: got {random_state!r}; expected a whole number, a "
            "numpy.random.RandomState or None."
        ) from None


def count_of(fraction: Any, rows: int) -> int:
    """Number of rows that a share of them, or a number, stands for.

    Parameters
    ----------
    fraction : float or int
        Share of the rows, below 1, or a number of them.
    rows : int
    """
    is_number = isinstance(fraction, int | float | np.number) and not isinstance(fraction, bool)
    if is_number and isinstance(fraction, int | np.integer) and fraction >= 1:
        return int(fraction)
    if is_number and 0 < fraction < 1:
        return max(1, round(float(fraction) * rows))
    raise ValueError(
        f"calibration: got Split({fraction!r}); expected a share of the rows in (0, 1), or a "
        "number of rows."
    )

r"""Error rates of presentation attack detection (ISO/IEC 30107-3), and the equal error rate.

Labels are ``+1`` (target, bona fide) and ``-1``
(outlier, attack), a higher score means more normal, and a sample is *accepted* when
``score >= threshold``. With :math:`s_i` the scores, the two error rates at threshold :math:`t` are

.. math::

    \mathrm{FRR}(t) = \frac{\#\{i : y_i = +1,\ s_i < t\}}{n_+}, \qquad
    \mathrm{FAR}(t) = \frac{\#\{i : y_i = -1,\ s_i \ge t\}}{n_-}.

BPCER is FRR on bona fide presentations and APCER is FAR on the attacks of one instrument.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "AttackErrors", "EqualErrorRate", "apcer", "bpcer", "bpcer_at_apcer", "eer", "g_mean", "hter",
]  # fmt: skip

BONA_FIDE, ATTACK = 1, -1


@dataclass(frozen=True)
class AttackErrors:
    """APCER by attack instrument: rates of accepted attacks, in order of first appearance.

    Attributes
    ----------
    by_instrument : dict
    """

    by_instrument: dict[Hashable, float]

    @property
    def max(self) -> float:
        """The largest rate: the APCER that ISO/IEC 30107-3 asks to be reported."""
        return max(self.by_instrument.values())

    @property
    def worst(self) -> Hashable:
        """The instrument with the largest rate; the first to appear among equals."""
        return max(self.by_instrument, key=self.by_instrument.__getitem__)


def apcer(
    y_true: ArrayLike, scores: ArrayLike, threshold: float, *, instruments: ArrayLike | None = None
) -> AttackErrors:
    r"""Attack presentation classification error rate, by attack instrument.

    For an instrument (species) :math:`q` with attacks :math:`A_q`,

    .. math:: \mathrm{APCER}_q(t) = \frac{\#\{i \in A_q : s_i \ge t\}}{|A_q|},

    and the reported rate is the largest of these (ISO/IEC 30107-3).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels: +1 target (bona fide), -1 outlier (attack). What the rate counts must occur.
    scores : array-like of shape (n,)
        Scores; higher is more normal.
    threshold : float
        Rows are accepted where ``score >= threshold``; set it on a development set, for example
        that of `eer`.
    instruments : array-like of shape (n,), optional
        The instrument of each row (a printer, a display, ...); entries of bona fide rows are
        ignored. Without it all attacks count as one instrument named ``"attack"``.

    Examples
    --------
    >>> made_with = ["", "print", "print", "replay", "replay"]
    >>> rates = apcer([1, -1, -1, -1, -1], [0.9, 0.8, 0.1, 0.2, 0.3], 0.5, instruments=made_with)
    >>> rates.by_instrument, rates.max
    ({'print': 0.5, 'replay': 0.0}, 0.5)
    """
    y, s = _checked(y_true, scores, ATTACK)
    t = _checked_threshold(threshold)
    names = _checked_instruments(instruments, y)
    accepted: dict[Hashable, list[bool]] = {}
    for row in np.flatnonzero(y == ATTACK):
        accepted.setdefault(names[row], []).append(bool(s[row] >= t))
    return AttackErrors({name: sum(each) / len(each) for name, each in accepted.items()})


def bpcer(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> float:
    r"""Bona fide presentation classification error rate.

    .. math:: \mathrm{BPCER}(t) = \frac{\#\{i : y_i = +1,\ s_i < t\}}{n_+}

    Parameters
    ----------
    y_true, scores, threshold
        As in `apcer`.

    Examples
    --------
    >>> bpcer([1, 1, 1, 1, -1], [0.9, 0.8, 0.5, 0.1, 0.2], threshold=0.5)
    0.25
    """
    y, s = _checked(y_true, scores, BONA_FIDE)
    return float(np.mean(s[y == BONA_FIDE] < _checked_threshold(threshold)))


def _checked_instruments(instruments: ArrayLike | None, y: NDArray[np.int64]) -> list[Any]:
    """One hashable instrument a row; missing ones are allowed on bona fide rows only."""
    if instruments is None:
        return ["attack"] * y.size
    # dtype=object keeps what the caller gave: mixed lists would otherwise all turn into strings.
    array = np.asarray(instruments, dtype=object)
    if array.shape != y.shape:
        raise ValueError(
            f"instruments must have one entry for each of the {y.size} rows; "
            f"its shape is {array.shape}"
        )
    names: list[Any] = array.tolist()
    for row in np.flatnonzero(y == ATTACK):
        name = names[row]
        if name is None or name == "" or name != name:  # NaN differs from itself
            raise ValueError(
                f"instruments must name an instrument for every attack; row {row} has {name!r}"
            )
    return names


def _errors(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> tuple[float, float]:
    """FAR and FRR at a threshold."""
    y, s = _checked(y_true, scores, BONA_FIDE, ATTACK)
    t = _checked_threshold(threshold)
    return float(np.mean(s[y == ATTACK] >= t)), float(np.mean(s[y == BONA_FIDE] < t))


def hter(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> float:
    r"""Half total error rate.

    .. math:: \mathrm{HTER}(t) = \frac{\mathrm{FAR}(t) + \mathrm{FRR}(t)}{2}

    All outliers are taken together, whatever they were made with.

    Parameters
    ----------
    y_true, scores, threshold
        As in `apcer`.

    Examples
    --------
    >>> hter([1, 1, -1, -1], [0.9, 0.4, 0.6, 0.1], threshold=0.5)
    0.5
    """
    far, frr = _errors(y_true, scores, threshold)
    return (far + frr) / 2


def g_mean(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> float:
    r"""Geometric mean of the shares of targets accepted and of outliers rejected.

    .. math:: G(t) = \sqrt{(1 - \mathrm{FRR}(t))\,(1 - \mathrm{FAR}(t))}

    Parameters
    ----------
    y_true, scores, threshold
        As in `apcer`.

    Examples
    --------
    >>> g_mean([1, 1, -1, -1], [0.9, 0.4, 0.2, 0.1], threshold=0.5)
    0.7071067811865476
    """
    far, frr = _errors(y_true, scores, threshold)
    return float(np.sqrt((1 - frr) * (1 - far)))


def bpcer_at_apcer(
    y_true: ArrayLike, scores: ArrayLike, level: float, *, instruments: ArrayLike | None = None
) -> float:
    r"""BPCER at the lowest threshold whose APCER is no more than a fixed level.

    .. math:: \mathrm{BPCER}\left(\min\{t : \max_q \mathrm{APCER}_q(t) \le a\}\right)

    Parameters
    ----------
    y_true, scores
        As in `apcer`.
    level : float
        The APCER allowed, in [0, 1]; 0.05 gives what is often called BPCER20.
    instruments : array-like of shape (n,), optional
        As in `apcer`.

    Examples
    --------
    >>> bpcer_at_apcer([1, 1, 1, -1, -1], [0.9, 0.5, 0.3, 0.4, 0.1], level=0.0)
    0.3333333333333333
    """
    if isinstance(level, bool) or not 0 <= float(level) <= 1:
        raise ValueError(f"level: got {level!r}; expected a number from 0 to 1.")
    y, s = _checked(y_true, scores, BONA_FIDE, ATTACK)
    # APCER falls just above each attack score and nowhere else; the first threshold accepts all.
    steps: NDArray[np.float64] = np.unique(s[y == ATTACK])
    thresholds = np.concatenate([[s.min()], np.nextafter(steps, np.inf)])

    def allowed(threshold: float) -> bool:
        return apcer(y, s, threshold, instruments=instruments).max <= level

    # The rate falls along the thresholds, and is 0 at the last.
    return bpcer(y, s, float(thresholds[bisect_left(thresholds, True, key=allowed)]))


@dataclass(frozen=True)
class EqualErrorRate:
    """The equal error rate, and a threshold that comes as near to it as any can.

    Attributes
    ----------
    rate : float
        The interpolated equal error rate, in [0, 1].
    threshold : float
        A finite threshold whose two error rates are as close to each other as possible.
    false_accept, false_reject : float
        FAR and FRR at ``threshold``, on the same samples.
    """

    rate: float
    threshold: float
    false_accept: float
    false_reject: float


def eer(y_true: ArrayLike, scores: ArrayLike) -> EqualErrorRate:
    r"""Equal error rate: where FAR and FRR meet.

    Let :math:`t_1 < \dots < t_m` be the distinct scores and :math:`t_{m+1} = \infty`. The points
    :math:`(\mathrm{FAR}(t_k), \mathrm{FRR}(t_k))` run from (1, 0) to (0, 1); joined by straight
    lines they are the error curve (ROC, DET on plain axes), and the equal error rate is where
    that curve crosses FAR = FRR. The difference FRR - FAR rises strictly from one point to the
    next, so that there is exactly one crossing.

    **Ties.** Samples with the same score pass a threshold together. Where targets and outliers
    share a score the curve therefore has a slanted segment, and a crossing on it is interpolated
    linearly; this is the expected rate when ties at that score are broken at random. Elsewhere
    a segment is parallel to an axis and the crossing is exact. The rate does not change under
    strictly increasing maps of the scores, nor when labels and scores both change sign.

    **Threshold.** No single threshold reaches an interpolated rate, so the end of the crossed
    segment with the smaller \|FRR - FAR\| is taken; the stricter (higher) end if both are equal.
    All thresholds in :math:`(t_{k-1}, t_k]` act alike on these samples; the midpoint is returned,
    as it leaves the most room on both sides. If all scores are equal there is no midpoint; the
    stricter end then rejects everything, by the next number above that score.

    Parameters
    ----------
    y_true, scores
        As in `apcer`.

    Examples
    --------
    >>> eer([1, 1, 1, 1, -1, -1, -1, -1], [8, 7, 6, 2, 5, 4, 3, 1]).rate
    0.25
    """
    y, s = _checked(y_true, scores, BONA_FIDE, ATTACK)
    targets, outliers = s[y == BONA_FIDE], s[y == ATTACK]
    levels = np.unique(s)
    # Counts at t_1, ..., t_m, infinity.
    rejected = np.append(np.searchsorted(np.sort(targets), levels, side="left"), targets.size)
    passed = np.append(np.searchsorted(np.sort(outliers), levels, side="left"), outliers.size)
    accepted = outliers.size - passed
    # FRR - FAR times n_+ n_-, in integers: an exact meeting must not hinge on rounding.
    difference = rejected * outliers.size - accepted * targets.size
    k = int(np.argmax(difference >= 0))
    below, above = int(difference[k - 1]), int(difference[k])  # below < 0 <= above
    step = int(rejected[k] - rejected[k - 1])
    rise = above - below
    # FRR_{k-1} + lambda (FRR_k - FRR_{k-1}), lambda = -below / rise, with one division at the end.
    rate = (int(rejected[k - 1]) * rise - below * step) / (rise * targets.size)

    chosen = k if above <= -below else k - 1
    return EqualErrorRate(
        rate=rate,
        threshold=_threshold_between(levels, chosen),
        false_accept=float(accepted[chosen] / outliers.size),
        false_reject=float(rejected[chosen] / targets.size),
    )


def _threshold_between(levels: NDArray[np.float64], k: int) -> float:
    """Return a finite threshold that has the effect of ``levels[k]`` (of infinity past the end)."""
    # k = 0 (accept all) does not occur: no point is further from equal error than that one.
    if k == levels.size:
        return float(np.nextafter(levels[-1], np.inf))
    low, high = float(levels[k - 1]), float(levels[k])
    middle = low / 2 + high / 2  # the sum itself could overflow
    # Between neighbouring floats there is no middle, and `low` itself would act differently.
    return middle if low < middle < high else high


def _checked(
    y_true: ArrayLike, scores: ArrayLike, *needed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Validate labels and scores; there must be rows of each class that is ``needed``."""
    y, s = np.asarray(y_true), np.asarray(scores)
    if s.dtype.kind not in "biuf":
        raise ValueError(f"scores must be numbers; their type is {s.dtype}")
    for name, array in (("y_true", y), ("scores", s)):
        if array.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional; its shape is {array.shape}")
    if y.size != s.size:
        raise ValueError(
            f"y_true and scores must be equally long; they have {y.size} and {s.size} entries"
        )
    bad = np.flatnonzero(~np.isfinite(s))
    if bad.size:
        raise ValueError(
            f"scores must be finite; {bad.size} of {s.size} are NaN or infinite, "
            f"the first at position {bad[0]}"
        )
    known = np.isin(y, (BONA_FIDE, ATTACK)) & (y.dtype.kind in "iuf")
    if not known.all():
        shown = ", ".join(sorted({repr(value) for value in y[~known].tolist()})[:5])
        raise ValueError(
            f"y_true must hold +1 (target) and -1 (outlier) only; it also holds {shown}. "
            "Map the labels first, for example np.where(y == target, 1, -1)"
        )
    for label, name in ((BONA_FIDE, "target (+1)"), (ATTACK, "outlier (-1)")):
        if label in needed and label not in y:
            raise ValueError(
                f"y_true holds no {name} rows among its {y.size}, so this rate is undefined"
            )
    return y.astype(np.int64), s.astype(np.float64)


def _checked_threshold(threshold: float) -> float:
    """Validate a threshold; infinite ones accept or reject everything and are allowed."""
    t = float(threshold)
    if math.isnan(t):
        raise ValueError("threshold must be a number; it is NaN")
    return t

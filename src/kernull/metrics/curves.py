"""Targets against outliers: the area under the curve and the equal error rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score

from kernull.metrics._checks import OUTLIER, TARGET, checked, documented


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


@documented
def auc(y_true: ArrayLike, scores: ArrayLike) -> float:
    r"""Area under the ROC curve, targets against outliers.

    .. math::

        \mathrm{AUC} = \frac{1}{n_+ n_-} \sum_{i : y_i = +1} \sum_{j : y_j = -1}
            \left( [s_i > s_j] + \tfrac12 [s_i = s_j] \right)

    Parameters
    ----------
    {y_true, scores}

    Examples
    --------
    >>> auc([1, 1, -1, -1], [0.9, 0.4, 0.5, 0.1])
    0.75
    """
    y, s = checked(y_true, scores, TARGET, OUTLIER)
    return float(roc_auc_score(y == TARGET, s))


@documented
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
    {y_true, scores}

    Examples
    --------
    >>> eer([1, 1, 1, 1, -1, -1, -1, -1], [8, 7, 6, 2, 5, 4, 3, 1]).rate
    0.25
    """
    y, s = checked(y_true, scores, TARGET, OUTLIER)
    targets, outliers = s[y == TARGET], s[y == OUTLIER]
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


@documented
def threshold_at_eer(y_true: ArrayLike, scores: ArrayLike) -> float:
    """Threshold at equal error, to be set on a development set and used on a test set.

    This is ``eer(y_true, scores).threshold``: the finite threshold t at which FRR(t) and FAR(t)
    are closest, all attack instruments pooled. See :func:`eer` for ties.

    Parameters
    ----------
    {y_true, scores}

    Examples
    --------
    >>> threshold_at_eer([1, 1, -1, -1], [4.0, 3.0, 1.0, 0.0])
    2.0
    """
    return eer(y_true, scores).threshold


def _threshold_between(levels: NDArray[np.float64], k: int) -> float:
    """Return a finite threshold that has the effect of ``levels[k]`` (of infinity past the end)."""
    # k = 0 (accept all) does not occur: no point is further from equal error than that one.
    if k == levels.size:
        return float(np.nextafter(levels[-1], np.inf))
    low, high = float(levels[k - 1]), float(levels[k])
    middle = low / 2 + high / 2  # the sum itself could overflow
    # Between neighbouring floats there is no middle, and `low` itself would act differently.
    return middle if low < middle < high else high

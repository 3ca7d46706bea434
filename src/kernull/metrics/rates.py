"""Rates that sum up both kinds of errors, and one kind at a fixed rate of the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernull.metrics._checks import OUTLIER, TARGET, checked, checked_threshold, split
from kernull.metrics.attacks import apcer, bpcer


def _errors(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> tuple[float, float]:
    """FAR and FRR at a threshold."""
    y, s = checked(y_true, scores)
    targets, outliers = split(y, s, need=(TARGET, OUTLIER))
    t = checked_threshold(threshold)
    return float(np.mean(outliers >= t)), float(np.mean(targets < t))


def hter(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> float:
    r"""Half total error rate.

    .. math:: \mathrm{HTER}(t) = \frac{\mathrm{FAR}(t) + \mathrm{FRR}(t)}{2}

    Unlike `acer` it takes all outliers together, whatever they were made with.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels: +1 target, -1 outlier; both must occur.
    scores : array-like of shape (n,)
        Scores; higher is more normal.
    threshold : float
        Rows scoring at least this are accepted.

    Returns
    -------
    float
        The rate, in [0, 1].

    Examples
    --------
    >>> from kernull.metrics import hter
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
    y_true : array-like of shape (n,)
        Labels: +1 target, -1 outlier; both must occur.
    scores : array-like of shape (n,)
        Scores; higher is more normal.
    threshold : float
        Rows scoring at least this are accepted.

    Returns
    -------
    float
        The mean, in [0, 1]; 1 is best.

    Examples
    --------
    >>> from kernull.metrics import g_mean
    >>> g_mean([1, 1, -1, -1], [0.9, 0.4, 0.2, 0.1], threshold=0.5)
    0.7071067811865476
    """
    far, frr = _errors(y_true, scores, threshold)
    return float(np.sqrt((1 - frr) * (1 - far)))


def bpcer_at_apcer(
    y_true: ArrayLike,
    scores: ArrayLike,
    level: float,
    *,
    instruments: ArrayLike | None = None,
) -> float:
    r"""BPCER at the lowest threshold whose APCER is no more than a fixed level.

    .. math:: \mathrm{BPCER}\left(\min\{t : \max_q \mathrm{APCER}_q(t) \le a\}\right)

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels: +1 bona fide, -1 attack; both must occur.
    scores : array-like of shape (n,)
        Scores; higher is more normal.
    level : float
        The APCER allowed, in [0, 1]; 0.05 gives what is often called BPCER20.
    instruments : array-like of shape (n,), optional
        As in `apcer`: the largest rate over the instruments must stay at the level.

    Returns
    -------
    float
        The rate, in [0, 1]; 0 is best.

    Examples
    --------
    >>> from kernull.metrics import bpcer_at_apcer
    >>> bpcer_at_apcer([1, 1, 1, -1, -1], [0.9, 0.5, 0.3, 0.4, 0.1], level=0.0)
    0.3333333333333333
    """
    if isinstance(level, bool) or not 0 <= float(level) <= 1:
        raise ValueError(f"level: got {level!r}; expected a number from 0 to 1.")
    y, s = checked(y_true, scores)
    split(y, s, need=(TARGET, OUTLIER))
    # APCER falls just above each attack score and nowhere else; the first threshold accepts all.
    steps: NDArray[np.float64] = np.unique(s[y == OUTLIER])
    thresholds = np.concatenate([[s.min()], np.nextafter(steps, np.inf)])
    low, high = 0, len(thresholds) - 1
    while low < high:  # the rate falls along the thresholds, and is 0 at the last
        middle = (low + high) // 2
        if apcer(y, s, float(thresholds[middle]), instruments=instruments).max <= level:
            high = middle
        else:
            low = middle + 1
    return bpcer(y, s, float(thresholds[low]))

r"""Error rates of presentation attack detection (ISO/IEC 30107-3), and the equal error rate.

Labels are +1 (target, bona fide) and -1 (outlier, attack), a higher score means more normal, and a
sample is *accepted* when ``score >= threshold``. With :math:`s_i` the scores, the error rates at a
threshold :math:`t` are

.. math::

    \mathrm{FRR}(t) = \frac{\#\{i : y_i = +1,\ s_i < t\}}{n_+}, \qquad
    \mathrm{FAR}(t) = \frac{\#\{i : y_i = -1,\ s_i \ge t\}}{n_-}.

BPCER is FRR on bona fide presentations and APCER is FAR on the attacks of one instrument.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d

from kernull._typing import Array

__all__ = ["EqualErrorRate", "apcer", "bpcer", "eer"]


def apcer(
    y_true: ArrayLike, scores: ArrayLike, threshold: float, *, instruments: ArrayLike | None = None
) -> dict[Hashable, float]:
    r"""Attack presentation classification error rate, by attack instrument.

    For an instrument (species) :math:`q` with attacks :math:`A_q`,

    .. math:: \mathrm{APCER}_q(t) = \frac{\#\{i \in A_q : s_i \ge t\}}{|A_q|}.

    The rate that ISO/IEC 30107-3 asks to be reported is the largest of these.

    Parameters
    ----------
    y_true : array of shape (n,)
        +1 for targets (bona fide), -1 for outliers (attacks).
    scores : array of shape (n,)
        Higher is more normal.
    threshold : float
        Rows are accepted where ``score >= threshold``.
    instruments : array of shape (n,), optional
        The instrument of each attack (a printer, a display, ...). Without it all attacks count as
        one instrument, ``"attack"``.

    Returns
    -------
    dict of instrument -> float
        In order of first appearance.

    Examples
    --------
    >>> made_with = ["", "print", "print", "replay", "replay"]
    >>> apcer([1, -1, -1, -1, -1], [0.9, 0.8, 0.1, 0.2, 0.3], 0.5, instruments=made_with)
    {'print': 0.5, 'replay': 0.0}
    """
    y, s = _checked(y_true, scores, threshold, -1)
    # Objects keep what the caller passed: mixed lists would otherwise all turn into strings.
    names: Any = ["attack"] * len(y) if instruments is None else instruments
    names = np.asarray(names, dtype=object)
    check_consistent_length(names, y)
    accepted: dict[Hashable, list[bool]] = {}
    for row in np.flatnonzero(y == -1):
        name = names[row]
        if name is None or name == "" or name != name:  # NaN differs from itself
            raise ValueError(
                f"instruments: row {row} has {name!r}; expected an instrument for each attack."
            )
        accepted.setdefault(name, []).append(bool(s[row] >= threshold))
    return {name: sum(each) / len(each) for name, each in accepted.items()}


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
    y, s = _checked(y_true, scores, threshold, 1)
    return float(np.mean(s[y == 1] < threshold))


class EqualErrorRate(NamedTuple):
    """The equal error rate, and a threshold that comes as near to it as any can."""

    rate: float
    """The interpolated equal error rate, in [0, 1]."""
    threshold: float
    """A finite threshold whose two error rates are as close to each other as possible."""


def eer(y_true: ArrayLike, scores: ArrayLike) -> EqualErrorRate:
    r"""Equal error rate: where FAR and FRR meet.

    The points (FAR, FRR) at the distinct scores and at infinity run from (1, 0) to (0, 1); joined
    by straight lines they cross FAR = FRR exactly once. A crossing on a slanted segment, where
    targets and outliers share a score, is interpolated: the expected rate when ties are broken at
    random. The threshold is that of the end of the crossed segment at which the rates are closer
    (the stricter end if both are), in the middle between two scores.

    Parameters
    ----------
    y_true, scores
        As in `apcer`.

    Returns
    -------
    EqualErrorRate

    Examples
    --------
    >>> eer([1, 1, 1, 1, -1, -1, -1, -1], [8, 7, 6, 2, 5, 4, 3, 1])
    EqualErrorRate(rate=0.25, threshold=4.5)
    """
    y, s = _checked(y_true, scores, 0.0, 1, -1)
    targets, outliers = np.sort(s[y == 1]), np.sort(s[y == -1])
    levels = np.unique(s)
    # Counts at each level, and at infinity.
    rejected = np.append(np.searchsorted(targets, levels), len(targets))
    accepted = len(outliers) - np.append(np.searchsorted(outliers, levels), len(outliers))
    # FRR - FAR times n_+ n_-, in integers: an exact meeting must not hinge on rounding.
    difference = rejected * len(outliers) - accepted * len(targets)
    k = int(np.argmax(difference >= 0))
    below, above = -int(difference[k - 1]), int(difference[k])
    step = int(rejected[k] - rejected[k - 1])
    rate = (int(rejected[k - 1]) * (above + below) + below * step) / (
        (above + below) * len(targets)
    )
    k = k if above <= below else k - 1
    if k == len(levels):  # all scores are equal, and the stricter end rejects them
        return EqualErrorRate(rate, float(np.nextafter(levels[-1], np.inf)))
    low, high = float(levels[k - 1]), float(levels[k])
    middle = low / 2 + high / 2  # the sum itself could overflow
    # Between neighbouring floats there is no middle, and `low` would accept its rows.
    return EqualErrorRate(rate, middle if low < middle < high else high)


def _checked(y_true: Any, scores: Any, threshold: float, *needed: int) -> tuple[Any, Array]:
    """Labels and scores, checked; there must be rows of each class that is ``needed``."""
    y, s = column_or_1d(y_true), column_or_1d(scores, dtype=np.float64)
    check_consistent_length(y, s)
    assert_all_finite(s, input_name="scores")
    if not np.isin(y, (1, -1)).all() or y.dtype.kind not in "iuf":
        raise ValueError(
            f"y_true: got {np.unique(y)[:5]}; expected +1 for targets and -1 for outliers, such as "
            "np.where(y == target, 1, -1)."
        )
    for label, name in ((1, "target (+1)"), (-1, "outlier (-1)")):
        if label in needed and label not in y:
            raise ValueError(f"y_true: got no {name} among {len(y)} rows: the rate is undefined.")
    if np.isnan(threshold):
        raise ValueError("threshold: got NaN; expected a number.")
    return y, s

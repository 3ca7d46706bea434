"""Error rates: those of presentation attacks (ISO/IEC 30107-3), and sums of both kinds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernull.metrics._checks import OUTLIER, TARGET, checked, checked_threshold, documented


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


@documented
def apcer(
    y_true: ArrayLike, scores: ArrayLike, threshold: float, *, instruments: ArrayLike | None = None
) -> AttackErrors:
    r"""Attack presentation classification error rate, by attack instrument.

    For an instrument (species) :math:`q` with attacks :math:`A_q`,

    .. math:: \mathrm{APCER}_q(t) = \frac{\#\{i \in A_q : s_i \ge t\}}{|A_q|},

    and the reported rate is the largest of these (ISO/IEC 30107-3).

    Parameters
    ----------
    {y_true, scores, threshold, instruments}

    Examples
    --------
    >>> made_with = ["", "print", "print", "replay", "replay"]
    >>> rates = apcer([1, -1, -1, -1, -1], [0.9, 0.8, 0.1, 0.2, 0.3], 0.5, instruments=made_with)
    >>> rates.by_instrument, rates.max
    ({'print': 0.5, 'replay': 0.0}, 0.5)
    """
    y, s = checked(y_true, scores, OUTLIER)
    t = checked_threshold(threshold)
    names = _checked_instruments(instruments, y)
    accepted: dict[Hashable, list[bool]] = {}
    for row in np.flatnonzero(y == OUTLIER):
        accepted.setdefault(names[row], []).append(bool(s[row] >= t))
    return AttackErrors({name: sum(each) / len(each) for name, each in accepted.items()})


@documented
def bpcer(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> float:
    r"""Bona fide presentation classification error rate.

    .. math:: \mathrm{BPCER}(t) = \frac{\#\{i : y_i = +1,\ s_i < t\}}{n_+}

    Parameters
    ----------
    {y_true, scores, threshold}

    Examples
    --------
    >>> bpcer([1, 1, 1, 1, -1], [0.9, 0.8, 0.5, 0.1, 0.2], threshold=0.5)
    0.25
    """
    y, s = checked(y_true, scores, TARGET)
    return float(np.mean(s[y == TARGET] < checked_threshold(threshold)))


@documented
def acer(
    y_true: ArrayLike, scores: ArrayLike, threshold: float, *, instruments: ArrayLike | None = None
) -> float:
    r"""Average classification error rate, with the worst instrument counted.

    .. math:: \mathrm{ACER}(t) = (\max_q \mathrm{APCER}_q(t) + \mathrm{BPCER}(t)) / 2

    Parameters
    ----------
    {y_true, scores, threshold, instruments}

    Examples
    --------
    >>> acer([1, 1, -1, -1], [0.9, 0.2, 0.8, 0.1], threshold=0.5, instruments=["", "", "a", "b"])
    0.75
    """
    attack = apcer(y_true, scores, threshold, instruments=instruments).max
    return (attack + bpcer(y_true, scores, threshold)) / 2


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
    for row in np.flatnonzero(y == OUTLIER):
        name = names[row]
        if name is None or name == "" or name != name:  # NaN differs from itself
            raise ValueError(
                f"instruments must name an instrument for every attack; row {row} has {name!r}"
            )
    return names


def _errors(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> tuple[float, float]:
    """FAR and FRR at a threshold."""
    y, s = checked(y_true, scores, TARGET, OUTLIER)
    t = checked_threshold(threshold)
    return float(np.mean(s[y == OUTLIER] >= t)), float(np.mean(s[y == TARGET] < t))


@documented
def hter(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> float:
    r"""Half total error rate.

    .. math:: \mathrm{HTER}(t) = \frac{\mathrm{FAR}(t) + \mathrm{FRR}(t)}{2}

    Unlike `acer` it takes all outliers together, whatever they were made with.

    Parameters
    ----------
    {y_true, scores, threshold}

    Examples
    --------
    >>> hter([1, 1, -1, -1], [0.9, 0.4, 0.6, 0.1], threshold=0.5)
    0.5
    """
    far, frr = _errors(y_true, scores, threshold)
    return (far + frr) / 2


@documented
def g_mean(y_true: ArrayLike, scores: ArrayLike, threshold: float) -> float:
    r"""Geometric mean of the shares of targets accepted and of outliers rejected.

    .. math:: G(t) = \sqrt{(1 - \mathrm{FRR}(t))\,(1 - \mathrm{FAR}(t))}

    Parameters
    ----------
    {y_true, scores, threshold}

    Examples
    --------
    >>> g_mean([1, 1, -1, -1], [0.9, 0.4, 0.2, 0.1], threshold=0.5)
    0.7071067811865476
    """
    far, frr = _errors(y_true, scores, threshold)
    return float(np.sqrt((1 - frr) * (1 - far)))


@documented
def bpcer_at_apcer(
    y_true: ArrayLike, scores: ArrayLike, level: float, *, instruments: ArrayLike | None = None
) -> float:
    r"""BPCER at the lowest threshold whose APCER is no more than a fixed level.

    .. math:: \mathrm{BPCER}\left(\min\{t : \max_q \mathrm{APCER}_q(t) \le a\}\right)

    Parameters
    ----------
    {y_true, scores}
    level : float
        The APCER allowed, in [0, 1]; 0.05 gives what is often called BPCER20.
    {instruments}

    Examples
    --------
    >>> bpcer_at_apcer([1, 1, 1, -1, -1], [0.9, 0.5, 0.3, 0.4, 0.1], level=0.0)
    0.3333333333333333
    """
    if isinstance(level, bool) or not 0 <= float(level) <= 1:
        raise ValueError(f"level: got {level!r}; expected a number from 0 to 1.")
    y, s = checked(y_true, scores, TARGET, OUTLIER)
    # APCER falls just above each attack score and nowhere else; the first threshold accepts all.
    steps: NDArray[np.float64] = np.unique(s[y == OUTLIER])
    thresholds = np.concatenate([[s.min()], np.nextafter(steps, np.inf)])

    def allowed(threshold: float) -> bool:
        return apcer(y, s, threshold, instruments=instruments).max <= level

    # The rate falls along the thresholds, and is 0 at the last.
    return bpcer(y, s, float(thresholds[bisect_left(thresholds, True, key=allowed)]))

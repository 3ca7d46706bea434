"""Rows held out of the fit for calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernull._typing import Array, Indices

__all__ = ["check_seed", "hold_out"]


def hold_out(
    n: int, fraction: Any, random_state: Any = None, sample_weight: Array | None = None
) -> tuple[Array, Indices]:
    """Draw the rows that a fit does not see, so that their scores are those of new rows.

    Parameters
    ----------
    n : int
        Number of rows.
    fraction : float in (0, 1) or int
        Share of the rows to hold out, or their number.
    random_state : int, RandomState or None
        Seed of the draw.
    sample_weight : array of shape (n,), optional
        Weights of the rows; rows of weight zero are neither fitted nor held out.

    Returns
    -------
    fit_weight : array of shape (n,)
        The weights, zero for rows that are held out.
    held : integer array
        Positions of the rows held out, in increasing order.

    Examples
    --------
    >>> weight, held = hold_out(8, 0.25, random_state=0)
    >>> len(held), weight[held]
    (2, array([0., 0.]))
    """
    weight = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=float)
    eligible = np.flatnonzero(weight > 0)
    count = _count(fraction, len(eligible))
    if not 1 <= count <= len(eligible) - 2:
        raise ValueError(
            f"calibration_fraction: got {fraction!r}, which holds out {count} rows of "
            f"n_samples = {len(eligible)}; expected at least 1 row held out and 2 left "
            "to learn from."
        )
    order = check_seed(random_state).permutation(len(eligible))
    held = np.sort(eligible[order[:count]])
    weight[held] = 0.0
    return weight, held


def check_seed(random_state: Any) -> np.random.RandomState:
    """scikit-learn's check of a seed, with an error that names the parameter."""
    try:
        return check_random_state(random_state)  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state: got {random_state!r}; expected a whole number, a "
            "numpy.random.RandomState or None."
        ) from None


def _count(fraction: Any, rows: int) -> int:
    is_number = isinstance(fraction, int | float | np.number) and not isinstance(fraction, bool)
    if is_number and isinstance(fraction, int | np.integer) and fraction >= 1:
        return int(fraction)
    if is_number and 0 < fraction < 1:
        return max(1, round(float(fraction) * rows))
    raise ValueError(
        f"calibration_fraction: got {fraction!r}; expected a share in (0, 1) or a number of rows."
    )

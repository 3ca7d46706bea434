"""Cross-scores: calibration where leaving one row out has no closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernull._typing import Array, Indices


def check_folds(folds: Any) -> int:
    """A number of folds, or an error that names the parameter."""
    is_integer = isinstance(folds, int | np.integer) and not isinstance(folds, bool)
    if not is_integer or folds < 2:
        raise ValueError(
            f"calibration_folds: got {folds!r}; expected an integer of at least 2. More folds "
            "cost more and calibrate with models closer to the final one."
        )
    return int(folds)


def cross_scores(n: int, folds: int, score: Callable[[Indices, Indices], Array]) -> Array:
    """Score each of n rows by a model that saw only the other folds.

    Row i is in fold i mod K, K = min(folds, n): no randomness, and rows recorded in some order are
    spread over all folds. Each model sees a share 1 - 1/K of the rows, so its scores are a little
    lower than the final model's: thresholds err on the side of fewer alarms. ``score`` takes rows
    to learn from and rows to score; it must put scores on the final model's scale (its offset), or
    they cannot be compared at all.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([1.0, 2.0, 3.0, 6.0])
    >>> cross_scores(4, 2, lambda seen, held: values[held] - values[seen].mean())
    array([-3., 0., -1., 4.])
    """
    out = np.empty(n)
    rows = np.arange(n)
    fold = rows % min(folds, n)
    for k in range(min(folds, n)):
        out[fold == k] = score(rows[fold != k], rows[fold == k])
    return out

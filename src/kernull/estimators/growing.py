"""What `partial_fit` and `forget` check and say before a model grows or shrinks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from kernull._typing import Array, Indices
from kernull.errors import MissingCapabilityError, TooFewRowsWarning

__all__ = [
    "check_growing",
    "read_budget",
    "read_new_weights",
    "row_positions",
    "warn_beyond_budget",
    "warn_of_few",
]

#: A first batch below this says little about scales: their standard error is above 13 percent.
FEW_ROWS = 30


def read_budget(max_samples: Any) -> int | None:
    """The number of rows that a growing model may hold."""
    is_number = isinstance(max_samples, int | np.integer) and not isinstance(max_samples, bool)
    if max_samples is not None and (not is_number or max_samples < 2):
        raise ValueError(
            f"max_samples: got {max_samples!r}; expected None or a whole number of at least 2."
        )
    return None if max_samples is None else int(max_samples)


def warn_beyond_budget(rows: int, budget: int | None) -> None:
    """After fit, which learns from all rows: say so where max_samples asked for fewer."""
    if budget is not None and rows > budget:
        warnings.warn(
            f"max_samples: fit learned from all {rows} rows; max_samples={budget} bounds "
            "partial_fit alone, which will drop the rest. Call partial_fit on a new model to keep "
            "to it from the start, or fit fewer rows.",
            UserWarning,
            stacklevel=4,
        )


def warn_of_few(rows: int) -> None:
    """Say what the first rows fix, where they are few."""
    if rows < FEW_ROWS:
        warnings.warn(
            f"partial_fit: scaling, widths and kernel weights come from the first {rows} rows "
            f"and stay. Begin with at least {FEW_ROWS} rows, or fit again later.",
            TooFewRowsWarning,
            stacklevel=4,
        )


def check_growing(calibration: str, reference: Any, method: str) -> None:
    """Refuse parameters that a growing model cannot keep up."""
    if reference is not None:
        raise MissingCapabilityError(
            f"reference: {method} keeps rows of target value 1 alone; fit again on all rows, "
            "or use reference=None."
        )
    if calibration in ("split", "folds"):
        lost = "the proved rate" if calibration == "split" else "scores by refits"
        raise MissingCapabilityError(
            f"calibration: got {calibration!r}, which {method} cannot keep up: "
            f"leave-one-out would take the place of {lost}. Fit again on all rows, or call "
            "set_params(calibration='loo') first."
        )


def read_new_weights(sample_weight: Any, rows: int) -> Array | None:
    """Weights of rows to add."""
    if sample_weight is None:
        return None
    placeholder = np.empty((rows, 1))
    return np.asarray(_check_sample_weight(sample_weight, placeholder, ensure_non_negative=True))


def row_positions(indices: Any, n: int) -> Indices:
    """Unique positions from integers or a mask; at least two rows must remain."""
    values = np.atleast_1d(np.asarray(indices))
    if values.dtype == bool:
        if values.shape != (n,):
            raise ValueError(
                f"indices: got a mask of shape {values.shape}; the model holds {n} rows."
            )
        values = np.flatnonzero(values)
    is_integer = values.ndim == 1 and (values.size == 0 or values.dtype.kind in "iu")
    if not is_integer:
        raise ValueError(
            f"indices: got {indices!r}; expected positions of training rows (whole numbers) or a "
            "mask."
        )
    values = values.astype(np.intp)
    if values.size and (values.min() < 0 or values.max() >= n):
        raise ValueError(
            f"indices: got positions from {values.min()} to {values.max()}; the model holds rows "
            f"0 to {n - 1}."
        )
    if len(np.unique(values)) != len(values):
        raise ValueError("indices: a position occurs twice; expected each row once.")
    if n - len(values) < 2:
        raise ValueError(
            f"indices: would leave {n - len(values)} of {n} rows; expected at least 2 to remain."
        )
    return values

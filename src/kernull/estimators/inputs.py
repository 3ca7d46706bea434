"""From what users pass to stacks: the checks that all estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from kernull._typing import Array, Indices
from kernull.estimators.columns import (
    may_miss_views,
    not_finite,
    not_numeric,
    read_used_columns,
    text_columns,
)
from kernull.stacks import DenseStack

__all__ = ["read_partial_table", "read_table", "read_weights"]


def read_table(estimator: Any, X: Any, *, reset: bool) -> Array:
    """A float64 table from arrays, pandas or polars, with scikit-learn's checks."""
    if isinstance(X, DenseStack):
        raise TypeError(
            "X: got a stack of kernels; pass kernels='precomputed', or a table of shape (n, d)."
        )
    used = read_used_columns(estimator, X, reset=reset)
    if used is not None:
        return used
    try:
        return np.asarray(
            validate_data(
                estimator,
                X,
                reset=reset,
                dtype=np.float64,
                ensure_min_samples=2 if reset else 1,
            )
        )
    except (ValueError, TypeError) as error:
        if str(error).startswith(("Input X contains NaN", "Input X contains infinity")):
            raise ValueError(not_finite(X, may_miss_views(estimator, not reset))) from error
        text = [] if isinstance(error, TypeError) and not hasattr(X, "columns") else text_columns(X)
        if not text:
            raise
        raise ValueError(not_numeric(text)) from error


def read_weights(sample_weight: Any, X: Any) -> Array | None:
    """Row weights, or None where all are one."""
    if sample_weight is None:
        return None
    rows = _num_samples(X)
    if len(getattr(X, "shape", ())) == 3:  # an array of kernels, (J, n, n)
        rows = X.shape[1]
    placeholder = np.empty((rows, 1))
    try:
        weight = np.asarray(
            _check_sample_weight(
                sample_weight, placeholder, dtype=np.float64, ensure_non_negative=True
            )
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight: {error}") from error
    if np.count_nonzero(weight) < 2:
        raise ValueError(
            "sample_weight: fewer than 2 rows have a positive weight; expected at least 2."
        )
    return None if (weight == 1.0).all() else weight


def read_partial_table(estimator: Any, X: Any, ignore: Indices) -> Array:
    """A table of which some columns may hold anything, NaN included; they are set to zero.

    Columns with names may be absent altogether.
    """
    used = read_used_columns(estimator, X, reset=False, ignore=ignore)
    if used is not None:
        return used
    table = np.array(
        validate_data(estimator, X, reset=False, dtype=np.float64, ensure_all_finite=False)
    )
    table[:, ignore] = 0.0
    if not np.isfinite(table).all():
        raise ValueError(not_finite(table, scoring=True))
    return table

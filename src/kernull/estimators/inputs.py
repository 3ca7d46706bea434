"""From what users pass to values: tables, columns, weights and numbers, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from kernull._containers import as_numpy
from kernull._text import listed
from kernull._typing import Array, Indices
from kernull.errors import OutlierLabelsWarning, warn
from kernull.operators import DenseStack
from kernull.views import resolve_views
from kernull.views.columns import (
    column_names,
    date_columns,
    not_finite,
    not_numeric,
    text_columns,
)


def read_rows(estimator: Any, X: Any, *, reset: bool, ignore: Indices | None = None) -> Array:
    """A float64 table (n, d) from arrays, pandas or polars, with scikit-learn's checks.

    Of columns with names, only those that a view reads must be there and be numbers; the others are
    zero in what is returned. ``ignore`` are columns that may hold anything, NaN included.

    Parameters
    ----------
    estimator : estimator
        Whose columns are compared or set.
    X : array or data frame of shape (m, d)
        Table as passed.
    reset : bool
        Whether columns are noted, as in a fit.
    ignore : integer array, optional
        Columns that may hold anything.
    """
    if isinstance(X, DenseStack):
        raise TypeError(
            "X: got a stack of kernels; pass kernels='precomputed', or a table of shape (n, d)."
        )
    columns: Any = getattr(X, "columns", None)
    if not getattr(columns, "is_unique", True):  # of pandas
        twice = columns[columns.duplicated()][0]
        raise ValueError(f"X: several columns are called {twice!r}; name them apart.")
    names = column_names(X) if hasattr(X, "columns") else None
    known, used = names or [], None
    if names is not None:
        known, used = _columns_read(estimator, names, reset, ignore)
    part = X if used is None else X[[known[i] for i in used]]
    other = "" if used is None else " Columns that no view reads may stay."
    plain = isinstance(X, np.ndarray) and X.dtype.kind not in ("m", "M")
    if not plain and (dates := date_columns(part)):
        raise ValueError(f"{not_numeric(dates)}{other}")
    checks: dict[str, Any] = {"dtype": np.float64, "ensure_min_samples": 3 if reset else 1}
    if used is None and ignore is not None:
        checks |= {"ensure_all_finite": False, "copy": True}
    try:
        if used is None:
            table = np.asarray(validate_data(estimator, X, reset=reset, **checks))
        else:
            values = check_array(part, estimator=estimator, input_name="X", **checks)
            table = np.zeros((len(values), len(known)))
            table[:, used] = values
    except (ValueError, TypeError) as error:
        if str(error).startswith(("Input X contains NaN", "Input X contains infinity")):
            raise ValueError(not_finite(part, not reset)) from error
        text = [] if isinstance(error, TypeError) and names is None else text_columns(part)
        if not text:
            raise
        raise ValueError(f"{not_numeric(text)}{other}") from error
    if used is None and ignore is not None:
        table[:, ignore] = 0.0
        if not np.isfinite(table).all():
            raise ValueError(not_finite(table, not reset))
    return table


def _columns_read(
    estimator: Any, names: list[str], reset: bool, ignore: Indices | None
) -> tuple[list[str], Indices | None]:
    """Names of the columns of a fit, and places of those that views read; None: all."""
    by_name = isinstance(estimator.views, Mapping)
    if reset:
        if not by_name:
            return names, None
        views = resolve_views(estimator.views, len(names), names)
        used = np.unique(np.concatenate(list(views.values())))
        if len(used) == len(names):
            return names, None
        estimator.n_features_in_ = len(names)
        estimator.feature_names_in_ = np.array(names, dtype=object)
        return names, used
    known = getattr(estimator, "feature_names_in_", None)
    if known is None or not (by_name or ignore is not None):
        return names, None
    used = np.unique(np.concatenate([view.columns for view in estimator.kernel_set_.views]))
    if ignore is not None:
        used = np.setdiff1d(used, ignore)
    known = list(map(str, known))
    absent = [known[i] for i in used if known[i] not in set(names)]
    if absent:
        raise ValueError(
            f"X: lacks the columns [{listed(absent)}], which the model reads. Columns that no view "
            "reads may be absent; so may those of missing_views, where the model takes them."
        )
    return known, used


def check_labels(X: Any, y: Any, *, stacklevel: int = 1) -> None:
    """Refuse a y of another length than X; warn where it marks rows as outliers (-1).

    These are learned from like all others.
    """
    rows, count = _length(X), _length(y)
    if rows is not None and count is not None and rows != count:
        raise ValueError(
            "y: Found input variables with inconsistent numbers of samples: "
            f"{[rows, count]} (of X and of y)."
        )
    labels = np.asarray(as_numpy(y))
    if labels.dtype.kind not in "iuf" or not (count := int((labels == -1).sum())):
        return
    if np.array_equal(labels, np.round(labels)):
        warn(
            f"y: {count:,} of {labels.size:,} rows are marked -1, as outliers, and are learned "
            "from like all others: y is ignored. Pass the normal rows alone: fit(X[y == 1]).",
            OutlierLabelsWarning,
            stacklevel=stacklevel + 1,
        )


def _length(values: Any) -> int | None:
    """Rows of a table, labels, or kernels; None where that is not known or has another meaning."""
    shape = getattr(values, "shape", None)
    if shape is None and isinstance(values, list | tuple):
        shape = np.shape(values) if values and np.ndim(values[0]) > 1 else (len(values),)
    if not shape:
        return None
    rows = shape[1] if len(shape) == 3 else shape[0]  # kernels are (J, n, n)
    return int(rows) if isinstance(rows, int | np.integer) else None


def read_weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights of rows, (n,), or None where all are one.

    Parameters
    ----------
    sample_weight : array of shape (n,) or None
        As passed.
    X : array of shape (n, d)
    """
    if sample_weight is None:
        return None
    kernels = len(getattr(X, "shape", ())) == 3  # (J, n, n)
    placeholder = np.empty((X.shape[1] if kernels else _num_samples(X), 1))
    checks: dict[str, Any] = {"dtype": np.float64, "ensure_non_negative": True}
    try:
        weight = np.asarray(_check_sample_weight(sample_weight, placeholder, **checks))
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight: {error}") from error
    if np.count_nonzero(weight) < 3:
        raise ValueError(
            "sample_weight: fewer than 3 rows have a positive weight; expected at least 3."
        )
    return None if (weight == 1.0).all() else weight


def check_number(name: str, value: Any, expected: str, low: float, *, strict: bool = True) -> float:
    """A finite number above (or at) ``low``, or an error that names the parameter.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    value : float
        As passed.
    expected : str
        What is expected, for the message.
    low : float
        Lower limit.
    strict : bool
        Whether the limit itself is refused.
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or (value <= low if strict else value < low):
        raise ValueError(f"{name}: got {value!r}; expected {expected}.")
    return float(value)


@contextmanager
def rollback_on_error(estimator: Any) -> Iterator[None]:
    """Put all attributes back when the block raises: no columns of one fit with another's kernels.

    Attributes must be replaced in the block, never changed in place.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:  # an interrupted update is a failed one
        vars(estimator).clear()
        vars(estimator).update(before)
        raise

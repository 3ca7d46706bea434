"""Tables with named columns: only those that views read are looked at, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from kernull._typing import Array, Indices
from kernull.views import resolve_views

__all__ = ["may_miss_views", "not_finite", "not_numeric", "read_used_columns", "text_columns"]

#: Columns that a message names at most.
SHOWN = 8


def read_used_columns(
    estimator: Any, X: Any, *, reset: bool, ignore: Indices | None = None
) -> Array | None:
    """A table of which columns that no view reads may hold anything, or be absent when scoring.

    They are zero in what is returned. None where every column counts, or has no name: then
    scikit-learn's own checks apply to all of them.

    Parameters
    ----------
    estimator : estimator
        Its ``views`` say what is read, and once it is fitted its ``bank_`` does.
    X : table
    reset : bool
        Whether the columns of X are those to remember.
    ignore : integer array, optional
        Columns of the fit that need not be there.
    """
    names = _names(X)
    if names is None:
        return None
    if reset:
        if not isinstance(estimator.views, Mapping):
            return None
        views = resolve_views(estimator.views, len(names), names)
        used = np.unique(np.concatenate(list(views.values())))
        if len(used) == len(names):
            return None
        validate_data(estimator, X, reset=True, skip_check_array=True)  # remembers the names
        return _fill(estimator, X, names, used, len(names), rows=2)
    bank, known = getattr(estimator, "bank_", None), getattr(estimator, "feature_names_in_", None)
    by_name = isinstance(estimator.views, Mapping) or ignore is not None
    if known is None or not by_name:
        return None
    if bank is None:  # an estimator without kernels of its own
        columns = list(resolve_views(estimator.views, len(known), known).values())
    else:
        columns = [view.columns for view in bank.views]
    used = np.unique(np.concatenate(columns))
    if ignore is not None:
        used = np.setdiff1d(used, ignore)
    wanted = [str(known[i]) for i in used]
    absent = [name for name in wanted if name not in set(names)]
    if absent:
        raise ValueError(
            f"X: lacks the columns {_listed(absent)}, which the model reads. Columns that no view "
            "reads may be absent; so may those of missing_views, where the model takes them."
        )
    return _fill(estimator, X, wanted, used, len(known), rows=1)


def not_finite(X: Any, scoring: bool) -> str:
    """What to say of a table with NaN or infinite values."""
    names = _names(X)
    values = np.asarray(X)
    try:
        bad = np.flatnonzero(~np.isfinite(values.astype(np.float64)).all(axis=0))
    except (TypeError, ValueError):
        bad = np.empty(0, dtype=np.intp)
    where = ""
    if len(bad):
        labels = [f"{i}" if names is None else repr(names[i]) for i in bad[:SHOWN]]
        more = "" if len(bad) <= SHOWN else f" and {len(bad) - SHOWN} more"
        where = f" in column(s) {', '.join(labels)}{more}"
    views = " A view that is missing as a whole: missing_views=[...]." if scoring else ""
    return (
        f"X: contains NaN or infinity (or values too large for float64){where}. Impute them "
        "(scikit-learn's SimpleImputer before the model, in a pipeline), or leave out those rows."
        f"{views}"
    )


def text_columns(X: Any) -> list[str]:
    """Names of the columns of a table that cannot be read as numbers."""
    if hasattr(X, "columns"):
        columns = {str(name): X[name] for name in X.columns}
    else:
        values = np.asarray(X)
        if values.dtype.kind not in "OUS" or values.ndim != 2:
            return []
        columns = {f"x{i}": column for i, column in enumerate(values.T)}
    bad = []
    for name, column in columns.items():
        try:
            np.asarray(column, dtype=np.float64)
        except (ValueError, TypeError):
            bad.append(name)
    return bad


def not_numeric(columns: list[str]) -> str:
    """What to say of columns that cannot be read as numbers."""
    return (
        f"X: the columns {columns} are not numeric. Encode them (for example by scikit-learn's "
        "OneHotEncoder) or drop them."
    )


def may_miss_views(estimator: Any, fitted: bool) -> bool:
    """Whether the estimator can score rows of which a whole view is missing."""
    return fitted and hasattr(estimator, "contributions")


def _names(X: Any) -> list[str] | None:
    """Names of a table's columns, if they are unique text."""
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        return None
    names = list(X.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return names


def _fill(estimator: Any, X: Any, names: list[str], used: Indices, width: int, rows: int) -> Array:
    wanted = names if len(names) == len(used) else [names[i] for i in used]
    text = text_columns(X[wanted])
    if text:
        raise ValueError(f"{not_numeric(text)} Columns that no view reads may stay.")
    values = check_array(
        X[wanted],
        dtype=np.float64,
        ensure_min_samples=rows,
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )
    if not np.isfinite(values).all():
        raise ValueError(not_finite(X[wanted], may_miss_views(estimator, fitted=rows == 1)))
    table = np.zeros((len(values), width))
    table[:, used] = values
    return table


def _listed(names: list[str]) -> str:
    more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN} more"
    return f"{names[:SHOWN]}{more}"

"""Columns of a table: which ones a view has, and errors of those that are no numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from kernull._typing import Array, Indices

#: Columns that a message names at most.
SHOWN = 8


def not_finite(X: Any, scoring: bool) -> str:
    """The error of a table with NaN or infinite values.

    Parameters
    ----------
    X : array of shape (m, d)
    scoring : bool
        Whether rows are to be scored, and not learned from.
    """
    names = column_names(X)
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
        f"X: contains NaN or infinity (or values too large for float64){where}. Fill them in "
        "(kernull.TableViews or scikit-learn's SimpleImputer before the model, in a pipeline), or "
        "leave out those rows."
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
    bad = date_columns(X)
    for name, column in columns.items():
        if name in bad:
            continue
        try:
            np.asarray(column, dtype=np.float64)
        except (ValueError, TypeError):
            bad.append(name)
    return bad


def date_columns(X: Any) -> list[str]:
    """Names of the columns of a table that are of a type of dates, times or spans."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):  # pandas, polars
        types = zip(X.columns, list(X.dtypes), strict=True)
        return [str(name) for name, kind in types if _DATE.match(str(kind).lower())]
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    return [f"x{i}" for i in range(X.shape[1] if X.ndim == 2 else 1)] if kind in ("m", "M") else []


#: Types of dates, times and spans, as pandas, polars and Arrow call them.
_DATE = re.compile(r"date|time|duration|period")


def not_numeric(columns: list[str]) -> str:
    """The error of columns that cannot be read as numbers."""
    return (
        f"X: the columns {columns} are not numeric. Put kernull.TableViews before the model in a "
        "pipeline, which knows text and dates, encode them, or drop them."
    )


def column_names(X: Any) -> list[str] | None:
    """Names of a table's columns, if they are unique text.

    Parameters
    ----------
    X : array or data frame

    Returns
    -------
    list of str or None
    """
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        return None
    names = list(X.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return names


def join_views(arrays: Mapping[str, Any]) -> tuple[Array, dict[str, list[int]]]:
    """Turn a dict of arrays with equal rows into one table and its views.

    Parameters
    ----------
    arrays : mapping of str -> array of shape (n, d_v) or (n,)
        One array per view.

    Returns
    -------
    table : array of shape (n, sum of d_v)
    views : dict of str -> list of int
        For the ``views`` parameter of every estimator.

    Examples
    --------
    >>> table, views = join_views({"colour": [[1.0, 2.0], [3.0, 4.0]], "weight": [5.0, 6.0]})
    >>> table.shape, views
    ((2, 3), {'colour': [0, 1], 'weight': [2]})
    """
    if not arrays:
        raise ValueError("join_views: got no array; expected a mapping of name -> array.")
    blocks: list[Array] = []
    views: dict[str, list[int]] = {}
    start = 0
    for name, values in arrays.items():
        block = np.asarray(values)
        block = block[:, None] if block.ndim == 1 else block
        block = check_array(block, input_name=f"join_views[{name!r}]")
        if blocks and len(block) != len(blocks[0]):
            raise ValueError(
                f"join_views: {name!r} has {len(block)} rows, the views before it "
                f"{len(blocks[0])}; all views must describe the same rows."
            )
        views[str(name)] = list(range(start, start + block.shape[1]))
        start += block.shape[1]
        blocks.append(block)
    return np.hstack(blocks), views


def _columns_of_view(view: str, columns: Any, n_features: int, names: list[str] | None) -> Indices:
    """Positions of a view's columns, passed as positions, names, a mask or a slice."""
    if isinstance(columns, slice):
        columns = _slice(view, columns, n_features, names)
        picked = np.arange(n_features)[columns]
    else:
        is_one = isinstance(columns, str) or not isinstance(columns, Iterable)
        items = [columns] if is_one else list(columns)
        if items and all(isinstance(item, bool | np.bool_) for item in items):
            if len(items) != n_features:
                raise ValueError(
                    f"views[{view!r}]: a mask of {len(items)} entries for {n_features} columns."
                )
            picked = np.flatnonzero(items)
        else:
            picked = np.array([_position(view, i, n_features, names) for i in items], dtype=np.intp)
    if len(picked) == 0:
        raise ValueError(f"views[{view!r}]: selects no column.")
    if len(np.unique(picked)) != len(picked):
        raise ValueError(f"views[{view!r}]: names a column twice: {columns!r}.")
    return np.asarray(picked, dtype=np.intp)


def _position(view: str, item: Any, n_features: int, names: list[str] | None) -> int:
    if isinstance(item, str):
        if names is None:
            raise ValueError(
                f"views[{view!r}]: names the column {item!r}, but the table has no column names; "
                "pass a pandas or polars table, or give positions."
            )
        if item not in names:
            raise ValueError(f"views[{view!r}]: no column {item!r}; the table has {names}.")
        return names.index(item)
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        if not -n_features <= item < n_features:
            raise ValueError(
                f"views[{view!r}]: column {item} is out of range for {n_features} columns."
            )
        return int(item) % n_features
    raise ValueError(
        f"views[{view!r}]: got {item!r} as a column; expected a position, a name or a slice."
    )


def _slice(view: str, columns: slice, n_features: int, names: list[str] | None) -> slice:
    """A slice by position, within the columns; one by name includes its end, as in pandas.

    Python cuts slices that reach beyond the columns short; here that is a mistake.
    """
    first, last = columns.start, columns.stop
    if isinstance(first, str) or isinstance(last, str):
        first = None if first is None else _position(view, first, n_features, names)
        last = None if last is None else _position(view, last, n_features, names) + 1
    if any(end is not None and not -n_features <= end <= n_features for end in (first, last)):
        raise ValueError(
            f"views[{view!r}]: {slice(first, last, columns.step)!r} reaches beyond the "
            f"{n_features} columns of the table."
        )
    return slice(first, last, columns.step)


def resolve_views(
    views: Any, n_features: int, feature_names: Sequence[str] | None = None
) -> dict[str, Indices]:
    """Turn what a user passed as ``views`` into column positions, by name.

    Parameters
    ----------
    views : None, "features" or mapping of name -> columns
        None is one view of all columns; ``"features"`` is one view per column; a mapping gives each
        view's columns as positions, names, a slice, or a single one of these.
    n_features : int
        Number of columns of the table.
    feature_names : sequence of str, optional
        Names of the columns, where the table has them.

    Returns
    -------
    dict of str -> integer array

    Examples
    --------
    >>> resolve_views({"size": [0, 1], "rest": slice(2, None)}, 4)
    {'size': array([0, 1]), 'rest': array([2, 3])}
    """
    names = None if feature_names is None else [str(name) for name in feature_names]
    if views is None:
        return {"all": np.arange(n_features)}
    if isinstance(views, str) and views == "features":
        labels = names if names is not None else [f"x{i}" for i in range(n_features)]
        return {label: np.array([i]) for i, label in enumerate(labels)}
    if not isinstance(views, Mapping):
        raise ValueError(
            f'views: got {views!r}; expected None (all columns), "features" (one view per column) '
            "or a mapping of name -> columns."
        )
    if not views:
        raise ValueError("views: got an empty mapping; expected at least one view.")
    columns_of = {
        str(name): _columns_of_view(str(name), columns, n_features, names)
        for name, columns in views.items()
    }
    if len(columns_of) < len(views):
        raise ValueError(
            f"views: got the names {list(views)!r}, of which two are the same as text; expected "
            "names that differ."
        )
    return columns_of

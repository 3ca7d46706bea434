"""Named groups of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from kernull._typing import Array, Indices

__all__ = ["join_views", "resolve_views"]


def resolve_views(
    views: Any, n_features: int, feature_names: Sequence[str] | None = None
) -> dict[str, Indices]:
    """Turn what a user passed as ``views`` into column positions, by name.

    Parameters
    ----------
    views : None, "features" or mapping of name -> columns
        None is one view of all columns; ``"features"`` is one view a column; a mapping gives each
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
            f'views: got {views!r}; expected None (all columns), "features" (one view a column) '
            "or a mapping of name -> columns."
        )
    if not views:
        raise ValueError("views: got an empty mapping; expected at least one view.")
    found = {
        str(name): _columns(str(name), columns, n_features, names)
        for name, columns in views.items()
    }
    if len(found) < len(views):
        raise ValueError(
            f"views: got the names {list(views)!r}, of which two are the same as text; expected "
            "names that differ."
        )
    return found


def _columns(view: str, columns: Any, n_features: int, names: list[str] | None) -> Indices:
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            columns = _named_slice(view, columns, names)
        _check_ends(view, columns, n_features)
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


def _check_ends(view: str, columns: slice, n_features: int) -> None:
    """Python cuts slices that reach beyond the columns short; here that is a mistake."""
    for end in (columns.start, columns.stop):
        if end is not None and not -n_features <= end <= n_features:
            raise ValueError(
                f"views[{view!r}]: {columns!r} reaches beyond the {n_features} columns of the "
                "table."
            )


def _named_slice(view: str, columns: slice, names: list[str] | None) -> slice:
    """Slices by name include their end, as in pandas."""
    ends = (columns.start, columns.stop)
    first, last = (
        None if end is None else _position(view, end, len(names or ()), names) for end in ends
    )
    return slice(first, None if last is None else last + 1, columns.step)


def join_views(arrays: Mapping[str, Any]) -> tuple[Array, dict[str, list[int]]]:
    """Turn a dict of arrays with equal rows into one table and its views.

    Parameters
    ----------
    arrays : mapping of str -> array of shape (n, d_v) or (n,)
        One array a view.

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

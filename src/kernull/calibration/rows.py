"""Weights and groups of rows, as users give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernull._typing import Array, Indices

#: Trust below which products of it, or of its inverse, would be no numbers.
LEAST_TRUST = 1e-100


def trust(sample_weight: Any, n: int) -> Array:
    """Row weights of mean one: how much each row counts against the others.

    Only ratios matter, so a constant weight is no weight at all.

    Examples
    --------
    >>> trust([2.0, 2.0, 8.0], 3)
    array([0.5, 0.5, 2. ])
    """
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n,) or not np.isfinite(weight).all() or not (weight > 0).all():
        raise ValueError(
            f"sample_weight: got shape {weight.shape}; expected {(n,)}, positive numbers. Leave "
            "rows of weight zero out beforehand: they take no part."
        )
    if (weight == weight[0]).all():
        return np.ones(n)
    return np.asarray(np.maximum(weight * (n / weight.sum()), LEAST_TRUST))


def read_groups(groups: Any, n: int) -> Indices:
    """Number of the group of each row, from 0; a group of its own for each row where None.

    Every row needs a label: NaN and None are refused, not taken for one group more.
    """
    if groups is None:
        return np.arange(n)
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups: got shape {labels.shape}; expected {(n,)}, one label per row.")
    if labels.dtype.kind not in "biu":
        # A list as it came: next to text, NumPy makes a text of NaN.
        given = groups if isinstance(groups, list | tuple) else labels
        lost = [row for row, label in enumerate(given) if is_no_label(label)]
        if lost:
            raise ValueError(
                f"groups: {len(lost):,} of {n:,} rows have no label (first: row {lost[0]}, "
                f"{given[lost[0]]!r}); expected one for every row. Give rows that belong to no "
                "other a label of their own."
            )
    numbers = np.ravel(np.unique(labels, return_inverse=True)[1]).astype(np.intp)
    if numbers.max(initial=0) < 1 and n > 1:
        raise ValueError("groups: all rows are of one group; expected at least two groups.")
    return numbers


def is_no_label(label: Any) -> bool:
    """Whether a label is none: None, NaN, NaT or pandas' NA."""
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA neither does nor does not
        return True


def trusted(weight: Array, parts: Iterable[Indices]) -> Array | None:
    """Weights of mean one within each part of the rows; None where they say nothing."""
    out = np.zeros(len(weight))
    for rows in parts:
        if len(rows):
            out[rows] = trust(weight[rows], len(rows))
    return None if (out == 1.0).all() else out


def rank_weights(weight: Array | None, groups: Indices | None, n: int) -> Array:
    """What rows count in ranks: by their weights, and all rows of a group together as one row."""
    out = np.ones(n) if weight is None else weight / weight.mean()
    return out if groups is None else out / np.bincount(groups)[groups]

"""What ``"auto"`` stands for, and rows of reference: how a fit without arguments is set up.

``scaling="auto"`` is resolved by `kernull.views.read_scalings` and ``widths="auto"`` by
`kernull.kernels.widths.auto_factor`, view by view; both need the training rows alone. None of the
rules solves anything: a fit that uses them costs one fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from kernull._typing import Array
from kernull.estimators._inputs import check_number
from kernull.stacks import KernelSet

__all__ = ["is_auto", "read_delta", "read_p", "read_reference", "scalings_of", "widths_of"]

#: The norm of the weights under ``p="auto"``, and the relative ridge under ``delta="auto"``; see
#: docs/guide/defaults.md for what they were compared with.
AUTO_P = 2.0
AUTO_DELTA = 1e-2
#: No more than this many rows of reference are drawn.
REFERENCE_ROWS = 1000


def is_auto(value: Any) -> bool:
    """Whether a parameter is to be chosen."""
    return isinstance(value, str) and value == "auto"


def read_p(p: Any) -> Any:
    """The norm that ``p`` stands for; the ball checks numbers."""
    return AUTO_P if is_auto(p) else p


def read_delta(delta: Any) -> float:
    """The relative ridge that ``delta`` stands for."""
    if is_auto(delta):
        return AUTO_DELTA
    return check_number("delta", delta, "'auto', or a positive number (relative to n)", 0.0)


def widths_of(bank: KernelSet) -> dict[str, list[float]]:
    """Width factors of the kernels of each view, in the order of its kernels."""
    out: dict[str, list[float]] = {}
    for view in bank.views:
        out.setdefault(view.name, []).extend(k.factor for k in view.kernels if k.factor is not None)
    return out


def scalings_of(bank: KernelSet) -> dict[str, list[str]]:
    """The scalings of each view."""
    out: dict[str, list[str]] = {}
    for view in bank.views:
        out.setdefault(view.name, []).append(view.scaler.kind)
    return out


def read_reference(
    reference: Any, table: Array, sample_weight: Array | None, random_state: Any
) -> Array:
    r"""Rows of reference: artificial ones, or those given.

    ``"permuted"`` draws every column on its own from the training rows: each value is usual, the
    way they go together is not.

    Parameters
    ----------
    reference : "permuted" or array of shape (m, d)
    table : array of shape (n, d)
        The training rows.
    sample_weight : array of shape (n,), optional
        Their weights; rows are drawn in proportion to them.
    random_state : int, RandomState or None

    Returns
    -------
    array of shape (m, d)
    """
    if not isinstance(reference, str):
        rows = check_array(reference, dtype=np.float64, input_name="reference")
        if rows.shape[1] != table.shape[1]:
            raise ValueError(
                f"reference: got {rows.shape[1]} columns; expected {table.shape[1]}, those of X."
            )
        return np.asarray(rows)
    if reference != "permuted":
        raise ValueError(
            f"reference: got {reference!r}; expected None, 'permuted', or an array of rows."
        )
    equal = sample_weight is None or (sample_weight == sample_weight[0]).all()
    share = None if equal or sample_weight is None else sample_weight / sample_weight.sum()
    n, d = table.shape
    size = (min(n, REFERENCE_ROWS), d)
    drawn = check_random_state(random_state).choice(n, size=size, p=share)
    return np.asarray(table[drawn, np.arange(d)])

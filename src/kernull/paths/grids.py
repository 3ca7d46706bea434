"""Grids of p, delta and width: ours, the paper's, and the checks every grid passes."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import numpy as np

#: The paper's norms; 10^6 stands for infinity there.
PAPER_PS: tuple[float, ...] = (1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 1e6)
#: The paper's ridges, relative to n.
PAPER_DELTAS: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
#: The paper's widths, as factors of the mean pairwise distance.
PAPER_WIDTHS: tuple[float, ...] = (0.25, 0.5, 1.0)
#: Grids around the defaults of `MultiKernelFisherNull`, which are in them.
PS: tuple[float, ...] = (1.0, 1.25, 1.5, 2.0, 4.0)
DELTAS: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
WIDTHS: tuple[float | str, ...] = ("auto", 0.25, 0.5, 1.0)
#: All three, ready for ``MultiKernelFisherNullCV(**kernull.selection.PAPER_GRID)``.
PAPER_GRID = MappingProxyType({"ps": PAPER_PS, "deltas": PAPER_DELTAS, "widths": PAPER_WIDTHS})


def read_norms(ps: Any) -> tuple[float, ...]:
    """Norms p in [1, inf], in increasing order, each once."""
    values = _numbers("ps", ps, "numbers p in [1, inf], for example (1, 2, float('inf'))")
    for p in values:
        if not p >= 1:
            raise ValueError(f"ps: got {p!r}; every p must be in [1, inf].")
    return values


def read_deltas(deltas: Any) -> tuple[float, ...]:
    """Ridges delta > 0 relative to n, in increasing order, each once."""
    values = _numbers("deltas", deltas, "positive numbers relative to n, for example (1e-3, 1e-2)")
    for delta in values:
        if not (np.isfinite(delta) and delta > 0):
            raise ValueError(
                f"deltas: got {delta!r}; every delta must be a finite number above 0. The "
                "unregularised null space (delta = 0) has no weights to learn; use a small delta, "
                "such as 1e-6."
            )
    return values


def read_widths(widths: Any) -> tuple[float | str, ...]:
    """Width factors > 0, in increasing order, each once; "auto" comes first."""
    alone = isinstance(widths, str) or not isinstance(widths, Iterable)
    items = [widths] if alone else list(widths)
    automatic = [item for item in items if isinstance(item, str) and item == "auto"]
    numbers = [item for item in items if not (isinstance(item, str) and item == "auto")]
    if automatic and not numbers:
        return ("auto",)
    expected = "positive factors of the mean distance, such as (0.25, 1), or 'auto'"
    values = _numbers("widths", numbers, expected)
    for width in values:
        if not (np.isfinite(width) and width > 0):
            raise ValueError(f"widths: got {width!r}; every width must be a number above 0.")
    return (*automatic[:1], *values)


def _numbers(name: str, values: Any, expected: str) -> tuple[float, ...]:
    items = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else None
    items = [values] if items is None else items
    if not items:
        raise ValueError(f"{name}: got an empty grid; expected {expected}.")
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int | float | np.number):
            raise ValueError(f"{name}: got {item!r}; expected {expected}.")
    return tuple(sorted({float(item) for item in items}))

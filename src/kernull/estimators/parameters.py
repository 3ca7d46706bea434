"""From parameters as users write them to values, and what ``"auto"`` stands for.

``scaling="auto"`` is resolved by `kernull.views.read_scalings` and ``widths="auto"`` by
`kernull.kernels.widths.auto_factor`, view by view; both need the training rows alone. None of the
rules solves anything: a fit that uses them costs one fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull.stacks import KernelSet

__all__ = ["check_number", "read_delta", "read_dtype", "read_p", "scalings_of", "widths_of"]

#: The norm of the weights under ``p="auto"``, and the relative ridge under ``delta="auto"``; see
#: docs/guide/defaults.md for what they were compared with.
AUTO_P = 2.0
AUTO_DELTA = 1e-2
_DTYPES = {"float64": np.float64, "float32": np.float32}


def read_p(p: Any) -> Any:
    """The norm that ``p`` stands for; the ball checks numbers."""
    return AUTO_P if isinstance(p, str) and p == "auto" else p


def read_delta(delta: Any) -> float:
    """The relative ridge that ``delta`` stands for."""
    if isinstance(delta, str) and delta == "auto":
        return AUTO_DELTA
    return check_number("delta", delta, "'auto', or a positive number (relative to n)", 0.0)


def widths_of(kernels: KernelSet) -> dict[str, list[float]]:
    """Width factors of the kernels of each view, in the order of its kernels."""
    out: dict[str, list[float]] = {}
    for view in kernels.views:
        out.setdefault(view.name, []).extend(k.factor for k in view.kernels if k.factor is not None)
    return out


def scalings_of(kernels: KernelSet) -> dict[str, list[str]]:
    """The scalings of each view."""
    out: dict[str, list[str]] = {}
    for view in kernels.views:
        out.setdefault(view.name, []).append(view.scaler.kind)
    return out


def read_dtype(dtype: Any) -> Any:
    """The floating type that ``dtype`` stands for."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in _DTYPES:
        raise ValueError(f"dtype: got {dtype!r}; expected 'float64' or 'float32'.")
    return _DTYPES[name]


def check_number(name: str, value: Any, expected: str, low: float, *, strict: bool = True) -> float:
    """A finite number above (or at) ``low``, or an error that names the parameter."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or (value <= low if strict else value < low):
        raise ValueError(f"{name}: got {value!r}; expected {expected}.")
    return float(value)

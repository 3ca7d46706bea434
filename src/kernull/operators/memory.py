"""How kernels are kept and in how many bytes: what is free, and what a user allows."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from kernull._fields import stored

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}I": 1024**power for power, unit in enumerate("KMGT", start=1)}

#: Where Linux keeps the limits of a container; psutil looks at the whole machine.
CONTROL_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes this process may still take: free memory, or the control group's limit if lower."""
    free = int(psutil.virtual_memory().available)
    limit, used = (CONTROL_GROUP / name for name in ("memory.max", "memory.current"))
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return max(free, 0)


def parse_memory_limit(limit: Any) -> int:
    """Number of bytes that a memory limit stands for.

    Parameters
    ----------
    limit : None, number or str
        None is half of what is available; "2GB" is 2 x 10^9 bytes, "2GiB" is 2 x 2^30.

    Returns
    -------
    int
    """
    if limit is None:
        return available_memory() // 2
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*((?:[KMGT]I?)?)B?\s*", limit.upper())
        if match and float(match.group(1)) > 0:
            return int(float(match.group(1)) * _UNITS[match.group(2)])
    elif isinstance(limit, Real) and not isinstance(limit, bool) and 0 < float(limit) < math.inf:
        return int(float(limit))
    raise ValueError(
        f'memory_limit: got {limit!r}; expected None, a number of bytes, or text such as "2GB".'
    )


def format_bytes(count: float) -> str:
    """Bytes as text: 12.8 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


@stored
@dataclass(frozen=True)
class Storage:
    """A storage with its limits, to pass in place of a name.

    Parameters
    ----------
    name : str or callable, default="auto"
        ``"auto"``, ``"dense"``, ``"tiled"``, ``"nystroem"``, ``"dask"``, or a function of the
        kernel set that returns an operator (see ``docs/contributing/extending.md``).
    memory_limit : int or str, optional
        Bytes that kernels and solver may take, or text such as ``"2GB"``; half of the available
        memory by default.
    dtype : {"float64", "float32"}, default="float64"
        Type in which kernels are kept; ``"float32"`` halves memory.
    landmarks : int, default=1000
        Rows that stand for all under ``"nystroem"``.

    Examples
    --------
    >>> Storage("nystroem", landmarks=500)
    Storage(name='nystroem', memory_limit=None, dtype='float64', landmarks=500)
    """

    name: Any = "auto"
    memory_limit: Any = None
    dtype: Any = "float64"
    landmarks: int = 1000

    def __post_init__(self) -> None:
        parse_memory_limit(self.memory_limit)
        try:
            dtype = np.dtype(self.dtype).name
        except TypeError:
            dtype = ""
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype: got {self.dtype!r}; expected 'float64' or 'float32'.")
        object.__setattr__(self, "dtype", dtype)
        count = self.landmarks
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"landmarks: got {count!r}; expected a whole number, at least 1.")

    @classmethod
    def of(cls, storage: Any) -> Storage:
        """The storage that a parameter stands for: a name, a function, or an object as it is."""
        return storage if isinstance(storage, cls) else cls(storage)

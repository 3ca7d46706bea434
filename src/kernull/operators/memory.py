"""Bytes: what is free, what a user allows, and how they are written."""

from __future__ import annotations

import contextlib
import math
import re
from numbers import Real
from pathlib import Path
from typing import Any

import psutil

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
    """Bytes from None (half of what is available), a number of bytes, or text such as "2GB"."""
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

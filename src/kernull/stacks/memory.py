"""Planning of dense allocations, before anything is allocated."""

from __future__ import annotations

import contextlib
import math
import re
from numbers import Real
from pathlib import Path
from typing import Any

import psutil

from kernull.errors import MemoryLimitError

__all__ = [
    "available_memory",
    "check_memory",
    "check_stream_memory",
    "dense_bytes",
    "format_bytes",
    "parse_memory_limit",
]

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
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*((?:[KMGT]I?)?)B?\s*", limit.upper())
        if found and float(found.group(1)) > 0:
            return int(float(found.group(1)) * _UNITS[found.group(2)])
    elif isinstance(limit, Real) and not isinstance(limit, bool) and 0 < float(limit) < math.inf:
        return int(float(limit))
    raise ValueError(
        f'memory_limit: got {limit!r}; expected None, a number of bytes, or text such as "2GB".'
    )


def check_stream_memory(J: int, landmarks: int, limit: int) -> None:
    """Refuse the Gram matrix of a streaming fit that does not fit, before it is allocated.

    With f = 1 + J l: the sum, a block's share of it and its eigenvectors, and J reduced kernels of
    f x f at most.
    """
    size = 1 + J * landmarks
    need = (3.0 + J) * size * size * 8
    if need > limit:
        most = int((math.sqrt(limit / (8.0 * (3.0 + J))) - 1) / J)
        raise MemoryLimitError(
            f"landmarks: the features of {J} kernels and {landmarks} landmarks need "
            f"{format_bytes(need)}, the memory limit is {format_bytes(limit)}. "
            + (f"Use at most {most} landmarks, " if most >= 1 else "Use ")
            + "fewer kernels, or raise memory_limit."
        )


def format_bytes(count: float) -> str:
    """Bytes for people: 12.8 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def dense_bytes(J: int, n: int, itemsize: int) -> int:
    """Bytes of J dense kernels and three working matrices (combined kernel, factor, distances)."""
    return J * n * n * itemsize + 3 * n * n * 8


def check_memory(J: int, n: int, itemsize: int, limit: int) -> None:
    """Refuse a dense stack that does not fit, before it is allocated."""
    need = dense_bytes(J, n, itemsize)
    if need > limit:
        raise MemoryLimitError(
            f"storage: {J} dense kernels of {n} x {n} need {format_bytes(need)}, the memory limit "
            f"is {format_bytes(limit)}. Use storage='tiled' (exact, nothing n x n is kept) or "
            "'nystroem' where the method offers them, raise memory_limit, use dtype='float32', "
            "fewer kernels, or a random subset of the rows."
        )

"""Warnings of our own that a caller inside the package does not want to pass on.

`warnings.catch_warnings` changes the filters of the whole process and puts back what it found:
of two threads that overlap, the last one out may leave the other's filters for good. What is
silenced here is known to this thread alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["silenced", "warn"]

_silenced: ContextVar[tuple[type[Warning], ...]] = ContextVar("silenced", default=())


@contextmanager
def silenced(*categories: type[Warning]) -> Iterator[None]:
    """Keep `warn` from passing on warnings of these categories, in this thread.

    Examples
    --------
    >>> from kernull._quiet import silenced, warn
    >>> with silenced(UserWarning):
    ...     warn("nobody hears this", UserWarning)
    """
    token = _silenced.set((*_silenced.get(), *categories))
    try:
        yield
    finally:
        _silenced.reset(token)


def warn(message: str, category: type[Warning], *, stacklevel: int = 1) -> None:
    """`warnings.warn`, unless the category is silenced; ``stacklevel`` 1 is the caller."""
    if not issubclass(category, _silenced.get()):
        warnings.warn(message, category, stacklevel=stacklevel + 1)

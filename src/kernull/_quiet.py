"""Warnings of our own that a caller inside the package does not pass on, or reads itself.

`warnings.catch_warnings` changes the filters of the whole process and puts back what it found:
of two threads that overlap, the last one out may leave the other's filters for good. What is
silenced here is known to this thread alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_silenced: ContextVar[tuple[type[Warning], ...]] = ContextVar("silenced", default=())
_collected: ContextVar[tuple[tuple[type[Warning], list[str]], ...]] = ContextVar(
    "collected", default=()
)


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


@contextmanager
def collected(category: type[Warning]) -> Iterator[list[str]]:
    """Put what `warn` says in this category into a list instead, in this thread.

    Examples
    --------
    >>> from kernull._quiet import collected, warn
    >>> with collected(UserWarning) as messages:
    ...     warn("the caller reads this", UserWarning)
    >>> messages
    ['the caller reads this']
    """
    messages: list[str] = []
    token = _collected.set((*_collected.get(), (category, messages)))
    try:
        yield messages
    finally:
        _collected.reset(token)


def warn(message: str, category: type[Warning], *, stacklevel: int = 1) -> None:
    """`warnings.warn`, unless silenced or collected; ``stacklevel`` 1 is the caller."""
    if issubclass(category, _silenced.get()):
        return
    for wanted, messages in reversed(_collected.get()):
        if issubclass(category, wanted):
            messages.append(message)
            return
    warnings.warn(message, category, stacklevel=stacklevel + 1)

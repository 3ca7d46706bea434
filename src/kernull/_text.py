"""Text that other people wrote, made fit to be shown, and text that docstrings share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The joiners that Persian, Indic scripts and emoji are written with.
_KEPT = frozenset("\u200c\u200d")


def visible(text: str, keep: str = "") -> str:
    r"""The text with everything that acts instead of being seen written as an escape.

    Names of views and columns, parameters and cells come from files that anybody may have
    written. A terminal obeys control characters in them (set the title, fill the clipboard, move
    the cursor up and overwrite what was there), and marks of direction make text read as another.

    Characters of ``keep``, such as line ends in a text of ours, are left as they are.

    Examples
    --------
    >>> print(visible("a\x1b]0;title\x07 b"))
    a\x1b]0;title\x07 b
    >>> print(visible("größe (日本) in µm"))
    größe (日本) in µm
    """
    if text.isprintable():
        return text
    escaped = {c: c.encode("unicode_escape").decode("ascii") for c in set(text)}
    return "".join(c if _shows(c) or c in keep else escaped[c] for c in text)


def first_line(error: BaseException) -> str:
    """What an error says, in one line; its kind where it says nothing."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _shows(character: str) -> bool:
    return (
        character.isprintable()
        or character in _KEPT
        or unicodedata.category(character) == "Zs"  # no-break spaces and the like
    )


def with_shared(shared: str) -> Callable[[T], T]:
    r"""A decorator that fills in docstrings: a line ``{name, name}`` is replaced by shared entries.

    ``shared`` has what means the same wherever it is found, in numpydoc's form.

    Examples
    --------
    >>> @with_shared("tol : float\n    Relative duality gap to stop at.")
    ... def solve(tol):
    ...     '''Solve.
    ...
    ...     {tol}
    ...     '''
    >>> print(solve.__doc__.splitlines()[2])
        tol : float
    """
    parts = re.split(r"\n(?=\w)", shared.strip())
    entries = {re.split(r"\W", entry, maxsplit=1)[0]: entry.rstrip() for entry in parts}

    def fill(found: re.Match[str]) -> str:
        margin, names = found.groups()
        lines = "\n".join(entries[name] for name in names.split(", ")).splitlines()
        return "\n".join(margin + line if line else "" for line in lines)

    def decorate(value: T) -> T:
        text = value.__doc__ or ""
        value.__doc__ = re.sub(r"^( *)\{(\w+(?:, \w+)*)\}$", fill, text, flags=re.MULTILINE)
        return value

    return decorate

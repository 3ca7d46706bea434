"""Text that other people wrote, made fit to be shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

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


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def first_line(error: BaseException) -> str:
    """What an error says, in one line; its kind where it says nothing."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _shows(character: str) -> bool:
    return (
        character.isprintable()
        or character in _KEPT
        or unicodedata.category(character) == "Zs"  # no-break spaces and the like
    )

"""Tools of the findings: claims with conditions, and rows of the tables."""

from __future__ import annotations

import textwrap
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells import Rows
from experiments.pages import typed_rows

__all__ = ["StaleClaimError", "bullet", "listed", "paragraph", "rows_of", "state"]


class StaleClaimError(ValueError):
    """A sentence says what the tables no longer say."""


def state(condition: Any, sentence: str) -> str:
    """The sentence, where its condition holds.

    Examples
    --------
    >>> state(2 > 1, "Two is more.")
    'Two is more.'
    """
    if not bool(np.all(condition)):
        raise StaleClaimError(f"the tables no longer say: {sentence}")
    return sentence


@lru_cache(maxsize=32)
def _read(path: Path) -> tuple[dict[str, Any], ...]:
    return tuple(typed_rows(path))


def rows_of(results: Path, table: str) -> Rows:
    """Rows of a table below the folder of results."""
    return list(_read(results / table))


def listed(names: Any) -> str:
    """``a, b and c``.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    *first, last = list(names)
    return f"{', '.join(first)} and {last}" if first else str(last)


def paragraph(*sentences: str) -> str:
    """Sentences as one paragraph of lines of at most 100 characters."""
    return textwrap.fill(" ".join(sentences), 100, break_long_words=False, break_on_hyphens=False)


def bullet(*sentences: str) -> str:
    """Sentences as one item of a list."""
    return textwrap.fill(
        " ".join(sentences), 100, initial_indent="- ", subsequent_indent="  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip

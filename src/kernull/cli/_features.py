"""From columns of a table to features of a model, and to views by name patterns."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from kernull._typing import Array
from kernull.cli._chunks import Chunk
from kernull.cli._errors import DataError, UsageError

__all__ = [
    "Feature",
    "choose_features",
    "features_of_model",
    "matrix",
    "read_views",
    "view_columns",
]

#: More categories than this in one column is a name or a number, not a category.
MAX_CATEGORIES = 50


@dataclass(frozen=True)
class Feature:
    """One input of a model: a column of numbers, or one category of a column (1 or 0)."""

    column: str
    category: str | None = None

    @property
    def name(self) -> str:
        """``column``, or ``column=category``; a model file keeps nothing but this."""
        return self.column if self.category is None else f"{self.column}={self.category}"

    def values(self, chunk: Chunk) -> Array:
        """Values in the rows of a chunk."""
        if self.category is None:
            return chunk.numbers(self.column)
        return np.array([cell == self.category for cell in chunk.text(self.column)], dtype=float)


def matrix(chunk: Chunk, features: Sequence[Feature]) -> Array:
    """The features of all rows of a chunk, of shape (rows, features)."""
    return np.column_stack([feature.values(chunk) for feature in features])


def matching(patterns: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Columns that match any of the patterns, in the order of the table; each must match one.

    The name of a column matches that column alone, brackets and stars included.
    """
    for pattern in patterns:
        if not any(_matches(name, pattern, names) for name in names):
            raise UsageError(
                f"{option}: no column matches {pattern!r}; the table has {_listed(names)}."
            )
    return [name for name in names if any(_matches(name, p, names) for p in patterns)]


def _matches(name: str, pattern: str, names: Sequence[str]) -> bool:
    return name == pattern if pattern in names else fnmatchcase(name, pattern)


def choose_features(
    chunk: Chunk, names: Sequence[str], drop: Sequence[str], encode: Sequence[str]
) -> list[Feature]:
    """Features to learn from: all columns of numbers, and the categories of encoded columns.

    Columns of anything else are refused by name.
    """
    dropped = set(matching(drop, tuple(chunk.columns), "--drop"))
    encoded = set(matching(encode, tuple(chunk.columns), "--encode"))
    used = [name for name in names if name not in dropped]
    refused = [name for name in used if name not in encoded and not chunk.is_numeric(name)]
    if refused:
        example = (
            next(cell for cell in chunk.text(refused[0]) if cell)
            if any(chunk.text(refused[0]))
            else ""
        )
        noun = "column" if len(refused) == 1 else "columns"
        raise DataError(
            f"{chunk.source}: the {noun} {_listed(refused)} "
            f"{'is' if len(refused) == 1 else 'are'} not numeric (for example {example!r}); leave "
            "them out with --drop NAME or turn them into categories with --encode NAME."
        )
    features: list[Feature] = []
    for name in used:
        features += _categories(chunk, name) if name in encoded else [Feature(name)]
    if not features:
        raise DataError(f"{chunk.source}: no column is left to learn from.")
    return features


def _categories(chunk: Chunk, name: str) -> list[Feature]:
    values = sorted(set(chunk.text(name)))
    if len(values) > MAX_CATEGORIES:
        raise DataError(
            f"{chunk.source}: the column {name!r} has {len(values)} different values, too many to "
            f"be categories (at most {MAX_CATEGORIES}); leave it out with --drop {name!r}."
        )
    return [Feature(name, value) for value in values]


def features_of_model(
    wanted: Sequence[str] | None, count: int, names: Sequence[str], label: str, drop: Sequence[str]
) -> list[Feature]:
    """Features that a fitted model asks for, found in a table by name."""
    there = [name for name in names if name not in matching(drop, names, "--drop")]
    if wanted is None:  # fitted on an array without names: by position
        if len(there) != count:
            raise DataError(
                f"{label}: has {len(there)} columns, the model was fitted on {count} without "
                "names; leave the others out with --drop NAME."
            )
        return [Feature(name) for name in there]
    found = [_find(name, there) for name in wanted]
    missing = [name for name, feature in zip(wanted, found, strict=True) if feature is None]
    if missing:
        raise DataError(
            f"{label}: lacks {_listed(missing)}, which the model was fitted on; it has "
            f"{_listed(there)}."
        )
    return [feature for feature in found if feature is not None]


def _find(name: str, there: Sequence[str]) -> Feature | None:
    if name in there:
        return Feature(name)
    for i, mark in enumerate(name):  # the column's own name may hold = too
        if mark == "=" and name[:i] in there:
            return Feature(name[:i], name[i + 1 :])
    return None


# -- views -----------------------------------------------------------------------------------


def read_views(file: str | None, options: Sequence[str]) -> dict[str, list[str]] | str | None:
    """Patterns of columns by view, from a TOML file and from ``name=pattern,pattern`` options.

    Returns None where neither is given, and ``"features"`` where that word stands for the file.
    """
    if file == "features":
        if options:
            raise UsageError("--views features is one view a column; it takes no --view beside it.")
        return "features"
    views: dict[str, list[str]] = {}
    if file is not None:
        views |= _read_toml(file)
    for option in options:
        name, found, patterns = option.partition("=")
        items = [item.strip() for item in patterns.split(",") if item.strip()]
        if not found or not name.strip() or not items:
            raise UsageError(
                f"--view: got {option!r}; expected NAME=PATTERN, for example 'colour=col_*' or "
                "'size=width,height'."
            )
        views.setdefault(name.strip(), []).extend(items)
    return views or None


def _read_toml(file: str) -> dict[str, list[str]]:
    try:
        content = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"--views: {file}: no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise DataError(f"--views: {file}: is not a TOML file ({error}).") from None
    table = content.get("views", content)
    views: dict[str, list[str]] = {}
    for name, value in table.items() if isinstance(table, dict) else ():
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise DataError(
                f"--views: {file}: the view {name!r} must be a column name, a pattern, or a list "
                f"of these; it is {value!r}."
            )
        views[name] = items
    if not views:
        raise DataError(f'--views: {file}: names no view; expected [views] and colour = ["col_*"].')
    return views


def view_columns(
    views: dict[str, list[str]] | str | None, names: Sequence[str]
) -> dict[str, list[str]] | None:
    """Columns of each view; None where all columns are one view."""
    if views is None:
        return None
    if isinstance(views, str):
        return {name: [name] for name in names}
    return {view: matching(patterns, names, f"view {view!r}") for view, patterns in views.items()}


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"

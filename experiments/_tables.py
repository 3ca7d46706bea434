"""Tidy tables: CSV for machines, Markdown for people; no dependency but NumPy."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells import Rows
from experiments._store import write_atomically

__all__ = [
    "distinct",
    "group",
    "markdown",
    "mean_std",
    "read_table",
    "values",
    "where",
    "write_results",
    "write_table",
]

#: Columns that hold what differs from run to run; they go to a table of their own.
TIMING = ("time_", "memory_")


def where(rows: Rows, **conditions: Any) -> Rows:
    """Rows whose columns have the given values."""
    return [row for row in rows if all(row.get(key) == value for key, value in conditions.items())]


def values(rows: Rows, column: str) -> Any:
    """One column as a float array."""
    return np.array([row[column] for row in rows], dtype=float)


def distinct(rows: Rows, column: str) -> list[Any]:
    """Values of a column in the order of their first appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def group(rows: Rows, *columns: str) -> dict[tuple[Any, ...], Rows]:
    """Rows by the values of some columns, in the order of their first appearance."""
    out: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        out.setdefault(tuple(row[column] for column in columns), []).append(row)
    return out


def mean_std(numbers: Any, digits: int = 1) -> str:
    """``mean ± standard deviation``; a dash where there is nothing."""
    found = np.asarray(numbers, dtype=float)
    if not len(found):
        return "–"
    spread = float(found.std(ddof=1)) if len(found) > 1 else 0.0
    return f"{found.mean():.{digits}f} ± {spread:.{digits}f}"


def markdown(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    out = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    out += ["| " + " | ".join(str(item) for item in line) + " |" for line in lines]
    return "\n".join(out)


def write_results(rows: Rows, folder: Path) -> None:
    """Write ``results.csv`` and, where cells measured time, ``timings.csv``."""
    # Keys with a leading underscore are curves for figures, too long for a table.
    columns = list(dict.fromkeys(key for row in rows for key in row if key[0] != "_"))
    timed = [c for c in columns if c.startswith(TIMING)]
    plain = [c for c in columns if not c.startswith(TIMING)]
    _write_csv(folder / "results.csv", plain, rows, lambda row: True)
    if timed:
        _write_csv(folder / "timings.csv", columns, rows, lambda row: any(c in row for c in timed))


def write_table(rows: Rows, path: Path) -> None:
    """Write rows as CSV, columns in the order of their first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    _write_csv(path, columns, rows, lambda row: True)


def read_table(path: Path) -> Rows:
    """Rows of a CSV file; every entry is text."""
    with path.open(newline="", encoding="utf-8") as file:
        return [dict(row) for row in csv.DictReader(file)]


def _write_csv(
    path: Path, columns: list[str], rows: Rows, keep: Callable[[dict[str, Any]], bool]
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    # repr of a float is the shortest text that reads back as the same number.
    writer.writerows([row.get(c, "") for c in columns] for row in rows if keep(row))
    write_atomically(path, text.getvalue())

"""Columns that say nothing new while all is well: constants, and copies of other columns.

They are not learned from. What they always were is kept all the same: a new row in which a dead
sensor speaks, or two that always agreed differ, breaks the rule of all training rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array, Mask
from kernull.tables.cells import as_text
from kernull.tables.kinds import EMPTY, LEAST_ROWS, Column
from kernull.tables.table import Table

#: Beyond this many columns no copies are looked for.
MANY = 2000
#: Numbers that differ by a smaller share of their size are the same, written twice.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Breach:
    """A cell of a column that is not learned from, and is not what it was in all training rows."""

    row: int
    column: str
    value: str  #: As a text; texts in quotes.
    expected: str  #: What it always was, or would be by the column that it copies.
    rule: str  #: In words: "always 0 in training".
    number: bool  #: Whether the column has numbers: such a cell is evidence by itself.


def breaches(columns: Sequence[Column], table: Table, absent: Collection[str]) -> Iterator[Breach]:
    """Cells of some rows that break what all training rows had in common."""
    for column in columns:
        wanted = {column.name, column.copies or column.name}
        known = column.kind == "constant" or (column.kind == "copy" and column.copies)
        if not known or not wanted.isdisjoint(absent) or not wanted <= table.columns.keys():
            continue
        if column.why == EMPTY:
            yield from _appeared(column.name, table)
        if not (column.law or column.values):
            continue
        cells, law = table.columns[column.name], _number_law if column.law else _text_law
        if not column.copies and not isinstance(cells, np.ndarray):  # text: a glance will do
            few = Table("", 0, {column.name: list(set(cells))}, None, table.mark(column.name))
            if not law(column, few)[1].any():
                continue
        expected, off = law(column, table)
        agreed = f" by {column.copies}, with which it always agreed in training"
        for i in np.flatnonzero(off).tolist():
            value, usual = (_plain(cell) for cell in (cells[i], expected[i]))
            quote = str if column.law else repr
            said = quote(usual)
            rule = f"{said}{agreed}" if column.copies else f"always {said} in training"
            yield Breach(i, column.name, quote(value), usual, rule, bool(column.law))


def _appeared(name: str, table: Table) -> Iterator[Breach]:
    """Cells with a value in a column that had none."""
    _, missing, bad = table.parse(name)
    for i in np.flatnonzero(~missing).tolist():
        value, number = _plain(table.columns[name][i]), not bad[i]
        rule = f"{EMPTY} in training"
        yield Breach(i, name, value if number else repr(value), "empty", rule, number)


def _plain(cell: Any) -> str:
    return f"{cell:.9g}" if isinstance(cell, float | np.floating) else as_text([cell])[0] or ""


def _number_law(column: Column, table: Table) -> tuple[Sequence[Any], Mask]:
    slope, level, slack = column.law
    base = table.parse(column.copies)[0] if column.copies else np.zeros(len(table))
    values, missing, _ = table.parse(column.name)
    with np.errstate(over="ignore", invalid="ignore"):
        line = level + slope * base
        same = np.abs(values - line) <= slack + ROUNDING * np.minimum(np.abs(values), np.abs(line))
    return line.tolist(), ~same & ~missing & np.isfinite(line)


def _text_law(column: Column, table: Table) -> tuple[Sequence[Any], Mask]:
    texts = as_text(table.columns[column.name])
    expected: list[str | None] = [column.values[0]] * len(texts)
    if column.copies:
        pairs = dict(zip(column.keys, column.values, strict=True))
        expected = [
            pairs.get(text) if text else None for text in as_text(table.columns[column.copies])
        ]
    off = [None not in (text, e) and text != e for text, e in zip(texts, expected, strict=True)]
    return expected, np.array(off, dtype=bool)


def mark_copies(table: Table, columns: list[Column], asked: Mapping[str, str]) -> list[Column]:
    """Columns that say the same as an earlier one, in the same or in other units."""
    out = {column.name: column for column in columns}
    numbers = [c.name for c in columns if c.kind == "number" and c.name not in asked]
    for name, of, law in _copied_numbers(table, numbers):
        why = f"the same as {of!r}"
        out[name] = replace(out[name], kind="copy", why=why, copies=of, law=law)
    seen: dict[bytes, str] = {}
    for column in columns:
        if column.kind != "category" or column.name in asked:
            continue
        codes: dict[str | None, int] = {}
        texts = as_text(table.columns[column.name])
        key = np.array([codes.setdefault(text, len(codes)) for text in texts]).tobytes()
        if (of := seen.setdefault(key, column.name)) != column.name:
            pairs = dict(zip(texts, as_text(table.columns[of]), strict=True))
            keys = tuple(pairs[value] or "" for value in column.values)
            why = f"the same as {of!r}"
            out[column.name] = replace(column, kind="copy", why=why, copies=of, keys=keys)
    return list(out.values())


def _copied_numbers(table: Table, names: list[str]) -> Iterator[tuple[str, str, tuple[float, ...]]]:
    """Copies, what they copy, and slope, level and slack of the line between them."""
    if len(names) < 2 or len(names) > MANY:
        return
    X = np.column_stack([table.parse(name)[0] for name in names])
    known = np.isfinite(X)
    X = np.where(known, X, 0.0)
    scale = np.abs(X).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)  # far from overflow
    mean = (X / scale).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    Z = np.where(known, X / scale - mean, 0.0)
    alike = _alike(Z, known.astype(float))
    for j in range(1, len(names)):
        for i in np.flatnonzero(alike[j, :j]):
            both = known[:, i] & known[:, j]
            a, b = _unit(Z[both, i]), _unit(Z[both, j])
            # 1 - r is the squared distance: this asks for agreement to about nine digits.
            if min(np.abs(a - b).max(), np.abs(a + b).max()) < 1e-9:
                yield names[j], names[int(i)], _line(X[both, i], X[both, j], a, b)
                break


def _line(x: Array, y: Array, a: Array, b: Array) -> tuple[float, ...]:
    """Slope, level and slack of y by x, whose unit vectors are a and b; empty beyond all bounds."""
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.sign(a @ b) * np.ptp(y) / np.ptp(x)
        level = y[0] - slope * x[0]
        slack = max(ROUNDING * np.ptp(y), 2.0 * np.abs(level + slope * x - y).max())
    law = (float(slope), float(level), float(slack))
    return law if np.isfinite(law).all() else ()


def _alike(Z: Array, M: Array) -> Array:
    """Pairs of columns with a correlation of nearly 1 or -1 over the rows that have both."""
    n = np.maximum(M.T @ M, 1.0)
    sums = Z.T @ M  # of column i, over the rows that have column j as well
    spread = (Z**2).T @ M - sums**2 / n
    cross = Z.T @ Z - sums * sums.T / n
    close = cross**2 > (1.0 - 1e-6) * np.maximum(spread * spread.T, 1e-300)
    return np.asarray(close & (n >= LEAST_ROWS))


def _unit(values: Array) -> Array:
    apart = values - values.mean()
    return np.asarray(apart / max(float(np.linalg.norm(apart)), 1e-300))

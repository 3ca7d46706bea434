"""The kinds of a table's columns in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from kernull.tables.kinds import KINDS, Column

__all__ = ["summarise"]

#: Columns of one kind that are named.
SHOWN = 12


def summarise(columns: Sequence[Column], used: Sequence[str]) -> str:
    """One line per kind: how many columns, their names, and what becomes of them.

    Examples
    --------
    >>> print(summarise([Column("a", "number"), Column("b", "constant", "always 1")], ["a"]))
    number    1  a
    constant  1  b (always 1): left out
    """
    taken = set(used)
    lines = []
    for kind in KINDS:
        members = [column for column in columns if column.kind == kind]
        if not members:
            continue
        shown = ", ".join(_named(column) for column in members[:SHOWN])
        more = "" if len(members) <= SHOWN else f" and {len(members) - SHOWN} more"
        out = "" if any(c.name in taken for c in members) or kind == "left out" else ": left out"
        lines.append((kind, str(len(members)), f"{shown}{more}{out}"))
    wide = max(len(kind) for kind, _, _ in lines)
    tall = max(len(count) for _, count, _ in lines)
    return "\n".join(f"{kind:<{wide}}  {count:>{tall}}  {said}" for kind, count, said in lines)


def _named(column: Column) -> str:
    said = [f"{len(column.values)} values"] if column.values else []
    said += [column.why] if column.why else []
    said += [f"{column.missing:,} empty"] if column.missing else []
    return f"{column.name} ({', '.join(said)})" if said else column.name

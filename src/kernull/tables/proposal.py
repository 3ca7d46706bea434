"""Views proposed from the names of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: What a name begins with, up to the first mark or number behind letters: "vib" of "vib_x".
_BEGINNING = re.compile(r"[^\W\d_]+(?=[\W\d_])")
#: The view of columns that share their beginning with no other.
REST = "other"


def propose_views(names: Sequence[str]) -> dict[str, list[str]] | None:
    """Columns whose names begin alike as views; None where that makes one view alone.

    Examples
    --------
    >>> propose_views(["vib_x", "vib_y", "heat 1", "heat 2", "torque"])
    {'vib': ['vib_x', 'vib_y'], 'heat': ['heat 1', 'heat 2'], 'other': ['torque']}
    """
    views: dict[str, list[str]] = {}
    for name in names:
        found = _BEGINNING.match(name)
        views.setdefault(found[0] if found else name, []).append(name)
    alone = {name for columns in views.values() if len(columns) == 1 for name in columns}
    views = {view: columns for view, columns in views.items() if len(columns) > 1}
    if alone:
        rest = [name for name in names if name in alone]
        views[REST] = [*views.get(REST, ()), *rest]
    return views if len(views) > 1 else None

"""Views proposed from the names of columns, or from their correlation."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from kernull._typing import Array

#: What a name begins with, up to a mark, or to a number: "vib" of "vib_x", "pump1" of "pump1.t".
_BEGINNING = re.compile(r"[^\W\d_]+\d*(?=[\W_])|[^\W\d_]+(?=\d)")
#: The view of columns that belong with no other.
REST = "other"


def propose_views(
    names: Sequence[str], correlation: Array | None = None, texts: Collection[str] = ()
) -> dict[str, list[str]] | None:
    """Views of columns whose names begin alike, or else that correlate; None where there is one.

    Names decide where they put more than half of the columns into views. Otherwise columns are
    alike as far as their absolute correlations with all columns are correlated; average linkage
    joins columns down to a likeness of zero. Such a view has the name of its first column
    (``python -m benchmarks.proposed_views``). Categories by themselves are no view: they go to the
    largest one.

    Parameters
    ----------
    names : sequence of d str
    correlation : array of shape (d, d), optional
    texts : collection of str
        Names of categories.

    Examples
    --------
    >>> propose_views(["vib_x", "vib_y", "heat 1", "heat 2", "torque"])
    {'vib': ['vib_x', 'vib_y'], 'heat': ['heat 1', 'heat 2'], 'other': ['torque']}
    >>> propose_views(["a", "b", "c", "d"], np.kron(np.eye(2), np.ones((2, 2))))
    {'a': ['a', 'b'], 'c': ['c', 'd']}
    """
    beginnings = (_BEGINNING.match(name) for name in names)
    views = _together(names, [b[0] if b else n for b, n in zip(beginnings, names, strict=True)])
    telling = len(views) > 1 and 2 * len(views.get(REST, ())) < len(names)
    if not telling and correlation is not None:
        likeness = np.nan_to_num(np.corrcoef(np.abs(correlation)))
        apart = squareform(np.clip(1.0 - likeness, 0.0, None), checks=False)
        labels = fcluster(linkage(apart, "average"), 1.0, "distance").tolist()
        views = _together(names, [names[labels.index(label)] for label in labels])
    alone = [view for view, columns in views.items() if set(columns) <= set(texts)]
    moved = [name for view in alone for name in views.pop(view)]
    if views:
        max(views.values(), key=len).extend(moved)
    return views if len(views) > 1 else None


def _together(names: Sequence[str], labels: Sequence[str]) -> dict[str, list[str]]:
    """Names by label; those whose label no other has are the rest."""
    views: dict[str, list[str]] = {}
    for name, label in zip(names, labels, strict=True):
        views.setdefault(label if labels.count(label) > 1 else REST, []).append(name)
    rest = views.pop(REST, [])
    return {**views, REST: rest} if rest else views

"""Which views decide, and which hardly tell one row from another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernull._quiet import warn
from kernull.calibration.conformal import FEWEST_VALUES
from kernull.detector.evidence import EvidenceRule, TableScores
from kernull.detector.given import GivenScores
from kernull.errors import DominantViewWarning

#: A view takes most of the weight with more than this share, and more than so many times an equal
#: one.
MOST_SHARE, TIMES_EQUAL = 0.5, 1.5


def warn_of_views(rule: EvidenceRule, views: Sequence[str]) -> None:
    """Name views that take most of the weight, or hold few different rows.

    Parameters
    ----------
    rule : EvidenceRule
    views : sequence of length J
        View of each kernel. One view alone is not judged.
    """
    names, view = np.unique(np.asarray(views, dtype=str), return_inverse=True)
    if len(names) < 2:
        return
    share = np.bincount(view, rule.weights) / rule.weights.sum()
    found = []
    for v, name in enumerate(names.tolist()):
        if share[v] > max(MOST_SHARE, TIMES_EQUAL / len(names)):
            found.append(f"view {name!r} takes {100 * share[v]:.0f}% of the weight")
        kinds = _different_rows(rule.scores, name)
        if len(rule.left_out) >= 2 * FEWEST_VALUES and kinds < FEWEST_VALUES:
            found.append(f"view {name!r} has {kinds} different rows only")
    if found:
        warn(
            f"views: {'; '.join(found)}. A view of noise, or one that hardly varies, looks like "
            "this: compare with a model without it.",
            DominantViewWarning,
            stacklevel=2,
        )


def _different_rows(scores: TableScores | GivenScores, view: str) -> int:
    """How many different rows a view has; as many as there are where only its kernels are known."""
    rows = [part.view.train for part in getattr(scores, "parts", ()) if part.view.name == view]
    if not rows:
        return FEWEST_VALUES
    return len(np.unique(rows[0].round(9), axis=0))

"""Labels, scores and thresholds, checked."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernull._text import with_shared

TARGET, OUTLIER = 1, -1
#: What all metrics take.
documented = with_shared("""
y_true : array-like of shape (n,)
    Labels: +1 target (bona fide), -1 outlier (attack). What the rate counts must occur.
scores : array-like of shape (n,)
    Scores; higher is more normal.
threshold : float
    Rows are accepted where ``score >= threshold``; set it on a development set, for example by
    `threshold_at_eer`.
instruments : array-like of shape (n,), optional
    The instrument of each row (a printer, a display, ...); entries of bona fide rows are
    ignored. Without it all attacks count as one instrument named ``"attack"``.
""")


def checked(
    y_true: ArrayLike, scores: ArrayLike, *needed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Validate labels and scores: one-dimensional, equally long, known labels, finite scores.

    There must be rows of each class that is ``needed``.
    """
    y = np.asarray(y_true)
    try:
        s = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores must be numbers; {error}") from error
    for name, array in (("y_true", y), ("scores", s)):
        if array.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional; its shape is {array.shape}")
    if y.size != s.size:
        raise ValueError(
            f"y_true and scores must be equally long; they have {y.size} and {s.size} entries"
        )
    if not np.isfinite(s).all():
        bad = np.flatnonzero(~np.isfinite(s))
        raise ValueError(
            f"scores must be finite; {bad.size} of {s.size} are NaN or infinite, "
            f"the first at position {bad[0]}"
        )
    known = np.isin(y, (TARGET, OUTLIER)) if y.dtype.kind in "iuf" else np.zeros(y.size, dtype=bool)
    if not known.all():
        seen = sorted({repr(value) for value in y[~known].tolist()})
        shown = ", ".join(seen[:5]) + (", ..." if len(seen) > 5 else "")
        raise ValueError(
            f"y_true must hold +1 (target) and -1 (outlier) only; it also holds {shown}. "
            "Map the labels first, for example np.where(y == target, 1, -1)"
        )
    for label in needed:
        if label not in y:
            name = "target (+1)" if label == TARGET else "outlier (-1)"
            raise ValueError(
                f"y_true holds no {name} rows among its {y.size}, so this rate is undefined"
            )
    return y.astype(np.int64), s


def checked_threshold(threshold: float) -> float:
    """Validate a threshold; infinite ones accept or reject everything and are allowed."""
    t = float(threshold)
    if math.isnan(t):
        raise ValueError("threshold must be a number; it is NaN")
    return t

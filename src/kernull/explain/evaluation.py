"""How well flags and scores agree with labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from kernull._typing import Array, Mask


def checked_labels(y: Any, n: int) -> Array:
    """Labels of n rows, of shape (n,); an error where one is neither +1 nor -1.

    Parameters
    ----------
    y : array of shape (n,)
    n : int
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y: expected one label per row, of {n:,}; got shape {labels.shape}.")
    if labels.dtype.kind == "b" or not np.isin(labels, (-1, 1)).all():
        first = repr(labels.tolist()[0])
        raise ValueError(
            f"y: got labels such as {first}; expected +1 (normal) and -1. If {first} is normal: "
            f"numpy.where(numpy.asarray(y) == {first}, 1, -1). Leave out rows without a label."
        )
    return labels


def evaluation(scores: Array, y: Array, flagged: Mask) -> dict[str, Any]:
    """AUC, average precision (of what is not normal) and the four counts.

    Parameters
    ----------
    scores : array of shape (m,)
        NaN, of a row that is not judged, counts as least normal.
    y : array of shape (m,)
        +1 for normal rows and -1 for others; both must be there.
    flagged : boolean array of shape (m,)

    Examples
    --------
    >>> y = np.array([1, 1, -1])
    >>> evaluation(np.array([0.0, -1.0, np.nan]), y, np.array([False, True, True]))["caught"]
    1
    """
    odd = y == -1
    ranked = np.nan_to_num(scores, nan=np.finfo(float).min)  # and what is infinite as finite
    return {
        "rows": len(y),
        "normal": int((~odd).sum()),
        "odd": int(odd.sum()),
        "auc": float(roc_auc_score(~odd, ranked)),
        "average_precision": float(average_precision_score(odd, -ranked)),
        "caught": int((odd & flagged).sum()),
        "missed": int((odd & ~flagged).sum()),
        "false_alarms": int((~odd & flagged).sum()),
        "passed": int((~odd & ~flagged).sum()),
    }

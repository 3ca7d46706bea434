"""From scores on folds to a table, a choice and a word about the grid's edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from kernull._typing import Array, Indices

#: From here on a norm counts as infinite: weights are uniform to many digits.
NEARLY_INFINITE = 1e3


def results_table(
    grid: Sequence[tuple[float | str, float, float]], scores: Array, gaps: Array
) -> dict[str, Any]:
    """``cv_results_`` from scores of shape (folds, widths, ps, deltas)."""
    flat = scores.reshape(len(scores), -1)
    mean = flat.mean(axis=0)
    widths, ps, deltas = zip(*grid, strict=True)
    table: dict[str, Any] = {
        "param_widths": np.array(widths),  # of text, where "auto" is among them
        "param_p": np.array(ps, dtype=float),
        "param_delta": np.array(deltas, dtype=float),
        "params": [{"p": p, "delta": delta, "widths": width} for width, p, delta in grid],
    }
    for k, split in enumerate(flat):
        table[f"split{k}_test_score"] = split
    table["mean_test_score"] = mean
    table["std_test_score"] = flat.std(axis=0)
    table["rank_test_score"] = rankdata(-mean, method="min").astype(np.int32)
    table["max_gap"] = gaps.ravel()
    return table


def best_index(scores: Array) -> tuple[int, ...]:
    """The best model of a grid; of several equally good ones, that with the best neighbours.

    On small sets many models reach the same score, and the first of them would be the least
    regularised: the middle of a plateau is safer.
    """
    top = scores.max()
    tied = np.argwhere(scores >= top - 1e-12 * max(1.0, abs(float(top))))
    padded = np.pad(scores, 1, constant_values=float(scores.min()))  # beyond lie the worst

    def neighbourhood(index: Indices) -> float:
        return float(padded[tuple(slice(i, i + 3) for i in index)].mean())

    return tuple(int(i) for i in max(tied, key=neighbourhood))


def edges(
    scores: Array, index: tuple[int, ...], widths: Sequence[float | str], ps: Sequence[float]
) -> list[str]:
    """Axes of (width, p, delta) on whose edge the choice lies although it matters there.

    It does not matter where the next model inside is just as good, nor where nothing lies beyond:
    p = 1, p so large that weights are uniform, and the automatic width, which lies on no axis.
    """
    found = []
    for axis, name in enumerate(("width", "p", "delta")):
        first = 1 if name == "width" and widths[0] == "auto" else 0
        last, i = scores.shape[axis] - 1, index[axis]
        if last <= first or i < first or first < i < last:
            continue
        if name == "p" and (ps[i] == 1.0 or ps[i] >= NEARLY_INFINITE):
            continue
        inside = list(index)
        inside[axis] = i + 1 if i == first else i - 1
        if scores[tuple(inside)] < scores[index]:
            found.append(name)
    return found

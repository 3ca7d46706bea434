r"""Which columns make a row stand out: scored again with each replaced by what the others say.

For a row x and a set S of columns, :math:`x^{S}` is x with the cells in S replaced by their
conditional mean given the other cells (`kernull.tables.GapFiller`). The first reason is the column
j whose replacement raises the score most,

.. math:: j_1 = \arg\max_j s(x^{\{j\}}), \qquad j_2 = \arg\max_j s(x^{\{j_1, j\}}), \dots

Every score is the model's own, evaluated again: no surrogate and no sampling. Where a score cannot
rise (a row so far out that nothing is near, whichever column is replaced), the column farthest from
its conditional mean comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull._typing import Array, Mask
from kernull.tables import GapFiller

#: Rows that are scored at once.
BLOCK = 20_000
#: Of the distance to the threshold: a smaller gain is none.
LEAST_GAIN = 0.02


@dataclass(frozen=True)
class ColumnReason:
    """One column that makes a row stand out.

    Attributes
    ----------
    column : int
        Position of the column (of the block, where columns form blocks).
    value, expected : float
        What the row has, and what its other columns say it should have. Of a block, in its first
        column.
    low, high : float
        The usual range for rows like this: 5% to 95% of normal rows, within what these had.
    share : float
        Share of normal rows that lie as far from what their other columns say; 1 / (n + 1) where
        none does, or none has a value so low or so high.
    score, without : float
        Score of the row with the reasons before this one replaced, and with this one as well.
    alike : bool
        False where the other columns ask for values that no normal row had: expected (the median),
        range and share are then those of the column by itself.
    seen : bool
        False where no normal row had a value so low or so high.
    """

    column: int
    value: float
    expected: float
    low: float
    high: float
    share: float
    score: float
    without: float
    alike: bool = True
    seen: bool = True


def column_reasons(
    score: Callable[[Array], Array],
    X: Array,
    filler: GapFiller,
    *,
    threshold: float | None = None,
    blocks: Sequence[Sequence[int]] | None = None,
    gaps: Mask | None = None,
    fill: Callable[[Array], Array] | None = None,
    most: int = 3,
) -> list[list[ColumnReason]]:
    """Columns that make rows stand out, the first reason first.

    Parameters
    ----------
    score : callable
        Scores of rows of shape (m, d); higher is more normal, such as ``model.score_samples``.
    X : array of shape (m, d)
        Rows to explain.
    filler : GapFiller
        What normal rows are like: ``GapFiller.fit(X_train)``.
    threshold : float, optional
        Reasons end when the score is no lower; without it there are ``most``.
    blocks : sequence of sequences of int, optional
        Columns that are one column of a table (places of a category); each by itself by default.
    gaps : boolean array of shape (m, blocks), optional
        Cells that were filled in, not measured. They are no reasons, and follow what the other
        cells say once one of these is replaced.
    fill : callable, optional
        Rows without gaps from rows with NaN, if not ``filler.fill``.
    most : int
        Reasons of one row at most.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernull import MultiKernelFisherNull
    >>> X, y = load_wine(return_X_y=True)
    >>> normal = X[y == 0]
    >>> model = MultiKernelFisherNull().fit(normal)
    >>> row = normal[:1].copy()
    >>> row[0, 4] = 190.0  # magnesium, 106 on the average
    >>> reason = column_reasons(model.score_samples, row, GapFiller.fit(normal))[0][0]
    >>> reason.column, reason.value, reason.high < 150.0, reason.without > reason.score
    (4, 190.0, True, True)
    """
    X = np.asarray(X, dtype=np.float64)
    groups = [[j] for j in range(X.shape[1])] if blocks is None else [list(b) for b in blocks]
    reasons: list[list[ColumnReason]] = [[] for _ in X]
    replaced = np.zeros((len(X), len(groups)), dtype=bool) if gaps is None else gaps.copy()
    current = np.asarray(score(X)) if len(X) else np.zeros(0)
    open_rows = np.arange(len(X))
    for _ in range(min(most, len(groups))):
        open_rows = open_rows[~replaced[open_rows].all(axis=1)]
        if threshold is not None:
            open_rows = open_rows[~(current[open_rows] >= threshold)]
        if len(open_rows) == 0:
            break
        expected, scores = _replace_each(
            score, X[open_rows], fill or filler.fill, groups, replaced[open_rows]
        )
        apart = _apart(X[open_rows], expected, filler, groups)
        chosen = _choose(scores, current[open_rows], apart, replaced[open_rows], threshold)
        for k, i in enumerate(open_rows):
            g = int(chosen[k])
            known = np.ones(X.shape[1], dtype=bool)
            known[[c for r in np.flatnonzero(replaced[i]) for c in groups[r]]] = False
            place, moved = (g, groups[g][0]), (float(current[i]), float(scores[k, g]))
            reasons[i].append(_reason(*place, X[i], expected[g][k], filler, known, moved))
            replaced[i, g] = True
            current[i] = scores[k, g]
    return reasons


def _replace_each(
    score: Callable[[Array], Array],
    X: Array,
    fill: Callable[[Array], Array],
    groups: list[list[int]],
    replaced: Mask,
) -> tuple[list[Array], Array]:
    """Rows with one more column replaced, and their scores, of shape (m, groups)."""
    gone = np.zeros(X.shape, dtype=bool)
    for g, group in enumerate(groups):
        gone[:, group] |= replaced[:, [g]]
    filled: list[Array] = []
    for group in groups:
        gaps = np.where(gone, np.nan, X)
        gaps[:, group] = np.nan
        filled.append(fill(gaps))
    stacked = np.concatenate(filled)
    parts = [np.asarray(score(stacked[i : i + BLOCK])) for i in range(0, len(stacked), BLOCK)]
    return filled, np.concatenate(parts).reshape(len(groups), len(X)).T


def _apart(X: Array, expected: list[Array], filler: GapFiller, groups: list[list[int]]) -> Array:
    """How far each column lies from what the others say, in its usual spreads: (m, groups)."""
    spread = filler.residual_spread
    return np.column_stack(
        [
            np.max(np.abs(X[:, group] - new[:, group]) / spread[group], axis=1)
            for group, new in zip(groups, expected, strict=True)
        ]
    )


def _choose(
    scores: Array, current: Array, apart: Array, replaced: Mask, threshold: float | None
) -> Any:
    """The column whose replacement raises the score most; the oddest where none does."""
    gain = np.where(replaced | ~np.isfinite(scores), -np.inf, scores)
    best = gain.max(axis=1)
    ceiling = np.maximum(best, current if threshold is None else threshold)
    helps = best - current > LEAST_GAIN * np.abs(ceiling)
    oddest = np.where(replaced, -np.inf, apart).argmax(axis=1)
    return np.where(helps, gain.argmax(axis=1), oddest)


def _reason(
    g: int,
    j: int,
    row: Array,
    new: Array,
    filler: GapFiller,
    known: Mask,
    scores: tuple[float, float],
) -> ColumnReason:
    value, expected = float(row[j]), float(new[j])
    # Columns that are replaced, or were empty, say nothing: the others leave more open.
    wider = 1.0 if known.all() else filler.widening(j, known)
    span = filler.usual_range(j, expected, wider)
    if span is None:
        share = filler.share_as_far(j, value - float(filler.mean[j]), alone=True)
    else:
        share = filler.share_as_far(j, (value - expected) / wider)
        share = share if wider == 1.0 else max(share, 1.0 / filler.rows)  # not counted: estimated
    seen = not filler.beyond_seen(j, value)
    share = share if seen else 1.0 / (filler.rows + 1.0)
    if span is None:
        usual = (float(filler.quantiles[50, j]), *filler.own_range(j))
        return ColumnReason(g, value, *usual, share, *scores, alike=False, seen=seen)
    expected = float(np.clip(expected, *filler.quantiles[[0, -1], j]))
    return ColumnReason(g, value, expected, *span, share, *scores, seen=seen)

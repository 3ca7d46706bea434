"""Warnings: a false-alarm rate that does not hold, rows or views that stand apart, no flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import f

from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import FEWEST_VALUES, MOST_ROWS, Calibration
from kernull.detector.cross_fit import row_keys, sampling_order
from kernull.detector.evidence import EvidenceRule
from kernull.detector.precomputed import PrecomputedScores
from kernull.detector.rows import TableRows
from kernull.detector.scores import TableScores
from kernull.errors import (
    CannotFlagWarning,
    DominantViewWarning,
    NearCopiesWarning,
    SuspectRowsWarning,
    TrainingRowsWarning,
    warn,
)
from kernull.operators.dense import DenseStack
from kernull.tables import EncodedRows
from kernull.views.kernel_set import KernelSet, columns_read

#: Share of copies from which to warn: a share s leaves a rate of rate / (1 - s).
MANY_COPIES = 0.2
#: Copies are of at least this share of the different rows, else they are values that a machine at
#: rest has; and this share of those occurs equally often, else they were drawn from few things.
COPIED_SHARE, EQUALLY_OFTEN = 0.05, 0.6
#: A column follows time where its correlation with the next row is at least `SERIAL`, and its
#: median squared step there at most this share of that to the fifth: 0.47 in an autoregression of
#: coefficient 0.55, 1 where rows are sorted by class.
SERIAL, FIFTH = 0.4, 0.6
#: Rows follow time where this share of the columns does.
COLUMNS = 0.25
#: Fewest rows to look for copies, and for time.
FEWEST_ROWS, FEWEST_IN_TIME = 10, 100
#: Rows, groups counted as one, of which a model that can flag nothing is refused.
FEWEST_TO_FLAG = 3
#: New rows may equal training rows by chance where more of these equal each other.
EQUAL = 0.01


def warn_of_copies(X: Array) -> None:
    """Warn where many rows are copies of another, or alike the row before and after.

    Parameters
    ----------
    X : array of shape (n, d)
        Columns that views read. Not called where ``groups`` are passed to fit.
    """
    more = "so more new rows will be flagged than false_alarm_rate says."
    message = None
    if (share := copied_share(X)) > MANY_COPIES:
        message = NearCopiesWarning(
            f"X: {share:.0%} of the rows are copies of another row. In another fold, each "
            f"still has its twin, {more}",
            "Keep one row of each, or pass groups= to fit (one label for rows that belong "
            "together).",
            "Keep one row of each, or leave copies that follow each other out together: --stretch.",
        )
    elif (stretch := stretch_of_time(X)) > 1:
        message = NearCopiesWarning(
            "X: rows next to each other are alike, as readings in time are. Left out in another "
            f"fold, each still has its neighbours in time, {more}",
            f"Pass groups= to fit, one label for each stretch of time: np.arange({len(X)}) // "
            f"{stretch}, say. If the rows were merely sorted, shuffle them.",
            f"Leave so many rows in a row out together: --stretch {stretch}. If the rows were "
            "merely sorted, shuffle them.",
        )
    if message is not None:
        warn(message, stacklevel=4)


def copied_share(X: Array) -> float:
    """Share of rows that occur several times; 0 where that is no sign of rows written twice.

    Among categories and counts a new row may well be a copy: only tables with a measured column,
    one in which at least half of the different rows differ, are looked at.

    Parameters
    ----------
    X : array of shape (n, d)

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(200, 8))
    >>> copied_share(rows), copied_share(np.repeat(rows, 2, axis=0))
    (0.0, 1.0)
    """
    first = np.sort(X[:, 0])
    if (first[1:] > first[:-1]).all():  # no two rows are equal
        return 0.0
    rows, counts = np.unique(X, axis=0, return_counts=True)
    n, copied = len(rows), counts > 1
    if n < FEWEST_ROWS or np.count_nonzero(copied) < COPIED_SHARE * n:
        return 0.0
    often = np.bincount(counts[copied]).max() >= EQUALLY_OFTEN * np.count_nonzero(copied)
    measured = max(len(np.unique(column)) for column in rows.T) >= n / 2
    return float(counts[copied].sum() / len(X)) if often and measured else 0.0


def stretch_of_time(X: Array) -> int:
    """Rows that readings in time should be left out together with; 1 where rows are none.

    Ten times the memory of the process, 1 / (1 - c) for a correlation of c with the next row. A
    column that never turns back is a clock, or what the rows were sorted by.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows in the order of time.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(400, 3))
    >>> stretch_of_time(rows), stretch_of_time(np.cumsum(rows, axis=0))
    (1, 80)
    """
    steps = np.diff(X, axis=0)
    turns = (steps > 0).any(axis=0) & (steps < 0).any(axis=0)
    if len(X) < FEWEST_IN_TIME or not turns.any():
        return 1
    fifth = X[5:, turns] - X[:-5, turns]
    slow = np.median(steps[:, turns] ** 2, axis=0) < FIFTH * np.median(fifth**2, axis=0)
    correlation = 1.0 - 0.5 * np.mean(steps[:, turns] ** 2, axis=0) / X[:, turns].var(axis=0)
    in_time = slow & (correlation >= SERIAL)
    if np.count_nonzero(in_time) < COLUMNS * len(in_time):
        return 1
    memory = 1.0 / (1.0 - min(float(np.median(correlation[in_time])), 0.99))
    return int(max(2, min(10 * np.ceil(0.5 * memory), len(X) // 5)))


def warn_where_nothing_is_flagged(
    kernels: KernelSet | DenseStack, rule: Any, calibration: Calibration, rate: float
) -> None:
    """Warn where even a row that no kernel finds alike any other would not be flagged.

    Of fewer than three rows or groups, that is an error.

    Kernels of a distance are zero far away, so that the projection of such a row is zero. Given
    kernels are taken for such if they are never negative and every row is as much like itself.

    Parameters
    ----------
    kernels : KernelSet or DenseStack
        Kernels of the model.
    rule : Rule
        What gives scores.
    calibration : Calibration
    rate : float
    """
    if isinstance(kernels, DenseStack):
        own = np.einsum("jii->ji", kernels.kernels)
        bounded = np.ptp(own, axis=1).max() < 1e-6 * own.max() and kernels.kernels.min() >= 0.0
        far = rule.score(DenseStack(np.zeros((kernels.J, 1, kernels.n)), kernels.scale))
        advice = "The kernels are too narrow: make some in which rows are like their neighbours."
    else:
        bounded = all(
            kernel.metric is not None for view in kernels.views for kernel in view.kernels
        )
        far = np.asarray(rule.of_contributions(np.zeros((1, len(rule.weights)))))
        advice = (
            "Use decision='evidence', wider kernels (widths), or "
            "scaling='quantile' for columns with heavy tails; with contamination, which decides by "
            "the sum, fit a model without it to the rows that are not in suspects_."
        )
    if bounded and calibration.p_values(far)[0] > rate * (1 + 1e-9):
        if calibration.total < FEWEST_TO_FLAG:
            raise ValueError(
                f"groups: {calibration.total:g} rows, groups counted as one, set the threshold, "
                "and no row whatever would be flagged; expected at least 3 groups, better 19 and "
                "more. Fit without groups, or collect rows of others."
            )
        warn(
            "this model cannot flag any row: too many training rows, left out, score as low as a "
            f"row infinitely far away does. {advice}",
            CannotFlagWarning,
            stacklevel=4,
        )


def are_training_rows(kernels: KernelSet, table: Array, start: int = 0) -> bool:
    """Whether rows to judge are those learned from, in their order; ``start`` of these are before.

    To seven digits, as a file of text may have them.

    Parameters
    ----------
    kernels : KernelSet
        With the training rows.
    table : array of shape (m, d)
    start : int
        Number of training rows that came before these.
    """
    view = kernels.views[0]
    learned = view.train[start : start + len(table)]
    if len(learned) != len(table):
        return False
    return bool(np.allclose(view.transform(table), learned, rtol=1e-7, atol=1e-7))


def among_training_rows(kernels: KernelSet, table: Array, without: Sequence[str] = ()) -> Mask:
    """Which rows to judge are among those learned from, in any order, to seven digits.

    Views ``without`` which they are judged do not count. None where training rows equal each other,
    as among categories and counts: new rows may then equal them by chance.

    Parameters
    ----------
    kernels : KernelSet
        With the training rows.
    table : array of shape (m, d)
    without : sequence of str
        Views that are left out of the comparison.

    Returns
    -------
    mask of shape (m,)
    """
    first = {view.name: view for view in reversed(kernels.views) if view.name not in without}
    learned = np.hstack([view.train for view in first.values()])
    new = np.hstack([view.transform(table) for view in first.values()])
    line = np.random.default_rng(0).normal(size=learned.shape[1])  # equal rows meet on it
    order = np.argsort(learned @ line)
    learned = learned[order]
    if _equal(learned[1:], learned[:-1]).sum() > EQUAL * len(learned):
        return np.zeros(len(new), dtype=bool)
    place = np.searchsorted(learned @ line, new @ line)
    sides = (np.maximum(place - 1, 0), np.minimum(place, len(learned) - 1))
    return _equal(new, learned[sides[0]]) | _equal(new, learned[sides[1]])


def _equal(A: Array, B: Array) -> Mask:
    return np.asarray(np.isclose(A, B, rtol=1e-7, atol=1e-7).all(axis=1))


def warn_of_training_rows(stacklevel: int = 2) -> None:
    """Warn that rows which were learned from say nothing of themselves."""
    warn(
        TrainingRowsWarning(
            "X: these are the rows that the model learned from. Each vouches for itself, so none "
            "of them is flagged.",
            "fit_predict(X) judges every row by a model that did not see it; contamination= is for "
            "training rows of which some may not be normal.",
            "Judge rows that the model has not seen; kernull fit --set contamination=0.1 is for "
            "training rows of which some may not be normal.",
        ),
        stacklevel=stacklevel,
    )


# -- Which views decide, and which hardly tell one row from another. --


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
    remarks = []
    for v, name in enumerate(names.tolist()):
        if share[v] > max(MOST_SHARE, TIMES_EQUAL / len(names)):
            remarks.append(f"view {name!r} takes {100 * share[v]:.0f}% of the weight")
        kinds = _different_rows(rule.scores, name)
        if len(rule.left_out) >= 2 * FEWEST_VALUES and kinds < FEWEST_VALUES:
            remarks.append(f"view {name!r} has {kinds} different rows only")
    if remarks:
        warn(
            f"views: {'; '.join(remarks)}. A view of noise, or one that hardly varies, looks like "
            "this: compare with a model without it.",
            DominantViewWarning,
            stacklevel=2,
        )


def _different_rows(scores: TableScores | PrecomputedScores, view: str) -> int:
    """How many different rows a view has; as many as there are where only its kernels are known."""
    parts = scores.parts if isinstance(scores, TableScores) else ()
    rows = [part.view.train for part in parts if part.view.name == view]
    if not rows:
        return FEWEST_VALUES
    return len(np.unique(rows[0].round(9), axis=0))


#: Rows stand apart where tails so many times heavier than the tail inside explain them with a
#: probability below this: of 100 tables of 500 rows with Student's t (2 degrees of freedom) the
#: second lowest is 0.04 (benchmarks/suspects).
HEAVIER, BY_CHANCE = 1.5, 1e-3
#: Fewest rows to look among, and a mean spacing that is rounding.
FEWEST_TO_SUSPECT, ROUNDING = 100, 1e-9
#: Share of the rows that a cluster of outliers may have, rows that neighbours are looked for among,
#: and the largest cell whose square is a number.
SUSPECT_SHARE, NEIGHBOURS, LARGEST_CELL = 0.1, 1000, 1e100


def stand_apart(distances: Array, share: float) -> Indices:
    r"""Rows whose distances from the others lie beyond the tail of these, farthest first.

    Of logarithms :math:`t_1 \ge t_2 \ge \dots` of distances with a power-law tail, however heavy,
    the spacings :math:`l (t_l - t_{l+1})` are exponential with one mean, so that the mean of the
    first i over that of the next 3 i (at least 20) has an F distribution. Where a ratio of
    `HEAVIER` does not explain it (p below `BY_CHANCE`), the rows before the largest of the first i
    spacings stand apart. Tails of clean rows are no heavier: see benchmarks/suspects.

    Parameters
    ----------
    distances : array of shape (n,)
        Zero or more; the larger, the farther from all other rows.
    share : float
        Largest share of rows that may stand apart.

    Returns
    -------
    integer array of shape (k,)

    Examples
    --------
    >>> distances = np.linalg.norm(np.random.default_rng(0).normal(size=(200, 10)), axis=1)
    >>> len(stand_apart(distances, 0.2))
    0
    >>> distances[[3, 50, 7]] = 30.0, 20.0, 25.0
    >>> stand_apart(distances, 0.2).tolist()
    [3, 7, 50]
    """
    n, order = len(distances), np.argsort(-distances, kind="stable")
    positive = distances[distances > 0]
    first = np.arange(1, int(share * n) + 1)
    if n < FEWEST_TO_SUSPECT or len(positive) < n / 2 or not len(first):
        return order[:0]
    t = np.log(np.maximum(distances[order], positive.min()))
    spacings = np.arange(1, n) * -np.diff(t)
    total = np.append(0.0, np.cumsum(spacings))
    last = np.minimum(np.maximum(4 * first, first + 20), n - 1)
    following = (total[last] - total[first]) / (last - first)
    ratio = total[first] / first / np.maximum(following, ROUNDING)
    p = np.where(following > ROUNDING, f.sf(ratio / HEAVIER, 2 * first, 2 * (last - first)), 1.0)
    best = int(p.argmin())
    return order[: int(spacings[: first[best]].argmax()) + 1] if p[best] < BY_CHANCE else order[:0]


def warn_of_suspects(rows: TableRows, weight: Array | None) -> Indices:
    """Rows of a table that stand apart, in increasing order; warns where there are any.

    The distance of a row is that to the row that a tenth of the rows are nearer than: a cluster of
    fewer outliers is far from all others too. Columns count by the range of their middle half, or,
    where this is zero, by their whole range. Categories do not count: rare values lie far out.

    Parameters
    ----------
    rows : TableRows
        Of more than `MOST_ROWS` rows, a random sample is looked at.
    weight : array of shape (n,) or None
        Rows of weight zero are absent.
    """
    columns, values = columns_read(rows.recipe.views), rows.values
    if isinstance(values, EncodedRows) and values.encoder is not None:
        kinds, blocks = values.encoder.columns, values.encoder.blocks
        measured = [blocks[column.name][0] for column in kinds if column.kind == "number"]
        columns = columns[np.isin(columns, measured)]
    X = np.asarray(values)[:, columns] if len(columns) else np.zeros((len(values), 1))
    present = np.arange(len(X)) if weight is None else np.flatnonzero(weight > 0)
    present = present[sampling_order(row_keys(X[present]))[:MOST_ROWS]]
    X = X[present]
    spread = np.subtract(*np.quantile(X, [0.75, 0.25], axis=0))
    spread = np.where(spread > 0, spread, np.ptp(X, axis=0))
    Z = np.clip(X / np.where(spread > 0, spread, 1.0), -LARGEST_CELL, LARGEST_CELL)
    others = Z[:NEIGHBOURS]
    k = min(int(np.ceil(SUSPECT_SHARE * len(others))), len(others) - 1)
    distances = np.partition(cdist(Z, others), k, axis=1)[:, k]
    apart = np.sort(present[stand_apart(distances, 2 * SUSPECT_SHARE)])
    if len(apart):
        share = np.ceil(100 * len(apart) / len(present)) / 100
        fact = (
            f"X: {len(apart):,} of {len(present):,} rows stand apart from all others, and are "
            "learned from as normal rows: others like them may not be flagged."
        )
        do = "Look at them; if they are not normal, drop them and fit again, or"
        warn(
            SuspectRowsWarning(
                fact,
                f"suspects_ has their positions. {do} pass contamination={share:g}.",
                f"{do} say --contamination {share:g}.",
            ),
            stacklevel=4,
        )
    return apart

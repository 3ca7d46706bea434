"""What is said where a threshold is not what it seems: copies, and rows that cannot be flagged."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import FEWEST_VALUES, Calibration
from kernull.detector.evidence import EvidenceRule, TableScores
from kernull.detector.given import GivenScores
from kernull.errors import (
    CannotFlagWarning,
    DominantViewWarning,
    NearCopiesWarning,
    TooFewRowsWarning,
    TrainingRowsWarning,
    warn,
)
from kernull.kernels import squared_blocks
from kernull.operators.dense import DenseStack
from kernull.views.kernel_set import KernelSet

#: Share of copies from which to warn. Their scores say nothing: a share s leaves a rate of
#: rate / (1 - s).
MANY_COPIES = 0.2
#: Copies are of at least this share of the different rows, else they are values that a machine at
#: rest has; and this share of those is there equally often, else they were drawn from few things.
COPIED_SHARE, EQUALLY_OFTEN = 0.05, 0.6
#: A column is read in time where it is so correlated with the next row, and its squared step there
#: at most this share of the one to the fifth (rows sorted by class are as near to both).
SERIAL, FIFTH = 0.4, 0.6
#: Rows are readings in time where this share of the columns is and, by these columns, this share
#: of the rows has its nearest beside it, so many times what chance gives.
COLUMNS, NEXT, TIMES_CHANCE = 0.25, 0.25, 3.0
#: New rows may equal training rows by chance where more of these equal each other.
EQUAL = 0.01
#: Fewest rows to look for any of that, and how many are looked at for their nearest one.
FEWEST, ROWS = 10, 300
#: Rows this near in the table are next to each other; distances that differ by less tie.
BESIDE, TIED = 2, 1e-9
SO_MORE = "so more new rows will be flagged than false_alarm_rate says."


def warn_of_copies(kernels: KernelSet, groups: Indices | None, rate: float) -> None:
    """Warn where many rows are copies of another, or alike the row before or after.

    Whoever gives ``groups``, to be left out together, knows of copies; that the groups are long
    enough is seen.
    """
    first = {view.name: view.train for view in reversed(kernels.views)}
    Z = np.hstack(list(first.values()))
    if groups is None and (share := copied_share(Z)) > MANY_COPIES:
        said = NearCopiesWarning(
            f"X: {share:.0%} of the rows are copies of another row. In another fold, each "
            f"still has its twin, {SO_MORE}",
            "Keep one row of each, or pass groups= to fit (one label for rows that belong "
            "together).",
            "Keep one row of each, or leave copies that follow each other out together: --stretch.",
        )
        warnings.warn(said, stacklevel=4)
    elif len(Z) >= FEWEST and (serial := _serial_in_any_scaling(kernels, groups)) >= SERIAL:
        _warn_of_readings(serial, np.arange(len(Z)) if groups is None else groups, rate)


def warn_of_few_that_count(weight: Array, rate: float) -> None:
    r"""Warn where weights are so unequal that the rows are worth too few for the rate.

    Rows of weights w are worth :math:`(\sum w)^2 / \sum w^2` rows of equal weight.
    """
    worth = float(weight.sum() ** 2 / (weight**2).sum())
    if worth < len(weight) / 2 and worth * rate * (1 + 1e-9) < 1.0 <= len(weight) * rate:
        warnings.warn(
            f"sample_weight: the weights are so unequal that {len(weight):,} rows are worth "
            f"{worth:.0f} of equal weight, too few for false_alarm_rate={rate:g}: the share of "
            "normal rows that is flagged may be several times that. Use weights that differ less.",
            TooFewRowsWarning,
            stacklevel=5,
        )


def copied_share(Z: Array) -> float:
    """Share of rows that are there several times; 0 where that is no sign of rows written twice.

    Among categories and counts a new row may well be a copy: only tables with a measured column,
    one in which at least half of the different rows differ, are looked at.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(200, 8))
    >>> copied_share(rows), copied_share(np.repeat(rows, 2, axis=0))
    (0.0, 1.0)
    """
    first = np.sort(Z[:, 0])
    if (np.diff(first) > 0).all():  # no two rows are equal
        return 0.0
    rows, counts = np.unique(Z, axis=0, return_counts=True)
    n, copied = len(rows), counts > 1
    if n < FEWEST or np.count_nonzero(copied) < COPIED_SHARE * n:
        return 0.0
    often = np.bincount(counts[copied]).max() >= EQUALLY_OFTEN * np.count_nonzero(copied)
    measured = max(len(np.unique(column)) for column in rows.T) >= n / 2
    return float(counts[copied].sum() / len(Z)) if often and measured else 0.0


def next_is_nearest_share(Z: Array) -> tuple[float, float]:
    """Share of rows whose nearest one is at most two rows away in the table, and by chance.

    Rows that have one as near elsewhere, as categories have, do not count. Of more than `ROWS` rows
    a random draw stands for all.

    Examples
    --------
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=(200, 8)), axis=0)
    >>> share, chance = next_is_nearest_share(walk)
    >>> share > 0.9, round(chance, 2)
    (True, 0.02)
    """
    n = len(Z)
    pick = np.arange(n)
    if n > ROWS:
        pick = np.random.default_rng(0).choice(n, ROWS, replace=False)
    squared = squared_blocks(Z - Z.mean(axis=0))(pick, slice(None))
    squared[np.arange(len(pick)), pick] = np.inf
    beside = np.abs(np.arange(n) - pick[:, None]) <= BESIDE
    elsewhere = np.where(beside, np.inf, squared).min(axis=1)
    nearest = np.where(beside, squared, np.inf).min(axis=1)
    return float(np.mean(nearest < (1.0 - TIED) * elsewhere)), min(2.0 * BESIDE / (n - 1), 1.0)


def _serial_in_any_scaling(kernels: KernelSet, groups: Indices | None) -> float:
    """The largest `_serial_correlation`: what follows a daily cycle is alike once decorrelated.

    Not where rows were sorted by a column, which decorrelated ones are mixed with.
    """
    scaled: dict[str, list[Array]] = {}
    for view in kernels.views:
        scaled.setdefault(view.scaling, []).append(view.train)
    tables = (np.hstack(parts) for parts in scaled.values())
    first = next(tables)
    found = _serial_correlation(first, groups)
    others = max((_serial_correlation(Z, groups) for Z in tables), default=0.0)
    if others > found:
        steps = np.diff(first, axis=0)
        if ((steps < 0).any(axis=0) == (steps > 0).any(axis=0)).all():
            return others
    return found


def _serial_correlation(Z: Array, groups: Indices | None) -> float:
    """Correlation of scaled rows with the next one, where they are readings in time; else zero.

    A column that never turns back is what the rows were sorted by, or a clock: it says nothing.
    Where rows of one group and the next are not correlated, groups do not follow each other.
    """
    centred = Z - Z.mean(axis=0)
    correlation = _next_correlation(centred, slice(None))
    if not (correlation >= SERIAL).any():
        return 0.0
    steps = np.diff(Z, axis=0)
    turns = (steps > 0).any(axis=0) & (steps < 0).any(axis=0)
    Z, centred, correlation = Z[:, turns], centred[:, turns], correlation[turns]
    in_time = (correlation >= SERIAL) & (_squared_steps(Z, 1) <= FIFTH * _squared_steps(Z, 5))
    if np.count_nonzero(in_time) < max(1.0, COLUMNS * len(in_time)):
        return 0.0
    if groups is not None:
        between = np.flatnonzero(groups[1:] != groups[:-1])
        across = _next_correlation(centred[:, in_time], between)
        if len(between) == 0 or np.median(across) < SERIAL:
            return 0.0
    share, chance = next_is_nearest_share(Z[:, in_time])
    found = share >= max(NEXT, TIMES_CHANCE * chance)
    return float(np.median(correlation[in_time])) if found else 0.0


def _squared_steps(Z: Array, rows: int) -> Array:
    """Mean squared difference of each column to the row so many rows on."""
    return np.asarray(np.mean(np.square(Z[rows:] - Z[:-rows]), axis=0))


def _next_correlation(centred: Array, rows: Any) -> Array:
    """Correlation of some rows with the next, of each column."""
    first, second = centred[:-1][rows], centred[1:][rows]
    squares = np.einsum("nd,nd->d", first, first) + np.einsum("nd,nd->d", second, second)
    products = 2.0 * np.einsum("nd,nd->d", first, second)
    return np.asarray(products / np.maximum(squares, np.finfo(float).tiny))


def _warn_of_readings(serial: float, groups: Indices, rate: float) -> None:
    r"""Warn where a row that is left out still has its neighbours in time, or rows are too few.

    With a correlation of c from one row to the next, that of a row with the nearest one outside
    its group, d rows away, is :math:`c^d`: groups are long enough where its mean is small. n rows
    are worth :math:`n (1 - c) / (1 + c)` independent ones (as in an autoregression of order one),
    whichever are left out together, and fewer than 1 / rate cannot show what the rate is.
    """
    n, alone = len(groups), len(np.unique(groups)) == len(groups)
    length = n / (1 + np.count_nonzero(groups[1:] != groups[:-1]))
    stretch = min(10 * int(np.ceil(0.5 / (1.0 - min(serial, 0.99)))), n // 5)
    short = length < stretch and np.mean(serial ** _steps_to_other_groups(groups)) >= SERIAL
    alike = (
        f"X: rows next to each other are alike (correlation {serial:.2f} from one to the next), as "
        "readings in time are."
    )
    worth = n * (1.0 - serial) / (1.0 + serial)
    few = (
        f"{n:,} such rows are worth about {max(worth, 1.0):.0f} independent ones, too few for "
        f"false_alarm_rate={rate:g}: however they are left out, the share of normal rows that is "
        "flagged may be several times that, or none. Collect rows over a longer time."
    )
    few = few if worth * rate < 1.0 else ""
    if short:
        how = (
            "in another fold, each still has its"
            if alone
            else "in groups so short, most still have"
        )
        sort = "If the rows were merely sorted, shuffle them."
        said = NearCopiesWarning(
            f"{alike} Left out {how} neighbours in time, {SO_MORE}",
            "Pass groups= to fit, one label for each stretch of time: "
            f"np.arange({n}) // {stretch}, say. {sort} {few}".strip(),
            f"Leave so many rows in a row out together: --stretch {stretch}. {sort} {few}".strip(),
        )
        warnings.warn(said, stacklevel=5)
    elif few:
        warnings.warn(f"{alike} {few}", TooFewRowsWarning, stacklevel=5)


def _steps_to_other_groups(groups: Indices) -> Array:
    """Rows from each to the nearest one of another group, in the order of the table.

    Examples
    --------
    >>> _steps_to_other_groups(np.array([0, 0, 0, 1, 1, 1, 1, 0])).tolist()
    [3.0, 2.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0]
    """
    last = np.flatnonzero(groups[1:] != groups[:-1])  # row of each run of one group but the last
    place = np.arange(len(groups))
    run = np.searchsorted(last, place)
    before = place - np.append(-np.inf, last)[run]
    return np.asarray(np.minimum(before, np.append(last + 1, np.inf)[run] - place))


def warn_where_nothing_is_flagged(
    kernels: KernelSet | DenseStack, rule: Any, calibration: Calibration, rate: float
) -> None:
    """Warn where even a row that no kernel finds alike any other would not be flagged.

    Kernels of a distance are zero far away, so that the projection of such a row is zero. Given
    kernels are taken for such if they are never negative and every row is as much like itself.
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
        far = np.asarray(rule.projection_to_score(np.zeros(1)))
        advice = (
            "Use decision='evidence', wider kernels (widths), or "
            "scaling='quantile' for columns with heavy tails; with contamination, which decides by "
            "the sum, fit a model without it to the rows that are not in suspects_."
        )
    if bounded and calibration.p_values(far)[0] > rate * (1 + 1e-9):
        warn(
            "this model cannot flag any row: too many training rows, left out, score as low as a "
            f"row infinitely far away does. {advice}",
            CannotFlagWarning,
            stacklevel=4,
        )


def are_training_rows(kernels: KernelSet, table: Array, start: int = 0) -> bool:
    """Whether rows to judge are those learned from, in their order; ``start`` of these are before.

    To seven digits, as a file of text may have them.
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


def warn_of_training_rows(kernels: KernelSet, table: Array) -> None:
    """Warn where rows to judge, as many as were learned from, are these in their order."""
    if are_training_rows(kernels, table):
        tell_training_rows(stacklevel=4)


def tell_training_rows(stacklevel: int = 2) -> None:
    """Warn that rows which were learned from say nothing of themselves."""
    warnings.warn(
        TrainingRowsWarning(
            "X: these are the rows that the model learned from. Each vouches for itself, so none "
            "of them is flagged.",
            "fit_predict(X) judges every row by a model that did not see it; contamination= is for "
            "training rows of which some may not be normal.",
            "Judge rows that the model has not seen; kernull fit --contamination is for training "
            "rows of which some may not be normal.",
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

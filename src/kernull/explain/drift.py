r"""Whether rows, taken together, are still those that a model learned from.

Of the scores of m left-out rows and of k new rows from the same population every order is equally
likely, whatever the data. So the mean of the p-values of the new rows, which are their ranks among
the left-out rows divided by m + 1, has

.. math:: E = \tfrac12, \qquad \mathrm{Var} \le \frac{m + k + 1}{12\, m k}

(Mann and Whitney), and the number of new rows below the j-th lowest of the left-out rows is at
least c with the probability that of the c + j - 1 lowest rows of both at most j - 1 are left-out
rows, which is hypergeometric. Both take into account that the left-out rows are few: a test that
took p-values for independent uniform numbers would find drift in unchanged rows once k is beyond m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import hypergeom, norm

from kernull._typing import Array, Mask
from kernull.detector.calibration import Calibration
from kernull.explain.columns import plain_number
from kernull.tables import GapFiller, Table, TableViews
from kernull.tables.cells import as_text

#: Share of the left-out rows that counts as low.
LOW = 0.05
#: Columns that drift, and bars of their small plots, at most.
DRIFTING, MINI_BINS = 10, 20
#: Values that stand for the training rows in the small plots.
SPREAD = 1000


@dataclass(frozen=True)
class RankTest:
    """How rows, taken together, rank among left-out rows.

    Attributes
    ----------
    p_value : float
        Probability that new normal rows rank as low as these, on average or at the low end.
    rows, left_out : int
        Number of rows, and of the left-out rows that they are ranked among.
    low : int
        Rows that are among the lowest, `share` of new normal rows.
    share : float
        About `LOW`.
    """

    p_value: float
    rows: int
    left_out: int
    low: int
    share: float


def rank_test(p_values: Array, calibration: Calibration) -> RankTest:
    """Test whether rows rank lower among left-out rows than new normal rows would.

    Only lower: where columns have few values, left-out rows have one copy less in the model than
    new rows, which rank higher by that. Rows of the training set that are weighted count as their
    effective number.

    Parameters
    ----------
    p_values : array of shape (k,)
        Of rows that are judged independently of each other; at least one.
    calibration : Calibration
        The left-out rows that the p-values are of.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> calibration = Calibration.of(rng.normal(size=200), smooth=True)
    >>> same, lower = rng.normal(size=100), rng.normal(-0.7, 1.0, size=100)
    >>> [rank_test(calibration.p_values(s), calibration).p_value < 0.01 for s in (same, lower)]
    [False, True]
    """
    weight = np.diff(calibration.counts, prepend=0.0)
    m, k = max(round(float(weight.sum() ** 2 / np.square(weight).sum())), 1), len(p_values)
    deviation = (0.5 - float(np.mean(p_values))) / np.sqrt((m + k + 1) / (12.0 * m * k))
    lowest = max(int(LOW * (m + 1)), 1)
    share = lowest / (m + 1)
    low = int(np.count_nonzero(p_values <= share * (1 + 1e-9)))
    at_low_end = hypergeom.cdf(lowest - 1, m + k, m, low + lowest - 1) if low else 1.0
    both = 2.0 * min(float(norm.sf(deviation)), float(at_low_end))  # Bonferroni
    return RankTest(min(both, 1.0), k, m, low, share)


@dataclass(frozen=True)
class Drift:
    """One column in training and new rows."""

    column: str
    words: str
    distance: float  #: Largest difference of the shares of rows up to a value, or of values.
    edges: tuple[str, ...]
    training: tuple[float, ...]
    new: tuple[float, ...]


def drifts(
    table: TableViews,
    rows: Table,
    absent: Sequence[str] = (),
    share: float = 1e-3,
    filler: GapFiller | None = None,
) -> tuple[Drift, ...]:
    """Columns whose values, or empty cells, differ most from the training rows', beyond chance.

    ``share`` is that of the columns that chance alone makes differ so much, at most. ``filler`` is
    that of the training rows that count, where the table's has suspects among them.
    """
    filler = table.filler_ if filler is None else filler
    rows = rows.emptied(tuple(table.empty))
    empty_in_training = {column.name: column.missing for column in table.columns_}
    beyond = []
    for column in table.used_:
        if column not in rows.columns or column in absent:
            continue
        values, places = table.category_values(column), table.blocks_[table.used_.index(column)]
        found: Drift | None = None
        if values is None and len(places) == 1:
            new, empty, _ = rows.parse(column)
            found = _number_drift(column, filler, places[0], new[np.isfinite(new)], share)
        else:
            texts = as_text(rows.columns[column])
            empty = np.array([text is None for text in texts])
            if values is not None:  # no date
                found = _category_drift(table, column, values, texts, filler.rows, share)
        gaps = _gap_drift(column, empty, empty_in_training[column], table.filler_.rows, share)
        both = sorted((d for d in (gaps, found) if d is not None), key=lambda d: -d.distance)
        if both:
            beyond.append(replace(both[0], words="; ".join(drift.words for drift in both)))
    return tuple(sorted(beyond, key=lambda drift: -drift.distance)[:DRIFTING])


def _gap_drift(column: str, empty: Mask, before: int, rows: int, share: float) -> Drift | None:
    """Whether the share of empty cells differs from that of ``before`` among the training rows."""
    now, count = int(empty.sum()), len(empty)
    if count < 5:
        return None
    new, training = now / count, before / rows
    if abs(new - training) < _chance(rows, count, share):
        return None
    return Drift(
        column, f"empty in {now:,} of {count:,} rows; {before:,} of {rows:,} in training",
        abs(new - training), ("empty", "not empty"), (training, 1 - training), (new, 1 - new),
    )  # fmt: skip


def _number_drift(
    column: str, filler: GapFiller, j: int, new: Array, share: float = 1e-3
) -> Drift | None:
    if len(new) < 5:
        return None
    old = filler.quantiles[:, j]
    old, new = _seven_digits(old, old), _seven_digits(new, old)
    levels = np.linspace(0.0, 1.0, len(old))
    ordered = np.sort(new)
    # The Kolmogorov-Smirnov distance, with the training rows known by their quantiles.
    distance = _apart(old, levels, ordered)
    if distance < _chance(filler.rows, len(new), share):
        return None
    least, most = min(old[0], ordered[0]), max(old[-1], ordered[-1])
    low, high = least, most
    if np.ptp(old) > 0 and (high - low) > 6 * np.ptp(old):  # far values would flatten the rest
        low = max(least, old[0] - 2.5 * np.ptp(old))
        high = min(most, old[-1] + 2.5 * np.ptp(old))
    edges = np.linspace(low, high, MINI_BINS + 1)
    training = np.histogram(np.clip(_spread_out(old), low, high), edges)[0] / SPREAD
    inside = np.histogram(np.clip(new, low, high), edges)[0] / len(new)
    middle, now = plain_number(float(old[len(old) // 2])), plain_number(float(np.median(new)))
    words = f"median {now}, {middle} in training"
    if middle == now:
        middle, now = plain_number(float(old.mean())), plain_number(float(new.mean()))
        words = f"mean {now}, {middle} in training"
    words += f"; the first bar begins at {plain_number(least)}" if least < low else ""
    words += f"; the last bar goes on to {plain_number(most)}" if most > high else ""
    edges[0], edges[-1] = least, most
    return Drift(
        column, words, distance,
        tuple(plain_number(float(edge)) for edge in edges), tuple(training.tolist()),
        tuple(inside.tolist()),
    )  # fmt: skip


def _seven_digits(values: Array, old: Array) -> Array:
    """Values as exact as quantiles are kept: equal ones stay equal."""
    unit = 1e-6 * float(np.abs(old).max()) or 1.0
    return np.asarray(np.round(values / unit) * unit)


def _apart(old: Array, levels: Array, new: Array) -> float:
    """The Kolmogorov-Smirnov distance at least, of sorted rows from others known by quantiles.

    Between two quantiles the share of training rows up to a value is known within bounds only, and
    values that many rows share make steps: what lies within the bounds is no difference.
    """
    last = len(levels) - 1
    found = 0.0
    for side in ("left", "right"):  # shares below a value, and up to it
        share = np.searchsorted(new, new, side=side) / len(new)
        at = np.searchsorted(old, new, side=side)
        low, high = levels[np.maximum(at - 1, 0)], levels[np.minimum(at, last)]
        low = np.where(at == 0, 0.0, low)
        high = np.where(at == 0, 0.0, np.where(at > last, 1.0, high))
        found = max(found, float(np.maximum(share - high, low - share).max()))
    return found


def _spread_out(old: Array) -> Array:
    """As many values as `SPREAD` that have these quantiles; shared values stay shared."""
    whole = np.interp(np.linspace(0.0, 1.0, SPREAD), np.linspace(0.0, 1.0, len(old)), old)
    if len(np.unique(old)) < len(old) // 2:  # few values: nothing lies between them
        whole = old[np.abs(old[None, :] - whole[:, None]).argmin(axis=1)]
    return np.asarray(whole)


def _category_drift(
    table: TableViews,
    column: str,
    values: tuple[str, ...],
    texts: list[str | None],
    rows: int,
    share: float,
) -> Drift | None:
    filled = [text for text in texts if text is not None]
    if len(filled) < 5:
        return None
    counts = table.category_counts(column)
    training = np.array([*counts, 0], dtype=float) / max(sum(counts), 1)
    index = {value: i for i, value in enumerate(values)}
    codes = [index.get(text, len(values)) for text in filled]
    new = np.bincount(codes, minlength=len(values) + 1) / len(filled)
    distance = float(np.abs(training - new).sum() / 2)
    if distance < _chance(rows, len(filled), share) * np.sqrt(len(values) / 2):
        return None
    v = int(np.abs(training - new).argmax())
    name = values[v] if v < len(values) else "other values"
    shown = [*values, "other values"] if new[-1] else list(values)
    return Drift(
        column, f"{name}: {new[v]:.0%} of the rows, {training[v]:.0%} in training", distance,
        tuple(shown), tuple(training[: len(shown)].tolist()), tuple(new[: len(shown)].tolist()),
    )  # fmt: skip


def _chance(n: int, m: int, share: float) -> float:
    """A distance that two samples of one population exceed with this probability (Smirnov)."""
    return float(np.sqrt(-0.5 * np.log(share / 2) * (1.0 / max(n, 1) + 1.0 / max(m, 1))))

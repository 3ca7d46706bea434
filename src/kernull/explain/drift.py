r"""Whether rows, taken together, are still those that a model learned from.

Of m training rows and k new rows of one population every order is equally likely, whatever the
data. So the ranks of new rows among the training rows, as shares u of these, have a mean u with

.. math:: E = \tfrac12, \qquad \mathrm{Var} \le \frac{m + k + 1}{12\, m k}

(Mann and Whitney), and so has \|2 u - 1\|, their distance from the middle. A number of one kind of
rows among both is hypergeometric. What is tested, at `SCORE_LEVEL` or `LEVEL`:

* scores among left-out rows: their mean rank, and the number below the j-th lowest of these;
* columns of numbers: the mean rank, and the mean distance from the middle (spread);
* categories and empty cells: the share of each value.

Training rows are few too, which the tests take into account: a test that took p-values for
independent uniform numbers would report drift of unchanged rows once k is beyond m.

Rows of a group count as one row, and new rows as if they came in groups as large: where readings in
time were left out in stretches of 10, 500 new ones count as 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import hypergeom, norm

from kernull._typing import Array, Indices
from kernull.detector.calibration import Calibration
from kernull.explain.columns import plain_number
from kernull.tables import Table, TableViews
from kernull.tables.cells import as_text
from kernull.tables.encoder import category_codes
from kernull.tables.table import Source

#: Probability that chance alone makes the columns of a batch differ, and its scores. Left-out rows
#: rank as new ones but for a little: of five categories the mean p-value of new rows is 0.48
#: (benchmarks/drift).
LEVEL, SCORE_LEVEL = 1e-4, 1e-6
#: Share of the left-out rows that counts as low.
LOW = 0.05
#: New rows may rank low more often than left-out ones by this share: of a table of five
#: categories up to 7.6% of new rows lie below the lowest 5% (benchmarks/drift).
LOW_SLACK = 0.5
#: Columns that drift, bars of their small plots, and columns that the line names, at most.
DRIFTING, MINI_BINS, NAMED = 10, 20, 3
#: Rows drawn to compare columns: shares of so many are exact to 2%, whatever the table's size.
SAMPLE = 10_000
#: Rows that were learned from, and their share, from which on ranks mean nothing.
LEARNED, LEARNED_SHARE = 3, 0.05


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
    new rows, which rank higher by that.

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
    m, k = max(round(calibration.total), 1), _count(len(p_values), calibration)
    deviation = (0.5 - float(np.mean(p_values))) / np.sqrt((m + k + 1) / (12.0 * m * k))
    lowest = max(int(LOW * (m + 1)), 1)
    share = lowest / (m + 1)
    low = int(np.count_nonzero(p_values <= share * (1 + 1e-9)))
    few = int(low * k / len(p_values) - LOW_SLACK * share * k)
    at_low_end = hypergeom.cdf(lowest - 1, m + k, m, few + lowest - 1) if few > 0 else 1.0
    both = 2.0 * min(float(norm.sf(deviation)), float(at_low_end))  # Bonferroni
    return RankTest(min(both, 1.0), len(p_values), m, low, share)


def _count(rows: int, calibration: Calibration | None) -> int:
    """Number of rows, those of a group counted as one."""
    if calibration is None:
        return rows
    return max(round(rows * calibration.total / len(calibration.scores)), 1)


@dataclass(frozen=True)
class Drift:
    """One column in training and new rows.

    Attributes
    ----------
    column, words : str
        Name, and what differs.
    distance : float
        Size, from 0 to 1. Of categories and gaps, the share of rows that have another value. Of
        numbers, how much more often a new one lies above a training row than below, or the same of
        their distances from the middle, twice.
    edges : tuple of str
        Ends of the bars, or names of values.
    training, new : tuple of float
        Shares of rows by bar.
    """

    column: str
    words: str
    distance: float
    edges: tuple[str, ...]
    training: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def line(self) -> str:
        """What differs, with the size."""
        return f"{self.words}; size {self.distance:.2f}"


def drifts(
    table: TableViews,
    rows: Table,
    absent: Sequence[str] = (),
    level: float = LEVEL,
    filler: Any = None,
    calibration: Calibration | None = None,
) -> tuple[Drift, ...]:
    """Columns whose values, or empty cells, differ from the training rows', largest first.

    Parameters
    ----------
    table : TableViews
    rows : Table
    absent : sequence of str
        Columns that are not looked at.
    level : float
        Probability that chance alone makes any column differ, at most.
    filler : object with quantiles and rows, optional
        What training rows are like, where not that of the table: without suspects, say.
    calibration : Calibration, optional
        Says how many rows count as one.
    """
    filler = table.filler_ if filler is None else filler
    rows = rows.emptied(tuple(table.empty))
    kinds = {column.name: column for column in table.columns_}
    counts = _count(filler.rows, calibration), _count(len(rows), calibration)
    level /= 2 * max(len(table.used_), 1)  # Bonferroni: of each column, its values and its gaps
    moved = []
    for name, places in zip(table.used_, table.blocks_, strict=True):
        if name not in rows.columns or name in absent:
            continue
        column, drift = kinds[name], None
        if column.kind == "number":
            cells, empty, _ = rows.parse(name)
            drift = number_drift(name, filler.quantiles[:, places[0]], cells, counts, level)
        else:
            texts = as_text(rows.columns[name])
            empty = np.array([text is None for text in texts])
        if column.kind == "category":
            codes = category_codes(texts, column.values)
            new = np.bincount(codes[codes >= 0], minlength=len(column.values) + 1)
            names = (*column.values, "other values")
            drift = _share_drift(name, names, np.array([*column.counts, 0]), new, counts, level)
        before = np.array([column.missing, table.filler_.rows - column.missing])
        now = np.array([empty.sum(), (~empty).sum()])
        gaps = _share_drift(name, ("empty", "not empty"), before, now, counts, level)
        both = sorted((d for d in (gaps, drift) if d is not None), key=lambda d: -d.distance)
        if both:
            moved.append(replace(both[0], words="; ".join(each.words for each in both)))
    return tuple(sorted(moved, key=lambda drift: -drift.distance)[:DRIFTING])


def _share_drift(
    name: str,
    values: tuple[str, ...],
    before: Indices,
    now: Indices,
    counts: tuple[int, int],
    level: float,
) -> Drift | None:
    """Drift of the shares of values; None where chance may explain it. Of two, one is tested."""
    m, k = counts
    training, new = (part / max(part.sum(), 1) for part in (before, now))
    with_it = np.round(k * new)
    both = with_it + np.round(m * training)
    low = hypergeom.cdf(with_it, m + k, both, k)
    p = 2.0 * np.minimum(low, hypergeom.sf(with_it - 1, m + k, both, k))
    apart = np.abs(training - new)
    v = int(np.lexsort([-apart, p])[0])
    if not now.sum() or p[v] * max(len(values) - 1, 1) > level:
        return None
    words = f"{values[v]}: {new[v]:.0%} of the rows, {training[v]:.0%} in training"
    shares = tuple(training.tolist()), tuple(new.tolist())
    return Drift(name, words, float(apart.sum() / 2), values, *shares)


def number_drift(
    name: str, old: Array, cells: Array, counts: tuple[int, int], level: float = LEVEL
) -> Drift | None:
    """Drift of a column of numbers; None where chance may explain it.

    Parameters
    ----------
    name : str
    old : array of shape (q,)
        Quantiles of the training rows.
    cells : array of shape (k,)
        NaN where a cell is empty.
    counts : (int, int)
        Training rows, and new rows.
    level : float
    """
    unit = 1e-6 * float(np.abs(old).max()) or 1.0  # values as exact as quantiles are kept
    old, new = (np.round(part / unit) * unit for part in (old, cells[np.isfinite(cells)]))
    if not len(new):
        return None
    distance, (m, k) = _moved(old, new), counts
    # Shares of training rows up to a value are known to one step between quantiles.
    chance = norm.isf(level / 4.0) * np.sqrt((m + k + 1) / (3.0 * m * k))
    if distance < chance + 2.0 / len(old):
        return None
    least, most = min(old[0], new.min()), max(old[-1], new.max())
    low, high = least, most
    if np.ptp(old) > 0 and (high - low) > 6 * np.ptp(old):  # far values would flatten the others
        low = max(least, old[0] - 2.5 * np.ptp(old))
        high = min(most, old[-1] + 2.5 * np.ptp(old))
    edges = np.linspace(low, high, MINI_BINS + 1)
    bars = [np.histogram(np.clip(part, low, high), edges)[0] / len(part) for part in (old, new)]
    for what, of in (("median", np.median), ("mean", np.mean), ("deviation", np.std)):
        now, before = plain_number(float(of(new))), plain_number(float(of(old)))
        words = f"{what} {now}, {before} in training"
        if now != before:
            break
    words += f"; the first bar begins at {plain_number(least)}" if least < low else ""
    words += f"; the last bar goes on to {plain_number(most)}" if most > high else ""
    edges[0], edges[-1] = least, most
    ends = tuple(plain_number(float(edge)) for edge in edges)
    return Drift(name, words, distance, ends, *(tuple(bar.tolist()) for bar in bars))


def _moved(old: Array, new: Array) -> float:
    """How far new rows rank from training rows: 0 as these do, 1 beyond all or all in the middle.

    Examples
    --------
    >>> old = np.arange(101.0)
    >>> _moved(old, old), _moved(old, old + 200), round(_moved(old, old + 20), 2)
    (0.0, 1.0, 0.36)
    """
    ranks = [
        (np.searchsorted(old, part, "left") + np.searchsorted(old, part, "right")) / len(old) - 1
        for part in (old, new)
    ]
    spread = np.abs(ranks[1]).mean() - np.abs(ranks[0]).mean()
    return float(max(abs(ranks[1].mean() - ranks[0].mean()), 2.0 * abs(spread)))


class DriftCheck:
    """P-values of rows that come in chunks, and a sample of the rows for their columns.

    Parameters
    ----------
    table : TableViews
    calibration : Calibration
        The left-out rows that p-values are of.
    absent : sequence of str
        Columns that the rows need not have.
    filler : object with quantiles and rows, optional
        What training rows are like, where not that of the table.
    """

    def __init__(
        self, table: TableViews, calibration: Calibration, absent: Any = (), filler: Any = None
    ) -> None:
        self.table, self.calibration, self.absent, self.filler = table, calibration, absent, filler
        self.p_values: list[Array] = []
        self.learned = 0  # rows that the model learned from
        self.sample: list[tuple[Table, Array]] = []
        self.random = np.random.default_rng(0)

    def see(self, rows: Table, p_values: Array, learned: int) -> None:
        """Take in rows, the p-values of those that have a rank, and how many were learned from."""
        self.p_values.append(p_values)
        self.learned += learned
        whole = np.ones(len(rows), dtype=bool)
        whole[list(rows.broken)] = False
        # The rows with the smallest of random keys are a uniform sample of all that came.
        self.sample.append((rows.rows(whole), self.random.random(int(whole.sum()))))
        keys = np.concatenate([keys for _, keys in self.sample])
        if len(keys) > SAMPLE:
            last = np.partition(keys, SAMPLE - 1)[SAMPLE - 1]
            self.sample = [(part.rows(k <= last), k[k <= last]) for part, k in self.sample]

    def result(self) -> dict[str, Any]:
        """The verdict on all rows, for JSON; ``words`` is the line."""
        parts = [rows for rows, _ in self.sample]
        rows = Source("", tuple(parts[0].names), iter([(part, 0) for part in parts])).read()
        moved = drifts(self.table, rows, self.absent, LEVEL, self.filler, self.calibration)
        columns = [{"column": d.column, "distance": d.distance, "words": d.words} for d in moved]
        named = "; ".join(f"{drift.column} ({drift.line})" for drift in moved[:NAMED])
        p_values = np.concatenate(self.p_values)
        if not len(p_values):
            words = "Drift: no row was judged." + f" Columns moved: {named}." * bool(named)
            drifted = {"drifted": True, "columns": columns} if columns else {"drifted": None}
            return drifted | {"words": words}
        test = rank_test(p_values, self.calibration)
        known = self.learned >= max(LEARNED, LEARNED_SHARE * test.rows)
        return {
            "drifted": None if known else test.p_value < SCORE_LEVEL or bool(columns),
            "p_value": None if known else test.p_value,
            "rows": test.rows,
            "learned_rows": self.learned,
            "left_out_rows": test.left_out,
            "low": test.low,
            "low_expected": test.rows * test.share,
            "columns": columns,
            "words": _of_learned(self.learned, test, named) if known else _words(test, named),
        }


def _of_learned(learned: int, test: RankTest, named: str) -> str:
    """No verdict on ranks, because of rows that were learned from."""
    words = (
        f"Drift: unknown, since {learned:,} of these {test.rows:,} rows are among those "
        "that the model learned from, which rank as nothing new would. Score new rows alone."
    )
    return words + f" Columns moved even so: {named}." * bool(named)


def _words(test: RankTest, named: str) -> str:
    rows = "this row ranks" if test.rows == 1 else f"these {test.rows:,} rows rank"
    p = f"p = {test.p_value:.2g}" if test.p_value >= 1e-9 else "p < 1e-9"
    if test.p_value < SCORE_LEVEL:
        words = (
            f"Drift: taken together, {rows} lower among {test.left_out:,} left-out rows than new "
            f"normal rows would ({p}); {test.low:,} are among the lowest {test.share:.1%}, where "
            f"about {test.rows * test.share:.0f} would be."
        )
        return f"{words} Moved most: {named}." if named else f"{words} No column moved by itself."
    words = f"taken together, {rows} among left-out rows as new normal rows would ({p})"
    moved = f"Drift: columns moved: {named}. Yet {words}."
    return moved if named else f"No drift: {words}, and no column moved."

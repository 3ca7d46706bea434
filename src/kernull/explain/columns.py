r"""Which columns make a row stand out: scored again with each replaced by what the others predict.

For a row x and a set S of columns, :math:`x^{S}` is x with the cells in S replaced by their
conditional mean, from the other cells (`kernull.detector.usual.UsualValues`). The first reason is
the column j whose replacement raises the score most,

.. math:: j_1 = \arg\max_j s(x^{\{j\}}), \qquad j_2 = \arg\max_j s(x^{\{j_1, j\}}), \dots

Every score is the model's, evaluated again: no surrogate and no sampling. Where a score cannot
rise (a row so far out that nothing is near, whichever column is replaced), the column farthest from
its conditional mean comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.detector.usual import UsualValues

#: Rows that are scored at once.
SCORED_AT_ONCE = 20_000
#: Of the distance to the threshold: a smaller gain is none.
LEAST_GAIN = 0.02
#: For a value that many normal rows have: by itself it is no reason.
TOGETHER = "the value is not rare, its combination with the others is"


@dataclass(frozen=True)
class ColumnReason:
    """One column that makes a row stand out.

    Attributes
    ----------
    column : str
        Its name.
    value, expected : str
        Cell of the row, and what the other columns predict.
    low, high : float or None
        The usual range for rows like this (5% to 95%), within the training range; None for
        categories.
    share : float
        Share of normal rows that lie as far from what their other columns predict, 1 / (n + 1)
        where none does; of a category, that have its value.
    score, without : float
        Score before and after the value is replaced by the expected one; the reasons before this
        one stay replaced.
    number : float or None
        The value as a number; None for categories.
    rows : int
        Normal rows that shares are counted among.
    sure : bool
        Of a category: whether the other columns predict its value in most normal rows.
    alike : bool
        False where the other columns predict values outside of the training range: expected, range
        and share are then those of the column by itself.
    seen : bool
        False where no normal row had a value so low or so high.
    rule : str
        Of a constant or a copy, which is not learned from: what it always was, in words. Of a
        date, which part of it stands out.
    """

    column: str
    value: str
    expected: str
    low: float | None
    high: float | None
    share: float
    score: float = float("nan")
    without: float = float("nan")
    number: float | None = None
    rows: int = 0
    sure: bool = True
    alike: bool = True
    seen: bool = True
    rule: str = ""

    @property
    def usual(self) -> str:
        """The usual range, or the expected category, in words; empty where there is none.

        Examples
        --------
        >>> ColumnReason("vib_y", "5.1", "3.2", 2.4, 4.1, 1 / 400, number=5.1).usual
        '2.4 to 4.1'
        """
        if self.low is None or self.high is None:
            return self.expected
        digits = 3 if self.number is None else digits_apart(self.number, self.low, self.high)
        ends = (plain_number(end, digits) for end in (self.low, self.high))
        return " to ".join(dict.fromkeys(ends))

    @property
    def words(self) -> str:
        """In one sentence: value, usual range, how rare, and what is left.

        Examples
        --------
        >>> ColumnReason("vib_y", "5.1", "3.2", 2.4, 4.1, 1 / 400, 0.12, 0.71, rows=3000).words
        'vib_y is 5.1; 2.4 to 4.1 is usual for rows like this; about 1 in 400 is as far off.'
        """
        if self.rule:
            return f"{self.column} is {self.value or 'empty'}; {self.rule}."
        if self.low is None or self.high is None:
            return self._words_of_category()
        value, number = self.value, self.number
        whom, rare = " for rows like this" if self.alike else "", TOGETHER
        if number is not None:
            digits = digits_apart(number, self.low, self.high)
            value = plain_number(number, digits) if digits > 3 else value
        if self.seen and number is not None and self.low <= number <= self.high:
            where = "the usual value" if self.low == self.high else f"within the usual {self.usual}"
            few = "few normal rows have it together with the rest"
            return f"{self.column} is {value}, {where}{whom}; {few}."
        if not self.seen:
            side = "high" if number is not None and number > self.high else "low"
            rare = f"none of {self.rows:,} normal rows has a value so {side}"
        elif self.share * (self.rows + 0.5) < 1:  # where one is as far off, it is 1 / rows or more
            rare = f"none of {self.rows:,} normal rows is as far off"
        elif self.share < 0.2:
            rare = f"about 1 in {_round_to_two(1 / self.share):,} is as far off"
        return f"{self.column} is {value}; {self.usual} is usual{whom}; {rare}."

    def _words_of_category(self) -> str:
        if not self.value:
            return f"{self.column} is empty; a row with such gaps is flagged."
        if not self.expected:
            return f"{self.column} is {self.value!r}, which no training row has."
        percent = f"1 in {_round_to_two(1 / self.share):,}"
        percent = f"{self.share:.0%} of the" if self.share >= 0.01 else percent
        common = f"{self.column} is {self.value!r}, as in {percent} normal rows"
        if self.expected != self.value and self.sure:
            return f"{common}; rows like this have {self.expected!r}."
        return f"{common}{f'; {TOGETHER}' if self.share >= 0.05 else ''}."

    def record(self) -> dict[str, Any]:
        """For JSON and data frames."""
        return {**asdict(self), "usual": self.usual, "words": self.words}


def _round_to_two(value: float) -> int:
    """A count to two digits."""
    size = 10 ** max(int(np.log10(max(value, 1.0))) - 1, 0)
    return int(round(value / size) * size)


def plain_number(value: float, digits: int = 3) -> str:
    """A number to three digits or more, without an exponent where it is not needed.

    Parameters
    ----------
    value : float
    digits : int
        Significant digits, at least.

    Examples
    --------
    >>> plain_number(1234.56), plain_number(0.0123456), plain_number(7.1), plain_number(3e9)
    ('1235', '0.0123', '7.1', '3e+09')
    """
    large = 1000 <= abs(value) < 1e7
    return f"{value:.{digits - 3}f}" if large else f"{value:.{digits}g}"


def digits_apart(value: float, low: float, high: float) -> int:
    """Digits that separate a value outside of a range from its ends: three if these do.

    Parameters
    ----------
    value : float
        A value outside of the range.
    low : float
    high : float
        Ends of the range.

    Examples
    --------
    >>> digits_apart(293.4, 293.07, 293.23), digits_apart(7.0, 1.0, 2.0)
    (4, 3)
    """
    for digits in range(3, 10):
        ends = (plain_number(end, digits) for end in (low, high))
        if low <= value <= high or plain_number(value, digits) not in ends:
            break
    return digits


@dataclass(frozen=True, eq=False)
class Replacement:
    """One column of a row, replaced by what the other columns predict.

    Attributes
    ----------
    block : int
        Position of the column, or of the columns that stand for one column of a table.
    row, mended : array of shape (d,)
        The row as it is, and with this column and the earlier ones replaced.
    known : boolean array of shape (d,)
        Columns that were not replaced before this one.
    score, without : float
        Score before and after.
    place : int
        Position of the row.
    """

    block: int
    row: Array
    mended: Array
    known: Mask
    score: float
    without: float
    place: int


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """Columns of numbers, and how a reason names them.

    `kernull.explain.table_columns.TableColumns` names those of a table.

    Parameters
    ----------
    names : sequence of str
    usual : UsualValues
    blocks : sequence of sequence of int
        Positions of each column in a row.
    """

    names: Sequence[str]
    usual: UsualValues
    blocks: Sequence[Sequence[int]]

    def fill(self, X: Array) -> Array:
        """Rows with NaN replaced by what the other cells predict."""
        return self.usual.fill(X)

    def reason(self, replaced: Replacement) -> ColumnReason:
        """The reason behind a replacement."""
        return self.of_number(replaced)

    def of_number(self, replaced: Replacement, whole: bool = False) -> ColumnReason:
        """The reason of a column of numbers, or of whole numbers."""
        usual, j = self.usual, self.blocks[replaced.block][0]
        value, expected = float(replaced.row[j]), float(replaced.mended[j])
        # Columns that are replaced, or were empty, predict nothing: the others leave more open.
        wider = 1.0 if replaced.known.all() else usual.widening(j, replaced.known)
        span = usual.usual_range(j, expected, wider)
        seen, alike = not usual.beyond_seen(j, value), span is not None
        if span is None:
            share = usual.share_as_far(j, value - float(usual.mean[j]), alone=True)
            expected, span = float(usual.quantiles[50, j]), usual.column_range(j)
        else:
            share = usual.share_as_far(j, (value - expected) / wider)
            share = share if wider == 1.0 else max(share, 1.0 / usual.rows)  # an estimate
            expected = float(np.clip(expected, *usual.quantiles[[0, -1], j]))
        share = share if seen else 1.0 / (usual.rows + 1.0)
        digits = digits_apart(value, *span)
        if whole:
            inner = float(np.ceil(span[0])), float(np.floor(span[1]))
            span = inner if inner[0] <= inner[1] else (float(round(span[0])), float(round(span[1])))
            expected = round(expected)
        return ColumnReason(
            self.names[replaced.block], plain_number(value, digits), plain_number(expected, digits),
            *span, share, replaced.score, replaced.without, value, usual.rows,
            alike=alike, seen=seen,
        )  # fmt: skip


def column_reasons(
    score: Callable[[Array], Array],
    X: Array,
    columns: NumberColumns | UsualValues,
    *,
    threshold: Any = None,
    gaps: Mask | None = None,
    most: int = 3,
    places: Sequence[int] | None = None,
) -> list[list[ColumnReason]]:
    """Columns that make rows stand out, the first reason first.

    Parameters
    ----------
    score : callable
        Scores of rows of shape (m, d); higher is more normal, such as ``model.score_samples``.
    X : array of shape (m, d)
        Rows to explain.
    columns : UsualValues or NumberColumns
        What normal rows are like, ``UsualValues.fit(X_train)``, and how columns are called
        (``x0``, ``x1``, ... by default).
    threshold : float or array of shape (m,), optional
        Reasons end when the score is no lower; without it there are ``most``.
    gaps : boolean array of shape (m, columns), optional
        Cells that were filled in, not measured. They are no reasons, and follow what the other
        cells predict once one of these is replaced.
    most : int
        Reasons of one row at most.
    places : sequence of int, optional
        What ``columns`` knows the rows by; their positions by default.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernull import MultiKernelFisherNull
    >>> X, y = load_wine(return_X_y=True)
    >>> normal = X[y == 0]
    >>> model = MultiKernelFisherNull().fit(normal)
    >>> row = normal[:1].copy()
    >>> row[0, 4] = 190.0  # magnesium, 106 on the average
    >>> reason = column_reasons(model.score_samples, row, UsualValues.fit(normal))[0][0]
    >>> reason.column, reason.value, reason.high < 150.0, reason.without > reason.score
    ('x4', '190', True, True)
    """
    X = np.asarray(X, dtype=np.float64)
    if isinstance(columns, UsualValues):
        d = X.shape[1]
        columns = NumberColumns([f"x{j}" for j in range(d)], columns, [[j] for j in range(d)])
    groups = [list(block) for block in columns.blocks]
    reasons: list[list[ColumnReason]] = [[] for _ in X]
    replaced = np.zeros((len(X), len(groups)), dtype=bool) if gaps is None else gaps.copy()
    current = np.asarray(score(X)) if len(X) else np.zeros(0)
    ends = None if threshold is None else np.broadcast_to(threshold, len(X))
    open_rows = np.arange(len(X))
    for _ in range(min(most, len(groups))):
        open_rows = open_rows[~replaced[open_rows].all(axis=1)]
        if ends is not None:
            open_rows = open_rows[~(current[open_rows] >= ends[open_rows])]
        if len(open_rows) == 0:
            break
        mended, scores = _replace_each(
            score, X[open_rows], columns.fill, groups, replaced[open_rows]
        )
        apart = _apart(X[open_rows], mended, columns.usual, groups)
        limit = None if ends is None else ends[open_rows]
        chosen = _choose(scores, current[open_rows], apart, replaced[open_rows], limit)
        for k, i in enumerate(open_rows.tolist()):
            g = int(chosen[k])
            known = np.ones(X.shape[1], dtype=bool)
            known[[c for r in np.flatnonzero(replaced[i]) for c in groups[r]]] = False
            step = (float(current[i]), float(scores[k, g]), i if places is None else places[i])
            reasons[i].append(columns.reason(Replacement(g, X[i], mended[g][k], known, *step)))
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
    gaps = np.repeat(np.where(gone, np.nan, X)[None], len(groups), axis=0)
    for g, group in enumerate(groups):
        gaps[g][:, group] = np.nan
    stacked = fill(gaps.reshape(-1, X.shape[1]))
    parts = [
        np.asarray(score(stacked[i : i + SCORED_AT_ONCE]))
        for i in range(0, len(stacked), SCORED_AT_ONCE)
    ]
    return list(stacked.reshape(gaps.shape)), np.concatenate(parts).reshape(len(groups), len(X)).T


def _apart(X: Array, mended: list[Array], usual: UsualValues, groups: list[list[int]]) -> Array:
    """Distance of each column from its prediction, in spreads of residuals: (m, groups)."""
    spread = usual.residual_spread
    return np.column_stack(
        [
            np.max(np.abs(X[:, group] - new[:, group]) / spread[group], axis=1)
            for group, new in zip(groups, mended, strict=True)
        ]
    )


def _choose(scores: Array, current: Array, apart: Array, replaced: Mask, threshold: Any) -> Indices:
    """The column whose replacement raises the score most; the farthest where none does."""
    gain = np.where(replaced | ~np.isfinite(scores), -np.inf, scores)
    best = gain.max(axis=1)
    ceiling = np.maximum(best, current if threshold is None else threshold)
    helps = best - current > LEAST_GAIN * np.abs(ceiling)
    oddest = np.where(replaced, -np.inf, apart).argmax(axis=1)
    return np.asarray(np.where(helps, gain.argmax(axis=1), oddest))

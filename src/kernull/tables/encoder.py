r"""Columns of a table as columns of numbers, with gaps where cells are empty or new.

*Categories are places.* A one-hot code of K values has K columns, each of unit variance once it is
scaled: a column of text would outweigh K columns of numbers. Here each value gets a place in at
most two dimensions (optimal scaling, as in correspondence analysis): the first tells values apart
whose rows differ in the other columns, the second those that it leaves close; rare values lie far
out.

With shares :math:`p_c`, shrunk class means :math:`m_c` of the other columns and the unit vectors
:math:`e_c`, the places are the leading left singular vectors of the matrix with rows
:math:`\sqrt{p_c}\,[m_c, \epsilon e_c / \sqrt{p_c}]`, divided by :math:`\sqrt{p_c}`: columns of
unit variance over the rows. They are cut at `FARTHEST`, so that no value can dominate a distance.
The means are shrunk by the share of their variance that chance explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from kernull._fields import Checked, Range, stored
from kernull._typing import Array, Indices, Mask
from kernull.tables.cells import as_dates, as_text
from kernull.tables.copies import Breach
from kernull.tables.kinds import USED, Column
from kernull.tables.table import Table

#: No place is farther out than this, in standard deviations.
FARTHEST = 3.0
#: Rows that a value needs before its class mean counts by half.
SHRINK = 5.0
#: Weight of telling values apart against likeness of their rows.
APART = 0.3


@dataclass(frozen=True, eq=False)
class Reading:
    """New rows as a model takes them, and what was done to them.

    Attributes
    ----------
    X : array of shape (m, d)
        Numbers, without gaps.
    missing, unseen : boolean arrays of shape (m, columns)
        Cells that were empty, and cells with a category that no training row had; by column that
        is learned from, see ``TableViews.used_``. Both were filled in from the other columns.
    unreadable : boolean array of shape (m, columns)
        Cells that should be numbers and are not. Filled in too, where they were let pass.
    by_rule : boolean array of shape (m,)
        Rows that are flagged by rule, whatever their values: X has them far away, because nothing
        is known of them or, with ``missing="flag"``, because of gaps and new categories.
    absent : tuple of str
        Columns that were given up. All their cells are in ``missing``, but they are no gaps.
    breaches : tuple of Breach
        Cells of constants and copies, which are not learned from, that are not what they always
        were in training.
    """

    X: Array
    missing: Mask
    unseen: Mask
    unreadable: Mask
    by_rule: Mask
    absent: tuple[str, ...] = ()
    breaches: tuple[Breach, ...] = ()


@stored
@dataclass(frozen=True, eq=False)
class Encoder(Checked):
    """Columns that are learned from, and the places of the values of their categories."""

    columns: list[Column]
    places: dict[str, Annotated[Array, Range(-FARTHEST, FARTHEST)]]

    def contradiction(self) -> str | None:
        """What does not fit together in a file."""
        if not self.columns or any(column.kind not in USED for column in self.columns):
            return "columns that are not learned from"
        if len({column.name for column in self.columns}) < len(self.columns):
            return "two columns of one name"
        for column in self.columns:
            if column.kind == "category":
                places = self.places.get(column.name)
                count = len(column.values)
                if places is None or places.shape != (count, 1 if count == 2 else 2):
                    return "categories without places"
        return None

    @classmethod
    def learn(cls, columns: list[Column], table: Table) -> Encoder:
        """Give the values of each category their places, by what the other columns say."""
        blocks: dict[str, Array] = {}
        codes = {}
        categories = [column for column in columns if column.kind == "category"]
        for column in columns if categories else ():
            if column.kind == "number":
                values = table.parse(column.name)[0]
                spread = np.nanstd(values) or 1.0
                scaled = (values - np.nanmean(values)) / spread
                blocks[column.name] = np.nan_to_num(scaled)[:, None]
            elif column.kind == "category":
                found = category_codes(as_text(table.columns[column.name]), column.values)
                codes[column.name] = found
                hot = (found[:, None] == np.arange(len(column.values))).astype(float)
                hot -= hot.mean(axis=0)
                blocks[column.name] = hot / (np.linalg.norm(hot) / np.sqrt(len(hot)))
        places = {}
        for column in categories:
            others = [block for name, block in blocks.items() if name != column.name]
            others = [np.zeros((len(table), 0)), *others]
            found = codes[column.name]
            places[column.name] = category_places(found, len(column.values), np.hstack(others))
        return cls(columns, places)

    def names(self, column: Column) -> list[str]:
        """Names of what one column becomes."""
        if column.kind == "number":
            return [column.name]
        if column.kind == "date":
            return [f"{column.name} {part}" for part in ("hour 1", "hour 2", "day 1", "day 2")]
        count = self.places[column.name].shape[1]
        return [column.name] if count == 1 else [f"{column.name} {q + 1}" for q in range(count)]

    @cached_property
    def blocks(self) -> dict[str, list[int]]:
        """Positions of what each column becomes."""
        blocks: dict[str, list[int]] = {}
        start = 0
        for column in self.columns:
            width = len(self.names(column))
            blocks[column.name] = list(range(start, start + width))
            start += width
        return blocks

    def numbers(self, table: Table, absent: Sequence[str] = ()) -> Reading:
        """Numbers with gaps (NaN), and where these are."""
        there = table.columns.keys() - absent
        found = [self._read(column, table, column.name in there) for column in self.columns]
        blocks, *masks = zip(*found, strict=True)
        missing, unseen, bad = map(np.column_stack, masks)
        by_rule = np.zeros(len(table), dtype=bool)
        return Reading(np.hstack(blocks), missing, unseen, bad, by_rule, tuple(absent))

    def _read(self, column: Column, table: Table, there: bool) -> tuple[Array, Mask, Mask, Mask]:
        """Numbers of one column, and masks of its cells: empty, new and unreadable ones."""
        none = np.zeros(len(table), dtype=bool)
        if not there:
            return np.full((len(table), len(self.names(column))), np.nan), ~none, none, none
        if column.kind == "number":
            values, missing, bad = table.parse(column.name)
            return values[:, None], missing, none, bad
        cells = table.columns[column.name]
        if column.kind == "category":
            codes = category_codes(as_text(cells), column.values)
            places = np.where((codes >= 0)[:, None], self.places[column.name][codes], np.nan)
            return places, codes == -1, codes == -2, none
        dates = as_dates(cells, column.form or "iso")
        return _date_parts(dates), np.isnat(dates), none, none

    def snapped(self, X: Array, filled: Mask) -> Array:
        """Put categories and dates that were filled in at the nearest value they can have."""
        for c, column in enumerate(self.columns):
            rows = np.flatnonzero(filled[:, c]) if column.kind != "number" else ()
            if len(rows):
                block = np.ix_(rows, np.array(self.blocks[column.name]))
                if column.kind == "date":
                    day, week = (np.arctan2(X[block][:, q], X[block][:, q + 1]) for q in (0, 2))
                    X[block] = _on_circles(day, np.round(week * 7 / (2 * np.pi)) * 2 * np.pi / 7)
                    continue
                places = self.places[column.name]
                apart = ((X[block][:, None] - places[None]) ** 2).sum(axis=2)
                X[block] = places[apart.argmin(axis=1)]
        return X


def _date_parts(dates: Array) -> Array:
    """Hour of the day and day of the week, each as a place on a circle."""
    seconds = dates.astype("datetime64[s]").astype(np.int64).astype(float)
    day = 2 * np.pi * (seconds % 86_400) / 86_400
    week = 2 * np.pi * ((seconds // 86_400) % 7) / 7
    parts = _on_circles(day, week)
    parts[np.isnat(dates)] = np.nan
    return parts


def _on_circles(day: Array, week: Array) -> Array:
    return np.column_stack([np.sin(day), np.cos(day), np.sin(week), np.cos(week)])


def category_codes(texts: list[str | None], values: tuple[str, ...]) -> Indices:
    """Position of each text among the values; -1 where it is empty, -2 where it is another one.

    Examples
    --------
    >>> category_codes(["b", None, "x"], ("a", "b")).tolist()
    [1, -1, -2]
    """
    index = {value: i for i, value in enumerate(values)}
    for value, i in list(index.items()):  # true, TRUE and True of other files
        if value.lower() in ("true", "false"):
            spelled = (value.lower(), value.upper(), value.capitalize())
            index = dict.fromkeys(spelled, i) | index
    return np.array([-1 if text is None else index.get(text, -2) for text in texts], dtype=np.intp)


def category_places(codes: Indices, n_values: int, others: Array) -> Array:
    """Places of the K values of one column, of shape (K, q): q = 1 for two values, 2 for more.

    Each of the q columns has mean 0 and variance 1 over the rows, but for what was cut. ``codes``
    has the value of each of the n training rows, negative where it has none; ``others``, of shape
    (n, m), the other columns, standardised, without gaps.

    Examples
    --------
    >>> category_places(np.array([0, 0, 1, 1]), 2, np.zeros((4, 0))).ravel()
    array([ 1., -1.])
    """
    filled = codes >= 0
    counts = np.bincount(codes[filled], minlength=n_values).astype(float)
    shares = counts / counts.sum()
    means = np.zeros((n_values, others.shape[1]))
    np.add.at(means, codes[filled], others[filled])
    means /= counts[:, None] + SHRINK
    means /= np.sqrt(max(others.shape[1], 1))
    means -= shares @ means
    # Means of columns that have nothing to do with this one differ as well. By places learned from
    # that, training rows would be more alike than any new one.
    chance = shares @ (counts / (counts + SHRINK) ** 2) * others.var(axis=0).sum()
    chance /= max(others.shape[1], 1)
    found = max(float(shares @ (means**2).sum(axis=1)), np.finfo(float).tiny)
    means *= np.sqrt(max(0.0, 1.0 - chance / found))
    A = np.hstack([np.sqrt(shares)[:, None] * means, APART * np.eye(n_values)])
    # Without this direction the columns below would not have mean zero over the rows.
    root = np.sqrt(shares)
    A -= np.outer(root, root @ A)
    U, _, _ = np.linalg.svd(A, full_matrices=False)
    q = 1 if n_values == 2 else 2
    places = U[:, :q] / root[:, None]
    places *= np.where(places[0] < 0, -1.0, 1.0)  # signs of singular vectors are arbitrary
    return np.asarray(np.clip(places, -FARTHEST, FARTHEST))

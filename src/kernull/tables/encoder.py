r"""Columns of a table as columns of numbers.

A table is first read into *cells*, a number each: a measurement as it is, a category by its
position among the values of the column, NaN where a cell is empty. An `Encoder` learns from cells,
again in each fold, and makes the numbers that kernels see of them.

*Categories are places.* A one-hot code of K values has K columns, each of unit variance once it is
scaled: a column of text would outweigh K columns of numbers. Here each value gets a place in at
most two dimensions (optimal scaling, as in correspondence analysis): the first tells values apart
whose rows differ in the other columns, the second those that it leaves close; rare values lie far
out. Values that at most two rows have share one place, which is that of values never seen too.
Where there are none, a value never seen is filled in as an empty cell is.

With shares :math:`p_c`, shrunk class means :math:`m_c` of the other columns and the unit vectors
:math:`e_c`, the places are the leading left singular vectors of the matrix with rows
:math:`\sqrt{p_c}\,[m_c, \epsilon e_c / \sqrt{p_c}]`, divided by :math:`\sqrt{p_c}`: columns of
unit variance over the rows. They are cut at `FARTHEST`, so that no value can dominate a distance.
The means are shrunk by the share of their variance that chance explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from kernull._fields import Checked, Range, stored
from kernull._typing import Array, Indices, Mask
from kernull.tables.cells import as_dates, as_text
from kernull.tables.gaps import GapFiller
from kernull.tables.kinds import OTHERS, USED, Column
from kernull.tables.table import Table

#: No place is farther out than this, in standard deviations.
FARTHEST = 3.0
#: Rows that a value needs before its class mean counts by half.
SHRINK = 5.0
#: Weight of telling values apart against likeness of their rows.
APART = 0.3
#: Values that so many rows have, at most, share a place.
RARE = 2
#: Rows that places and gaps are learned from in a fold, whose rows come in random order.
ENCODER_ROWS = 20_000
#: Other spellings of booleans, in lower case, in a column that has them.
SPELLINGS = {
    "true": ("true", "1", "yes", "ja", "wahr", "t", "y", "j"),
    "false": ("false", "0", "no", "nein", "falsch", "f", "n"),
}
#: Names of what a date becomes: places on the circles of the day and of the week.
DATE_PARTS = ("hour 1", "hour 2", "day 1", "day 2")


class EncodedRows(np.ndarray):
    """What `TableViews` makes of rows, (m, d), with the cells that it made them of.

    Estimators that decide by evidence read more than an array: a fold is encoded anew, and cells
    are judged too. Picking rows keeps their cells; whatever else is done gives a plain array.
    """

    cells: Any = None  #: Of shape (m, C).
    encoder: Any = None  #: The `Encoder` that made the rows.
    table_views: Mapping[str, list[int]] | None = None

    @classmethod
    def of(cls, X: Array, cells: Array, encoder: Encoder | None, views: Any = None) -> EncodedRows:
        """Rows X (m, d) with the cells (m, C) and the encoder that they come from, not copied."""
        out = np.asarray(X).view(cls)
        out.cells, out.encoder, out.table_views = cells, encoder, views
        return out

    def like(self, table: Array) -> Array:
        """The same numbers, checked, with the cells of these rows."""
        if self.cells is None:
            return table
        return EncodedRows.of(table, self.cells, self.encoder, self.table_views)

    def __getitem__(self, index: Any) -> Any:
        out = super().__getitem__(index)
        if self.cells is None or isinstance(index, tuple) or getattr(out, "ndim", 0) != 2:
            return out.view(np.ndarray) if isinstance(out, EncodedRows) else out
        return EncodedRows.of(out, self.cells[index], self.encoder, self.table_views)

    def encoded_anew(self) -> EncodedRows:
        """The rows as an encoder encodes them that is fitted to them, and to no others."""
        encoder = self.encoder.fit(self.cells[:ENCODER_ROWS])
        return EncodedRows.of(encoder.transform(self.cells), self.cells, encoder, self.table_views)


@stored
@dataclass(frozen=True, eq=False)
class Encoder(Checked):
    """From cells (n, C) to numbers (n, d); the columns are those of the table that is learned from.

    Parameters
    ----------
    columns : tuple of Column
        The C columns of cells. Constants among them become no numbers.
    places : dict of str to array of shape (K + 1, q)
        Of each category, the place of each value, and last that of values never seen; NaN where
        there is none.
    filler : GapFiller, optional
        None before `fit`, or where nothing has to be filled in.
    """

    columns: tuple[Column, ...]
    places: dict[str, Annotated[Array, Range(-FARTHEST, FARTHEST, nan=True)]]
    filler: GapFiller | None = None

    def contradiction(self) -> str | None:
        """What does not fit together in a file."""
        if not self.blocks or any(c.kind not in (*USED, "constant") for c in self.columns):
            return "columns that are not looked at"
        if len({column.name for column in self.columns}) < len(self.columns):
            return "two columns of one name"
        for column in self.columns:
            if column.kind == "category":
                places, count = self.places.get(column.name), len(column.values)
                if places is None or places.shape != (count + 1, 1 if count == 2 else 2):
                    return "categories without places"
        return None

    def fit(self, cells: Array, *, ranges: bool = False) -> Encoder:
        """Learn places and how gaps are filled in; ``ranges``: and what reasons are made of."""
        places = self._fit_places(cells)
        fitted = replace(self, places=places, filler=None)
        X = fitted._with_gaps(cells)
        return replace(fitted, filler=GapFiller.fit(X, ranges=ranges))

    def _fit_places(self, cells: Array) -> dict[str, Array]:
        codes: dict[str, Indices] = {}
        blocks: dict[str, Array] = {}
        has_categories = any(column.kind == "category" for column in self.columns)
        for column, cell in zip(self.columns, cells.T, strict=True):
            if column.kind == "number" and has_categories:
                known = cell[np.isfinite(cell)]
                spread = (known.std() if len(known) else 0.0) or 1.0
                centre = known.mean() if len(known) else 0.0
                blocks[column.name] = np.nan_to_num((cell - centre) / spread)[:, None]
            elif column.kind == "category":
                codes[column.name] = np.nan_to_num(cell, nan=-1.0).astype(np.intp)
                pooled = _pooled(codes[column.name], len(column.values) + 1)[0]
                hot = (pooled[:, None] == np.unique(pooled[pooled >= 0])).astype(float)
                hot -= hot.mean(axis=0)
                size = np.linalg.norm(hot) / np.sqrt(len(hot))
                blocks[column.name] = hot / (size or 1.0)
        places = {}
        for name, code in codes.items():
            others = [block for other, block in blocks.items() if other != name]
            others = [np.zeros((len(cells), 0)), *others]
            width = self.places[name].shape
            places[name] = category_places(code, width, np.hstack(others))
        return places

    def transform(self, cells: Array) -> Array:
        """Numbers without gaps, of shape (m, d)."""
        X = self._with_gaps(cells)
        if self.filler is None or np.isfinite(X).all():
            return X
        return self.snapped(self.filler.draw(X), np.isnan(X))

    def names(self, column: Column) -> list[str]:
        """Names of what one column becomes."""
        if column.kind == "number":
            return [column.name]
        if column.kind == "date":
            return [f"{column.name} {part}" for part in DATE_PARTS]
        if column.kind != "category":
            return []
        count = self.places[column.name].shape[1]
        return [column.name] if count == 1 else [f"{column.name} {q + 1}" for q in range(count)]

    @cached_property
    def blocks(self) -> dict[str, list[int]]:
        """Positions of what each column that is learned from becomes."""
        blocks: dict[str, list[int]] = {}
        start = 0
        for column in self.columns:
            width = len(self.names(column))
            if width:
                blocks[column.name] = list(range(start, start + width))
            start += width
        return blocks

    def _with_gaps(self, cells: Array) -> Array:
        """Numbers, NaN where a cell is empty or has a value without a place."""
        cells = np.where(np.isfinite(cells), cells, np.nan)
        blocks = [np.zeros((len(cells), 0))]
        for column, cell in zip(self.columns, cells.T, strict=True):
            if column.kind == "number":
                blocks.append(cell[:, None])
            elif column.kind == "date":
                blocks.append(_date_parts(cell))
            elif column.kind == "category":
                places = self.places[column.name]
                code = np.nan_to_num(cell, nan=-1.0).astype(np.intp)
                blocks.append(np.where((code >= 0)[:, None], places[code], np.nan))
        return np.hstack(blocks)

    def snapped(self, X: Array, filled: Mask) -> Array:
        """Put categories and dates that were filled in at the nearest value they can have."""
        for column in self.columns:
            block = self.blocks.get(column.name, [])
            rows = np.flatnonzero(filled[:, block].any(axis=1)) if column.kind != "number" else ()
            if not len(rows):
                continue
            at = np.ix_(rows, np.array(block))
            if column.kind == "date":
                day, week = (np.arctan2(X[at][:, q], X[at][:, q + 1]) for q in (0, 2))
                X[at] = _on_circles(day, np.round(week * 7 / (2 * np.pi)) * 2 * np.pi / 7)
                continue
            places = self.places[column.name]
            places = places[np.isfinite(places[:, 0])]
            if len(places):
                apart = ((X[at][:, None] - places[None]) ** 2).sum(axis=2)
                X[at] = places[apart.argmin(axis=1)]
        return X


def read_cells(
    columns: Sequence[Column], table: Table, absent: Sequence[str] = ()
) -> tuple[Array, Mask]:
    """The cells of a table (m, C), and which of them should be numbers and are not.

    Cells of columns that are ``absent`` are infinite: they are not to be looked at.
    """
    cells = np.full((len(table), len(columns)), np.nan)
    bad = np.zeros(cells.shape, dtype=bool)
    for c, column in enumerate(columns):
        if column.name in absent or column.name not in table.columns:
            cells[:, c] = np.inf
        elif column.kind == "date":
            dates = as_dates(table.columns[column.name], column.form or "iso")
            seconds = dates.astype("datetime64[s]").astype(np.int64).astype(float)
            cells[:, c] = np.where(np.isnat(dates), np.nan, seconds)
        elif column.is_text:
            texts = as_text(table.columns[column.name])
            codes = category_codes(texts, column.values)
            cells[:, c] = np.where(codes >= 0, codes, np.nan)
        else:
            cells[:, c], _, bad[:, c] = table.parse(column.name)
    return cells, bad


def category_codes(texts: list[str | None], values: tuple[str, ...]) -> Indices:
    """Position of each text among the K values; -1 where it is empty, K where it is another one.

    Examples
    --------
    >>> category_codes(["b", None, "x"], ("a", "b")).tolist()
    [1, -1, 2]
    >>> category_codes(["TRUE", "yes", "0", "FALSCH"], ("False", "True")).tolist()
    [1, 1, 0, 0]
    """
    index = {value: i for i, value in enumerate(values)}
    spelled: dict[str, int] = {}  # true and false as other files write them
    for value, i in index.items():
        spelled |= dict.fromkeys(SPELLINGS.get(value.lower(), ()), i)
    other = index.get(OTHERS, len(values))
    codes = [-1 if t is None else index.get(t, spelled.get(t.lower(), other)) for t in texts]
    return np.array(codes, dtype=np.intp)


def _pooled(codes: Indices, n_codes: int) -> tuple[Indices, Indices]:
    """Codes with those that few rows have as one, the last: of the rows (n,), and of each code."""
    counts = np.bincount(codes[codes >= 0], minlength=n_codes)
    pooled = np.where(counts > RARE, np.arange(n_codes), n_codes)
    return np.where(codes >= 0, pooled[codes], -1), pooled


def category_places(codes: Indices, shape: tuple[int, ...], others: Array) -> Array:
    """Places of the K values of one column, and of values never seen, of shape (K + 1, q).

    Each of the q columns has mean 0 and variance 1 over the rows, but for what was cut.

    Parameters
    ----------
    codes : integer array of shape (n,)
        The value of each training row, negative where it has none.
    shape : (int, int)
        K + 1 and q: 1 for two values, 2 for more.
    others : array of shape (n, m)
        The other columns, standardised, without gaps.

    Examples
    --------
    >>> codes = np.array([0, 0, 0, 1, 1, 1])
    >>> category_places(codes, (3, 1), np.zeros((6, 0))).ravel()
    array([ 1., -1., nan])
    """
    pooled, class_of = _pooled(codes, shape[0])
    filled = pooled >= 0
    classes, member, counts = np.unique(pooled[filled], return_inverse=True, return_counts=True)
    places = np.full((shape[0] + 1, shape[1]), np.nan)
    places[classes] = 0.0
    if len(classes) > 1:
        found = _class_places(member.ravel(), counts.astype(float), others[filled])
        places[classes, : found.shape[1]] = found[:, : shape[1]]
    return np.asarray(places[class_of])


def _class_places(member: Indices, counts: Array, others: Array) -> Array:
    """Places of classes, of shape (K, q), from the class of each row, and the other columns."""
    n_values, shares = len(counts), counts / counts.sum()
    means = np.zeros((n_values, others.shape[1]))
    np.add.at(means, member, others)
    means /= counts[:, None] + SHRINK
    means /= np.sqrt(max(others.shape[1], 1))
    means -= shares @ means
    # Means of columns that have nothing to do with this one differ as well. By places learned from
    # that, training rows would be more alike than any new one.
    chance = shares @ (counts / (counts + SHRINK) ** 2) * others.var(axis=0).sum()
    chance /= max(others.shape[1], 1)
    found = max(float(shares @ (means**2).sum(axis=1)), np.finfo(float).tiny)
    means *= np.sqrt(max(0.0, 1.0 - chance / found))
    root = np.sqrt(shares)
    A = np.hstack([root[:, None] * means, APART * np.eye(n_values)])
    A -= np.outer(root, root @ A)  # so that the columns below have mean zero over the rows
    U, _, _ = np.linalg.svd(A, full_matrices=False)
    places = U[:, : 1 if n_values == 2 else 2] / root[:, None]
    places *= np.where(places[0] < 0, -1.0, 1.0)  # signs of singular vectors are arbitrary
    return np.asarray(np.clip(places, -FARTHEST, FARTHEST))


def _date_parts(seconds: Array) -> Array:
    """Hour of the day and day of the week, each as a place on a circle, of shape (m, 4)."""
    day = 2 * np.pi * (seconds % 86_400) / 86_400
    week = 2 * np.pi * ((seconds // 86_400) % 7) / 7
    return _on_circles(day, week)


def _on_circles(day: Array, week: Array) -> Array:
    return np.column_stack([np.sin(day), np.cos(day), np.sin(week), np.cos(week)])

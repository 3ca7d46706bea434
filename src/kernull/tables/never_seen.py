r"""What was never seen: a score of the cells of a table.

Cells are the numbers that a table is read into (`kernull.tables.encoder`): NaN where one is empty,
infinity where a column is not to be looked at. Whether a cell is empty is judged as a value is, and
so is the number of empty cells of a row, where it is larger than ever. The score becomes evidence
by its left-out values: a row that is left out has values that no other row has as often as a new
row does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kernull._fields import Range, Shape, stored
from kernull._typing import Array, Indices, Mask
from kernull.tables.gaps import LARGEST_SINGLE

#: A value never seen is a surprise in columns where fewer than this share of new rows have one.
MOST_UNSEEN = 0.1


@dataclass(frozen=True)
class NeverSeen:
    r"""How surprising it is that values of a row were never seen.

    .. math:: s(x) = -\Big(\sum_{c:\, x_c \text{ never seen}} \log^2 (0.1 / q_c)\Big)^{1/2}

    over the columns with :math:`q_c < 0.1`. The probability :math:`q_c` that the next row has a
    value never seen is that of Good and Turing, :math:`N_c / n` with :math:`N_c` values seen once,
    plus two standard errors: :math:`(N_c + 2 \sqrt{N_c} + 1) / (n + 1)`. (Columns that are below
    0.1 by chance would count without: 20 categories of 100 rows, 7.0% flagged at 5%.) So columns
    where new values are common, as in measurements and names, do not count.

    A score of unusual patterns of gaps, by the distance to the nearest, was tried: it is evidence
    against rows of two gaps that are usual each, and hides odd rows.
    """

    extrapolates = False

    def fit(self, cells: Array, full: NeverSeenFit | None = None) -> NeverSeenFit:
        """Note the values of each column of cells (n, C), with q of ``full`` where it is passed."""
        values, looked_at = _values(cells)
        n, surprise = len(cells), np.zeros(values.shape[1])
        column, value = [np.zeros(0, dtype=np.intp)], [np.zeros(0)]
        for c in range(len(surprise)):
            if full is not None and not full.surprise[c] > 0:
                continue
            known, count = np.unique(values[looked_at[:, c], c], return_counts=True)
            once = int((count == 1).sum())
            if c == 2 * cells.shape[1]:  # fewer empty cells than ever are no surprise
                known = np.arange(known[-1] + 1)
            unseen = (once + 2.0 * np.sqrt(once) + 1.0) / (n + 1.0)
            surprise[c] = (
                max(np.log(MOST_UNSEEN / unseen), 0.0) if full is None else full.surprise[c]
            )
            if surprise[c] > 0:
                column.append(np.full(len(known), c))
                value.append(known)
        return NeverSeenFit(surprise, np.concatenate(column), np.concatenate(value))


@stored
@dataclass(frozen=True, eq=False)
class NeverSeenFit:
    """Values that were seen, by column and in increasing order, and log(0.1 / q) of each column.

    There are 2 C + 1 columns: the C of the table, whether each is empty, and the number that are.
    """

    surprise: Annotated[Array, Shape("_cells"), Range(low=0.0)]
    column: Annotated[Indices, Shape("_values")]
    value: Annotated[Array, Shape("_values")]

    def score(self, cells: Array) -> Array:
        """Scores of rows, of shape (m,); zero where all values were seen."""
        values, looked_at = _values(cells)
        squares = np.zeros(len(values))
        for c in np.flatnonzero(self.surprise > 0):
            unseen = looked_at[:, c] & ~np.isin(values[:, c], self.value[self.column == c])
            squares += self.surprise[c] ** 2 * unseen
        return -np.sqrt(squares)


def _values(cells: Array) -> tuple[Array, Mask]:
    """Cells, whether each is empty, and how many are, (m, 2 C + 1); and which are looked at."""
    empty, asked = np.isnan(cells), ~np.isinf(cells)
    with np.errstate(over="ignore"):
        single = np.clip(cells, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32).astype(float)
    values = np.column_stack([single, empty, empty.sum(axis=1)])
    whole = np.ones(len(cells), dtype=bool)
    return values, np.column_stack([asked & ~empty, asked, whole])

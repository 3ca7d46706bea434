r"""Empty cells, filled in by what the other cells of the row say.

With mean :math:`\mu` and (shrunk) covariance :math:`S` of the training rows, the cells M of a row
that are missing are expected at the conditional mean of the observed ones O:

.. math:: \hat x_M = \mu_M + S_{MO} S_{OO}^{-1} (x_O - \mu_O)

Rows that are learned from or judged are filled in by predictive mean matching (Little 1988): the
cells M come from a training row that is expected to have nearly the same there, plus the difference
of the two expectations. So they scatter as measured ones do, whatever the shape of the columns.
Filled in at the mean they are more alike than measured rows: learned from, they make these look
odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.covariance import ledoit_wolf_shrinkage

from kernull._fields import POSITIVE, Range, Shape, stored
from kernull._typing import Array, Indices, Mask

Bits = npt.NDArray[np.uint64]

#: With more columns, gaps are filled without looking at the others: the covariance would be too
#: large to keep.
MOST_COLUMNS = 400
#: Rounds of filling in the training rows and learning the covariance anew.
ROUNDS = 4
#: Training rows that gaps are filled from (of many columns few: files keep them), and how many of
#: them are near enough to draw from.
DONORS, FEW_DONORS, NEAREST = 200, 8, 5
#: Quantiles of columns that are kept.
QUANTILES = 101
LEVELS = np.linspace(0.0, 1.0, QUANTILES)
#: In single precision.
LARGEST_SINGLE = 3e38
#: Of the covariance of standardised columns, beyond its shrinkage.
RIDGE = 1e-6


@stored
@dataclass(frozen=True)
class GapFiller:
    """Mean, spread and correlation of training rows, to fill gaps with.

    Parameters
    ----------
    mean, scale : array of shape (d,)
    correlation : array of shape (d, d), optional
        Shrunk; None for many columns.
    donors : array of shape (D, d)
        Training rows with few gaps, which are NaN.
    around : array of shape (101, d)
        Quantiles of the columns less the mean.
    rows : int
        Number of training rows.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> filler = GapFiller.fit(np.column_stack([x, 1.0 + 2.0 * x]))
    >>> filler.fill(np.array([[0.25, np.nan]])).round(1)
    array([[0.2, 1.5]])
    """

    mean: Annotated[Array, Shape("d")]
    scale: Annotated[Array, Shape("d"), Range(low=POSITIVE)]
    correlation: Annotated[Array | None, Shape("d", "d")]
    donors: Annotated[Array, Shape("_", "d"), Range(nan=True)]
    around: Annotated[Array, Shape(QUANTILES, "d")]
    rows: Annotated[int, Range(low=0)]

    @property
    def quantiles(self) -> Array:
        """Quantiles of the columns, of shape (QUANTILES, d), to a millionth of their spread."""
        unit = 10.0 ** np.maximum(6.0 - np.floor(np.log10(self.scale)), 0.0)
        return np.asarray(np.round((self.mean + self.around) * unit) / unit)

    @classmethod
    def fit(cls, X: Array, *, ranges: bool = True) -> GapFiller:
        """Learn from training rows of shape (n, d); NaN are gaps. ``ranges``: keep quantiles."""
        observed = np.isfinite(X)
        counts = np.maximum(observed.sum(axis=0), 1)
        mean = np.where(observed, X, 0.0).sum(axis=0) / counts
        apart = np.where(observed, X - mean, 0.0)
        largest = np.abs(apart).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)  # squares of huge values overflow
        scale = unit * np.sqrt(((apart / unit) ** 2).sum(axis=0) / counts)
        scale = np.where(scale > 0, scale, 1.0)
        Z = np.where(observed, X - mean, np.nan) / scale
        R = _learned(Z) if X.shape[1] <= MOST_COLUMNS else None
        order = np.lexsort([_row_bits(X), (~observed).sum(axis=1)])  # whatever order rows come in
        donors = X[order[: DONORS if R is not None else FEW_DONORS]]
        around = _seven_digits(_quantiles(X) - mean) if ranges else np.zeros((0, X.shape[1]))
        return cls(mean, scale, R, donors, around, len(X))

    def fill(self, X: Array) -> Array:
        """Rows with gaps at their expectation; rows that have none are returned as they are."""
        observed = np.isfinite(X)
        if observed.all():
            return X
        rows = np.flatnonzero(~observed.all(axis=1))
        Z = np.where(observed[rows], X[rows] - self.mean, np.nan) / self.scale
        out = X.copy()
        found = self.mean + self.scale * fill_standardised(Z, self.correlation)
        out[rows] = np.where(observed[rows], X[rows], found)
        return out

    def draw(self, X: Array) -> Array:
        """Rows with gaps filled in from training rows that are expected to have the same there.

        Which of the nearest it is depends on what the row has: a row that comes again is filled in
        by the same values.
        """
        observed = np.isfinite(X)
        if observed.all():
            return X
        out, filled = X.copy(), self.fill(self.donors)
        for rows, there in _patterns(observed):
            self._draw(out, rows, there, np.flatnonzero(~there), filled)
        return out

    def _draw(self, out: Array, rows: Indices, there: Mask, gaps: Indices, filled: Array) -> None:
        """Fill in some gaps of rows that have the same cells; ``filled``: donors without gaps."""
        having = np.flatnonzero(np.isfinite(self.donors[:, gaps]).all(axis=1))
        if len(having) < NEAREST and len(gaps) > 1:  # from one donor each
            for part in np.array_split(gaps, 2):
                self._draw(out, rows, there, part, filled)
            return
        slopes, _ = _others_say(self.correlation, there)
        slopes = slopes[:, np.isin(np.flatnonzero(~there), gaps)]
        new, old = (
            (Z[:, there] - self.mean[there]) / self.scale[there] @ slopes
            for Z in (out[rows], filled[having])
        )
        if not len(having):
            out[np.ix_(rows, gaps)] = self.mean[gaps] + self.scale[gaps] * new
            return
        squares = cdist(new, old, "sqeuclidean").round(
            12
        )  # equal ones, all that tie, are drawn from
        k = min(NEAREST, len(having))
        near = squares <= np.partition(squares, k - 1, axis=1)[:, k - 1 :][:, :1]
        chance = _row_bits(np.where(there, out[rows], 0.0)) % near.sum(axis=1).astype(np.uint64)
        place = (near.cumsum(axis=1) > chance[:, None]).argmax(axis=1)
        found = self.donors[np.ix_(having, gaps)][place]
        steps = self._stepped[gaps]
        out[np.ix_(rows, gaps)] = found + np.where(
            steps, 0.0, (new - old[place]) * self.scale[gaps]
        )

    @cached_property
    def _stepped(self) -> Mask:
        """Columns whose values repeat, as counts and the places of categories do: (d,)."""
        return np.array([len(np.unique(x := c[np.isfinite(c)])) < len(x) for c in self.donors.T])


def _seven_digits(X: Array) -> Array:
    """Numbers as single precision has them, which take half of the room in a file."""
    return np.clip(X, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32).astype(float)


def _quantiles(X: Array) -> Array:
    """Quantiles of each column, of shape (QUANTILES, d); gaps do not count."""
    out = np.zeros((QUANTILES, X.shape[1]))
    known = np.isfinite(X)
    whole = known.all(axis=0)
    out[:, whole] = np.quantile(X[:, whole], LEVELS, axis=0)
    for j in np.flatnonzero(~whole & known.any(axis=0)):
        out[:, j] = np.quantile(X[known[:, j], j], LEVELS)
    return out


def _patterns(observed: Mask) -> Iterator[tuple[Indices, Mask]]:
    """Rows with gaps that have the same ones, and what they have."""
    gaps = np.flatnonzero(~observed.all(axis=1))
    patterns, inverse = np.unique(observed[gaps], axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    ends = np.searchsorted(inverse.ravel()[order], np.arange(len(patterns) + 1))
    for k, there in enumerate(patterns):
        yield gaps[order[ends[k] : ends[k + 1]]], there


def _row_bits(X: Array) -> Bits:
    """A whole number for each row, as if drawn, by the bits of what it has: (m,).

    Bits of single precision: places of categories come from a singular value decomposition, whose
    last bits differ between machines.
    """
    odd = (2 * np.arange(X.shape[1], dtype=np.uint64) + 1) * np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        single = np.where(np.isfinite(X), X + 0.0, 0.0).astype(np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    return _mixed(_mixed(_mixed(bits) * odd).sum(axis=1, dtype=np.uint64))


def _mixed(x: Bits) -> Bits:
    """Bits of whole numbers, mixed (the end of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _others_say(R: Array | None, there: Mask) -> tuple[Array, Array]:
    """Slopes of what is not there by what is, (there, gaps), and the covariance left open."""
    if R is None:
        gaps = int((~there).sum())
        return np.zeros((len(there) - gaps, gaps)), np.eye(gaps)
    across = R[np.ix_(there, ~there)]
    slopes: Array = np.linalg.solve(R[np.ix_(there, there)], across).astype(float, copy=False)
    return slopes, np.asarray(R[np.ix_(~there, ~there)] - across.T @ slopes)


def fill_standardised(Z: Array, R: Array | None, left_open: Array | None = None) -> Array:
    """Standardised rows with NaN, filled in by their correlation R.

    ``left_open``, of shape (d, d), receives the sum over the rows of the covariance that their gaps
    leave open.
    """
    out = Z.copy()
    for rows, there in _patterns(np.isfinite(Z)):
        slopes, left = _others_say(R, there)
        if left_open is not None:
            left_open[np.ix_(~there, ~there)] += len(rows) * left
        out[np.ix_(rows, ~there)] = Z[np.ix_(rows, there)] @ slopes
    return out


def _learned(Z: Array) -> Array:
    """Correlation of standardised rows with NaN: filled in, learned anew, filled in again."""
    observed = np.isfinite(Z)
    R = correlation(np.where(observed, Z, 0.0))
    for _ in range(0 if observed.all() else ROUNDS):
        left_open = np.zeros((Z.shape[1], Z.shape[1]))
        whole = fill_standardised(Z, R, left_open)
        R = correlation(whole, left_open / len(Z))
    return R


def correlation(Z: Array, left_open: Array | float = 0.0) -> Array:
    """Shrunk correlation."""
    n, d = Z.shape
    if n < 2:
        return np.eye(d)
    shrinkage = float(ledoit_wolf_shrinkage(Z, assume_centered=True)) if d > 1 else 0.0
    S = Z.T @ Z / n + left_open
    return np.asarray((1.0 - shrinkage) * S + (shrinkage + RIDGE) * np.eye(d))

"""Kernel functions of scaled rows, one class a family, and their widths.

``Rbf().fit(X, factors)`` gives a kernel for each width factor, with its width fixed by the rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import (
    cosine_similarity,
    linear_kernel,
    manhattan_distances,
    polynomial_kernel,
)
from sklearn.utils.validation import has_fit_parameter

from kernull._fields import POSITIVE, Range, Shape, stored
from kernull._typing import Array, Indices


class Kernel:
    """A kernel function of the scaled rows of one view; the base of all families."""

    metric: ClassVar[str | None] = None
    """Metric of the distance that the kernel is a function of, if it is one."""
    label: str = ""
    """Name of the function, for people."""
    width: float | None = None
    factor: float | None = None
    """Width as a factor of the mean distance; None where there is no such width."""
    lacks: str | None = None
    """What is still to be learned from rows."""

    @property
    def has_widths(self) -> bool:
        """Whether `fit` gives one kernel for each width factor."""
        return self.metric is not None and self.width is None

    def fit(
        self,
        X: Array,
        factors: Iterable[float | str] = (1.0,),
        sample_weight: Array | None = None,
        pairs: Mapping[str, Array] | None = None,
    ) -> list[Kernel]:
        """Fit to one view of the training rows: one kernel per width factor, or just one.

        Parameters
        ----------
        X : array of shape (n, d)
            Scaled rows.
        factors : iterable of float or "auto"
            Widths as factors of the mean distance; ``"auto"`` is the
            `neighbour_distance`, within `AUTO_RANGE`.
        sample_weight : array of shape (n,), optional
            Weights of the rows.
        pairs : mapping of str to array of shape (n, n), optional
            Distances between the rows, by metric, where they are known.

        Returns
        -------
        list of Kernel
            One per factor, in their order; one where the family has no width, or its width is set.
        """
        return [self._fitted(X, sample_weight)]

    def _fitted(self, X: Array, sample_weight: Array | None) -> Kernel:
        """The kernel with what it learns from rows."""
        return self

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Kernel matrix between the rows of X and of Y (of X and X when Y is None)."""
        raise NotImplementedError

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for each row, of shape (m,).

        Parameters
        ----------
        X : array of shape (m, d)
        """
        raise NotImplementedError


@dataclass(frozen=True)
class DistanceKernel(Kernel):
    r"""A kernel that is one at distance zero, and falls as rows lie farther apart.

    It is :math:`\exp(-d^q / (q s^q))` of a metric; one of another form replaces `of_distances`.

    Parameters
    ----------
    width : float, optional
        By default a factor of the mean distance of the rows that it is fitted to.
    """

    width: Annotated[float | None, Range(low=POSITIVE)] = None
    factor: Annotated[float | None, Range(low=POSITIVE)] = None
    centre: Annotated[Array | None, Shape("_d"), Range(-2e140, 2e140)] = field(
        default=None, repr=False, compare=False
    )
    """Mean of the rows that the kernel was fitted to."""

    metric: ClassVar[str]
    power: ClassVar[int]
    r"""q of :math:`\exp(-d^q / (q s^q))`, where d is what `distances` gives for q = 1."""

    @property
    def lacks(self) -> str | None:  # type: ignore[override]
        """What is still to be learned from rows."""
        return "width" if self.width is None else "centre" if self.centre is None else None

    def __post_init__(self) -> None:
        width = self.width
        if width is None:
            return
        is_number = isinstance(width, int | float | np.number) and not isinstance(width, bool)
        if not is_number or not 1e-100 < width < 1e100:
            raise ValueError(
                f"width: got {width!r}; expected a positive number, or None for the automatic one."
            )

    def fit(
        self,
        X: Array,
        factors: Iterable[float | str] = (1.0,),
        sample_weight: Array | None = None,
        pairs: Mapping[str, Array] | None = None,
    ) -> list[Kernel]:
        """One kernel for each factor of the mean distance, or that of the width given."""
        centre = X.mean(axis=0)
        if self.width is not None:
            return [replace(self, centre=centre)]
        known = (pairs or {}).get(self.metric)
        # A constant view (kept on request) has mean distance 0; any width makes its kernel all 1.
        mean = mean_distance(X, self.metric, sample_weight, known) or 1.0
        factors = list(factors)
        if "auto" in factors:
            nearest = neighbour_distance(X, self.metric, sample_weight, known)
            auto = float(np.clip(nearest / mean, *AUTO_RANGE))
        numbers = [auto if isinstance(factor, str) else factor for factor in factors]
        return [replace(self, width=f * mean, factor=f, centre=centre) for f in numbers]

    def distances(self, X: Array, Y: Array | None = None) -> Array:
        """Distances between rows, as `of_distances` takes them, of shape (m, n).

        Parameters
        ----------
        X : array of shape (m, d)
        Y : array of shape (n, d), optional
            Other rows; X by default.
        """
        assert self.centre is not None
        # Subtracting the training centre changes no distance and keeps the expansion accurate
        # for data far from the origin.
        Y = None if Y is None else Y - self.centre
        return pair_distances(X - self.centre, Y, self.metric)

    def of_distances(self, distances: Array, out: Array | None = None) -> Array:
        """Kernel values from what `distances` returned, in a new array or in ``out``.

        Parameters
        ----------
        distances : array of shape (m, n)
            As `distances` returns them.
        out : array of shape (m, n), optional
            Where to write.
        """
        assert self.width is not None
        out = np.divide(distances, -self.power * self.width**self.power, out=out)
        return np.asarray(np.exp(out, out=out))

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Kernel matrix between the rows of X and of Y (of X and X when Y is None)."""
        return self.of_distances(self.distances(X, Y))

    def diagonal(self, X: Array) -> Array:
        """Ones."""
        return np.ones(len(X))


@stored
class Rbf(DistanceKernel):
    r""":math:`\exp(-\|x-y\|_2^2 / (2 s^2))`, a function of squared distances."""

    metric = "euclidean"
    power = 2
    label = "rbf"


@stored
class Laplacian(DistanceKernel):
    r""":math:`\exp(-\|x-y\|_1 / s)`."""

    metric = "manhattan"
    power = 1
    label = "laplacian"


@stored
@dataclass(frozen=True)
class Linear(Kernel):
    """:math:`x'y`."""

    label = "linear"

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Products of rows."""
        return np.asarray(linear_kernel(X, Y))

    def diagonal(self, X: Array) -> Array:
        """Squared lengths of rows."""
        return np.asarray(np.einsum("ij,ij->i", X, X))


@stored
@dataclass(frozen=True)
class Polynomial(Kernel):
    r""":math:`(\gamma x'y + c)^p`.

    Parameters
    ----------
    degree : float, default=3
        p.
    coef0 : float, default=1
        c.
    gamma : float, optional
        1/d by default, with d columns.
    """

    degree: float = 3.0
    coef0: float = 1.0
    gamma: float | None = None

    label = "polynomial"

    @property
    def lacks(self) -> str | None:  # type: ignore[override]
        """What is still to be learned from rows."""
        return "gamma" if self.gamma is None else None

    def _fitted(self, X: Array, sample_weight: Array | None) -> Kernel:
        return self if self.gamma is not None else replace(self, gamma=1.0 / X.shape[1])

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Powers of products of rows."""
        return np.asarray(polynomial_kernel(X, Y, self.degree, self.gamma, self.coef0))

    def diagonal(self, X: Array) -> Array:
        """Powers of squared lengths of rows."""
        assert self.gamma is not None
        squared = np.einsum("ij,ij->i", X, X)
        return np.asarray((self.gamma * squared + self.coef0) ** self.degree)


@stored
@dataclass(frozen=True)
class Cosine(Kernel):
    r""":math:`x'y / (\|x\| \|y\|)`."""

    label = "cosine"

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Cosines between rows."""
        return np.asarray(cosine_similarity(X, Y))

    def diagonal(self, X: Array) -> Array:
        """One; zero for rows of zeros."""
        return np.asarray(np.where(np.einsum("ij,ij->i", X, X) > 0, 1.0, 0.0))


@stored
@dataclass(frozen=True)
class Custom(Kernel):
    """A function f(X, Y) of the user's, or an object that can be called so.

    Parameters
    ----------
    function : callable
        One with ``fit(X, sample_weight=None)`` is copied and fitted to the scaled rows of each
        view. One with ``diagonal(X)`` is asked for k(x, x); others are called row by row.
    """

    function: Any

    @property
    def label(self) -> str:  # type: ignore[override]
        """Name of the function, or of its class."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _fitted(self, X: Array, sample_weight: Array | None) -> Kernel:
        """A copy that is fitted, where the object has ``fit``."""
        if not hasattr(self.function, "fit"):
            return self
        copied, options = clone(self.function, safe=False), {}
        if sample_weight is not None and has_fit_parameter(copied, "sample_weight"):
            options["sample_weight"] = sample_weight
        fitted = copied.fit(X, **options)
        return Custom(copied if fitted is None else fitted)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """What the function says, checked."""
        Y = X if Y is None else Y
        K = np.asarray(self.function(X, Y), dtype=float)
        if K.shape != (len(X), len(Y)):
            raise ValueError(
                f"kernels: the callable {self.function!r} returned shape {K.shape} for inputs of "
                f"shapes {X.shape} and {Y.shape}; expected {(len(X), len(Y))}, one row a row of "
                "its first argument and one column a row of its second."
            )
        return self._finite(K)

    def diagonal(self, X: Array) -> Array:
        """What the object says, or the function of each row and itself."""
        if not hasattr(self.function, "diagonal"):
            return np.array([self(x[None])[0, 0] for x in X])
        values = np.asarray(self.function.diagonal(X), dtype=float)
        if values.shape != (len(X),):
            raise ValueError(
                f"kernels: the diagonal of {self.function!r} has shape {values.shape} for "
                f"{len(X)} rows; expected {(len(X),)}."
            )
        return self._finite(values)

    def _finite(self, values: Array) -> Array:
        if not np.isfinite(values).all():
            raise ValueError(f"kernels: the callable {self.function!r} returned NaN or infinity.")
        return values


#: The families known by name.
KERNELS: dict[str, Callable[[], Kernel]] = {
    family.label: family for family in (Rbf, Laplacian, Linear, Polynomial, Cosine)
}


def parse_kernels(kernels: Any, view: str | None = None) -> list[Kernel]:
    """Kernels of names of `KERNELS`, kernel objects, functions f(X, Y), or a list that mixes them.

    Of a mapping by view, those of one view; views that it does not name have ``"rbf"``.

    Parameters
    ----------
    kernels : str, kernel, callable, list or mapping
    view : str, optional
        View, where it is a mapping.

    Returns
    -------
    list of Kernel

    Examples
    --------
    >>> parse_kernels(["linear", Polynomial(degree=2)])
    [Linear(), Polynomial(degree=2, coef0=1.0, gamma=None)]
    >>> parse_kernels({"camera": "cosine"}, "camera"), parse_kernels({"camera": "cosine"}, "heat")
    ([Cosine()], [Rbf(width=None, factor=None)])
    """
    if isinstance(kernels, Mapping) and view is not None:
        kernels = kernels.get(view, "rbf")
    items = list(kernels) if isinstance(kernels, list | tuple) else [kernels]
    if not items:
        raise ValueError("kernels: got an empty list; expected at least one kernel.")
    found = list[Kernel]()
    for item in items:
        if isinstance(item, str) and item in KERNELS:
            found.append(KERNELS[item]())
        elif isinstance(item, Kernel):
            found.append(item)
        elif callable(item) and not inspect.isclass(item):
            found.append(Custom(item))
        else:
            raise ValueError(
                f"kernels: got {item!r}; expected one of {sorted(KERNELS)}, a callable f(X, Y) "
                "(which may have fit(X) and diagonal(X)), a list of these, a mapping of view name "
                'to any of these, or "precomputed" (alone).'
            )
    return found


#: Beyond this many rows the mean distance is taken over a `spread_sample`: its relative
#: standard error is then well below one percent, and a width needs no more.
EXACT_ROWS = 4000
#: Rows whose neighbours are looked for (among all rows) to learn how far they usually are.
NEIGHBOUR_ROWS = 1000
#: Distances worked on at a time: what a cache holds.
BAND_CELLS = 2**16
#: Factors of the mean distance that the automatic width keeps within. In one or two dimensions
#: neighbours come as near as there are rows, long after a kernel has become too narrow.
AUTO_RANGE = (0.25, 2.0)
#: Rows this near, as a share of the longest of the centred rows, are copies: they come out of
#: |x|^2 + |y|^2 - 2x'y at the square root of its rounding.
COPY_SHARE = 1e-7


def pair_distances(X: Array, Y: Array | None = None, metric: str = "euclidean") -> Array:
    """Distances between the rows of X and of Y, of shape (n, m); squared where euclidean.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (m, d), optional
        Other rows; X by default.
    metric : {"euclidean", "manhattan"}

    """
    if metric == "manhattan":
        return np.asarray(manhattan_distances(X, Y))
    if X.shape[1] == 1:  # differences are quicker, and exact
        D = X - (X if Y is None else Y).T
        return np.asarray(np.multiply(D, D, out=D))
    squares = np.einsum("ij,ij->i", X, X)
    D = X @ (X if Y is None else Y).T
    D *= -2.0
    D += squares[:, None]
    D += squares if Y is None else np.einsum("ij,ij->i", Y, Y)
    np.maximum(D, 0.0, out=D)
    if Y is None:
        np.fill_diagonal(D, 0.0)
    return np.asarray(D)


def mean_distance(
    X: Array,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    pairs: Array | None = None,
) -> float:
    r"""Mean distance over pairs of different rows.

    .. math::

       D = \frac{\sum_{i \neq k} w_i w_k \, d(x_i, x_k)}{\sum_i w_i (W - \min(w_i, 1))},
       \qquad W = \sum_i w_i

    With unit weights this is the plain mean over pairs. A weight counts as that many copies of
    its row, each of which meets all others, so a row of weight 2 and two equal rows give the same
    width. A row of weight below 1 has no copy to meet, so weights that are all small give the
    same width as weights that are all 1.

    Parameters
    ----------
    X : array of shape (n, d)
        One view of the training rows.
    metric : {"euclidean", "manhattan"}
    sample_weight : array of shape (n,), optional
        Number of copies that each row stands for.
    pairs : array of shape (n, n), optional
        What `pair_distances` gives for these rows, where it is known.

    Returns
    -------
    float
        0.0 where all rows coincide, or there is one.
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    # Distances do not feel a shift; removing it keeps the expansion |x|^2 + |y|^2 - 2x'y accurate.
    X = X - X.mean(axis=0)
    if len(X) > EXACT_ROWS:
        pick = spread_sample(np.linalg.norm(X, axis=1), EXACT_ROWS)
        X, weights, pairs = X[pick], weights[pick], None
    total, floor = 0.0, _copy_distance(X, metric)
    one_column = X.shape[1] == 1
    if one_column:  # each value counts by the weights of smaller and of larger ones
        order = np.argsort(X[:, 0], kind="stable")
        above_least, counts = X[order, 0] - X[order[0], 0], weights[order]
        up_to = np.cumsum(counts)
        total = 2.0 * float((counts * above_least) @ (2.0 * up_to - counts - up_to[-1]))
    for rows, block in () if one_column else _bands(X, X, metric, pairs):
        half = block[:, rows.start :]  # of a symmetric matrix
        apart = half * (half > floor)
        if metric == "euclidean":
            np.sqrt(apart, out=apart)
        counts = 2.0 * weights[rows.start :]
        counts[: len(block)] = weights[rows]  # both halves of the square on the diagonal are here
        total += float(weights[rows] @ (apart @ counts))
    count = float(weights @ (weights.sum() - np.minimum(weights, 1.0)))
    return total / count if count > 0 else 0.0  # of one row


def neighbour_distance(
    X: Array,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    pairs: Array | None = None,
) -> float:
    r"""Median over rows of the distance to the nearest row that is not a copy of it: ``"auto"``.

    .. math:: s = \mathrm{median}_i \min_{x_k \ne x_i} d(x_i, x_k)

    A kernel should separate a row from its neighbours and still see some of them. In few dimensions
    neighbours are near (s is a quarter of the mean distance or less), in many dimensions all rows
    are nearly equally far from each other (s is close to it): no one factor serves both. Beyond
    ``NEIGHBOUR_ROWS`` rows a `spread_sample` stands for all, and its neighbours are looked for
    among all rows. 0 where all rows coincide.

    Parameters
    ----------
    X, metric, sample_weight, pairs
        As in `mean_distance`.

    Examples
    --------
    >>> neighbour_distance(np.array([[0.0], [1.0], [3.0], [3.0]]))
    1.5
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    X = X - X.mean(axis=0)
    some, floor = X, _copy_distance(X, metric)
    if len(X) > NEIGHBOUR_ROWS:
        pick = spread_sample(np.linalg.norm(X, axis=1), NEIGHBOUR_ROWS)
        some, weights, pairs = X[pick], weights[pick], None
    bands = _bands(some, X, metric, pairs)
    nearest = np.concatenate(
        [np.where(block > floor, block, np.inf).min(axis=1) for _, block in bands]
    )
    nearest = np.sqrt(nearest) if metric == "euclidean" else nearest
    if not np.isfinite(nearest).all():  # all rows are copies of one
        return 0.0
    return _weighted_median(nearest, weights)


def _bands(X: Array, Y: Array, metric: str, pairs: Array | None) -> Iterator[tuple[slice, Array]]:
    """Distances of some rows of X at a time to those of Y, from ``pairs`` where they are known."""
    step = max(1, BAND_CELLS // max(len(Y), 1))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        yield rows, pair_distances(X[rows], Y, metric) if pairs is None else pairs[rows]


def _copy_distance(X: Array, metric: str) -> float:
    """Distance up to which centred rows are copies of each other; squared where euclidean."""
    if metric == "euclidean":
        return COPY_SHARE**2 * float(np.einsum("ij,ij->i", X, X).max(initial=0.0))
    return COPY_SHARE * float(np.abs(X).sum(axis=1).max(initial=0.0))


def spread_sample(size: Array, most: int) -> Indices:
    """Some of the rows, evenly by their distance from the centre, whatever their order.

    Parameters
    ----------
    size : array of shape (n,)
        Distance of each row from the centre.
    most : int
        Number of rows, at most.

    Examples
    --------
    >>> spread_sample(np.array([3.0, 1.0, 2.0, 5.0, 4.0]), 3)
    array([1, 0, 3])
    """
    place = np.linspace(0, len(size) - 1, most).round().astype(int)
    return np.asarray(np.argsort(size, kind="stable")[place])


def _weighted_median(values: Array, weights: Array) -> float:
    """The middle of a weighted sample: the mean of its two middle values where there are two."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order])
    half, last = share[-1] / 2, len(order) - 1
    low = np.searchsorted(share, half * (1.0 - 1e-12))  # whichever way sums are rounded
    high = min(np.searchsorted(share, half * (1.0 + 1e-12), side="right"), last)
    return float((values[order[low]] + values[order[high]]) / 2)

"""Kernel functions: what a user names, and what a fit makes of it.

A `KernelSpec` is what the user asked for ("rbf", a callable, ...). Fitting it to one view of the
training rows gives a `FittedKernel`, which knows its absolute width and evaluates itself. All
evaluations are scikit-learn's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import (
    cosine_similarity,
    euclidean_distances,
    linear_kernel,
    manhattan_distances,
    polynomial_kernel,
)

from kernull._threads import in_threads
from kernull._typing import Array, Indices

KernelFunction = Callable[[Array, Array], Array]


#: The families known by name, each with the metric that its width is measured in, if any.
KERNELS: dict[str, str | None] = {
    "rbf": "euclidean", "laplacian": "manhattan", "linear": None, "polynomial": None,
    "cosine": None,
}  # fmt: skip


def no_rule_for(kind: str) -> NotImplementedError:
    """What to raise where a family of `KERNELS` has no rule."""
    return NotImplementedError(f"kernels: {kind!r} is in KERNELS, but no rule here evaluates it.")


@dataclass(frozen=True)
class KernelSpec:
    """A kernel as the user asked for it: a family of `KERNELS`, or a function."""

    kind: str
    function: KernelFunction | None = None

    def fit(
        self,
        X: Array,
        factors: Iterable[float | str] = (1.0,),
        sample_weight: Array | None = None,
        distances_out: dict[str, list[Array]] | None = None,
    ) -> list[FittedKernel]:
        """Fit to one view of the training rows: one kernel per width factor, or just one.

        The factor ``"auto"`` is that of `auto_factor`.
        ``distances_out`` receives the distances of each metric that gave a width, as in
        `mean_distance`.
        """
        if self.function is not None:
            return [FittedKernel(self.kind, function=self.function)]
        if self.kind == "polynomial":
            params = {"degree": 3.0, "coef0": 1.0, "gamma": 1.0 / X.shape[1]}
            return [FittedKernel(self.kind, params=params)]
        metric = KERNELS[self.kind]
        if self.kind in ("linear", "cosine"):
            return [FittedKernel(self.kind)]
        if metric is None or self.kind not in ("rbf", "laplacian"):
            raise no_rule_for(self.kind)
        # A constant view (kept on request) has mean distance 0; any width makes its kernel all 1.
        blocks = None if distances_out is None else distances_out.setdefault(metric, [])
        blocks = None if blocks else blocks  # another kernel of this metric was here before
        factors, near = tuple(factors), None
        if "auto" in factors and len(X) <= EXACT_ROWS:
            near = np.full(len(X), np.inf)
        mean = mean_distance(X, metric, sample_weight, distances_out=blocks, near_out=near) or 1.0
        centre = X.mean(axis=0)
        numbers = [
            auto_factor(X, mean, metric, sample_weight, near) if isinstance(f, str) else f
            for f in factors
        ]
        return [FittedKernel(self.kind, width=f * mean, factor=f, centre=centre) for f in numbers]


@dataclass(frozen=True)
class FittedKernel:
    r"""A kernel function with its width fixed by the training rows.

    ======================  ==========================================================
    ``rbf``                 :math:`\exp(-\|x-y\|_2^2 / (2 s^2))`
    ``laplacian``           :math:`\exp(-\|x-y\|_1 / s)`
    ``linear``              :math:`x'y`
    ``polynomial``          :math:`(x'y/d + 1)^3`
    ``cosine``              :math:`x'y / (\|x\| \|y\|)`
    ======================  ==========================================================

    where s = factor x mean pairwise distance of the view, in the same metric.
    """

    kind: str
    width: float | None = None
    factor: float | None = None
    centre: Array | None = field(default=None, repr=False, compare=False)
    params: dict[str, float] = field(default_factory=dict)
    function: KernelFunction | None = None

    @property
    def metric(self) -> str | None:
        """Metric of the distance that this kernel is a function of, if it is one."""
        return KERNELS.get(self.kind)

    @property
    def label(self) -> str:
        """Name of the function, for people."""
        if self.function is None:
            return self.kind
        return getattr(self.function, "__name__", type(self.function).__name__)

    def distances(self, X: Array, Y: Array | None = None) -> Array:
        """Distances (squared for rbf) between rows; shared by the kernels of one view."""
        assert self.centre is not None
        # Subtracting the training centre changes no distance and keeps the expansion accurate
        # for data far from the origin.
        Xc = X - self.centre
        Yc = None if Y is None else Y - self.centre
        if self.kind == "rbf":
            return np.asarray(euclidean_distances(Xc, Yc, squared=True))
        if self.kind == "laplacian":
            return np.asarray(manhattan_distances(Xc, Yc))
        raise no_rule_for(self.kind)

    def of_distances(self, distances: Array, out: Array | None = None) -> Array:
        """Kernel values from what `distances` returned, in a new array unless ``out`` is given."""
        assert self.width is not None
        if self.kind == "rbf":
            scale = 2.0 * self.width * self.width
        elif self.kind == "laplacian":
            scale = self.width
        else:
            raise no_rule_for(self.kind)
        out = np.divide(distances, -scale, out=out)
        return np.asarray(np.exp(out, out=out))

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Kernel matrix between the rows of X and of Y (of X and X when Y is None)."""
        if self.metric is not None:
            return self.of_distances(self.distances(X, Y))
        if self.function is not None:
            return self._call_function(X, X if Y is None else Y)
        if self.kind == "linear":
            return np.asarray(linear_kernel(X, Y))
        if self.kind == "polynomial":
            return np.asarray(polynomial_kernel(X, Y, **self.params))
        if self.kind == "cosine":
            return np.asarray(cosine_similarity(X, Y))
        raise no_rule_for(self.kind)

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for each row."""
        if self.kind in ("rbf", "laplacian"):
            return np.ones(len(X))
        if self.function is not None:
            return np.array([self._call_function(x[None], x[None])[0, 0] for x in X])
        squared = np.einsum("ij,ij->i", X, X)
        if self.kind == "linear":
            return np.asarray(squared)
        if self.kind == "polynomial":
            gamma, coef0 = self.params["gamma"], self.params["coef0"]
            return np.asarray((gamma * squared + coef0) ** self.params["degree"])
        if self.kind == "cosine":
            return np.asarray(np.where(squared > 0, 1.0, 0.0))
        raise no_rule_for(self.kind)

    def _call_function(self, X: Array, Y: Array) -> Array:
        assert self.function is not None
        K = np.asarray(self.function(X, Y), dtype=float)
        if K.shape != (len(X), len(Y)):
            raise ValueError(
                f"kernels: the callable {self.function!r} returned shape {K.shape} for inputs of "
                f"shapes {X.shape} and {Y.shape}; expected {(len(X), len(Y))}, one row a row of "
                "its first argument and one column a row of its second."
            )
        if not np.isfinite(K).all():
            raise ValueError(f"kernels: the callable {self.function!r} returned NaN or infinity.")
        return K


def parse_kernels(kernels: Any) -> list[KernelSpec]:
    """Specifications of names of `KERNELS`, functions f(X, Y), or a list that mixes them."""
    items = list(kernels) if isinstance(kernels, list | tuple) else [kernels]
    if not items:
        raise ValueError("kernels: got an empty list; expected at least one kernel.")
    specs = []
    for item in items:
        if isinstance(item, str) and item in KERNELS:
            specs.append(KernelSpec(item))
        elif callable(item) and not inspect.isclass(item):
            specs.append(KernelSpec("callable", function=item))
        else:
            raise ValueError(
                f"kernels: got {item!r}; expected one of {sorted(KERNELS)}, a callable f(X, Y), a "
                'list of these, or "precomputed" (alone).'
            )
    return specs


#: Beyond this many rows the mean distance is taken over a fixed random subsample: its relative
#: standard error is then well below one percent, and a width needs no more.
EXACT_ROWS = 4000
BLOCK_ROWS = 128
#: Distances of a block that a thread works on, where rows are many.
BLOCK_CELLS = 2**22
#: Rows whose neighbours are looked for (among all rows) to learn how far they usually are.
NEIGHBOUR_ROWS = 1000
#: Factors of the mean distance that the automatic width keeps within. In one or two dimensions
#: neighbours come as near as there are rows, long after a kernel has become too narrow.
AUTO_RANGE = (0.25, 2.0)


def mean_distance(
    X: Array,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    distances_out: list[Array] | None = None,
    near_out: Array | None = None,
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
    metric : str
        Any metric of ``sklearn.metrics.pairwise_distances``.
    sample_weight : array of shape (n,), optional
        Number of copies that each row stands for.
    distances_out : list, optional
        Receives the distances that were computed, for whoever needs them next: block by block of
        ``BLOCK_ROWS`` rows against themselves and all later ones, squared where the metric is
        euclidean. Stays empty beyond ``EXACT_ROWS`` rows.
    near_out : array of shape (n,), optional
        Infinities, lowered to the distance to the nearest other row, squared where the metric is
        euclidean. For no more than ``EXACT_ROWS`` rows.

    Returns
    -------
    float
        The mean distance; 0.0 when all rows coincide.
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    if len(X) > EXACT_ROWS:
        pick = np.random.default_rng(0).choice(len(X), EXACT_ROWS, replace=False)
        X, weights, distances_out = X[pick], weights[pick], None
    pairs = float(weights @ (weights.sum() - np.minimum(weights, 1.0)))
    # Distances do not feel a shift; removing it keeps the expansion |x|^2 + |y|^2 - 2x'y accurate.
    X = X - X.mean(axis=0)
    block_of = squared_blocks(X) if metric == "euclidean" else _blocks(X, metric)
    lock = Lock()

    def work(start: int) -> tuple[float, Array | None]:
        rows, rest = slice(start, start + BLOCK_ROWS), slice(start, None)
        block = block_of(rows, rest)
        if near_out is not None:
            np.fill_diagonal(block, np.inf)
            least = block.min(axis=0)
            least[: len(block)] = np.minimum(least[: len(block)], block.min(axis=1))
            with lock:
                np.minimum(near_out[rest], least, out=near_out[rest])
        np.fill_diagonal(block, 0.0)
        kept = None if distances_out is None else block
        if metric == "euclidean":
            block = np.sqrt(block, out=None if kept is not None else block)
        counts = 2.0 * weights[rest]
        counts[:BLOCK_ROWS] = weights[rows]  # both halves of the square on the diagonal are here
        return float(weights[rows] @ (block @ counts)), kept

    # half of a symmetric matrix, in cached blocks
    found = in_threads(work, range(0, len(X), BLOCK_ROWS))
    if distances_out is not None:
        distances_out += [block for _, block in found if block is not None]
    weighted_sum = sum(part for part, _ in found)
    return weighted_sum / pairs


def _blocks(X: Array, metric: str) -> Callable[[Any, slice], Array]:
    """Distances between two ranges of rows."""
    return lambda rows, rest: np.asarray(pairwise_distances(X[rows], X[rest], metric=metric))


def squared_blocks(X: Array) -> Callable[..., Array]:
    """Squared euclidean distances between two ranges of centred rows, in ``out`` if it is given.

    |x|^2 + |y|^2 - 2x'y is one product of (-2x, |x|^2, 1) and (y, 1, |y|^2): adding the norms
    afterwards would take longer than the product. With more columns than rows it would not, and
    half of all products serve for the whole.
    """
    if X.shape[1] > len(X):
        whole = X @ X.T
        squares = np.diagonal(whole).copy()
        whole *= -2.0
        whole += squares[:, None]
        whole += squares
        np.maximum(whole, 0.0, out=whole)
        return lambda rows, rest, out=None: np.positive(whole[rows, rest], out=out)  # a copy
    squares, ones = np.einsum("ij,ij->i", X, X), np.ones(len(X))
    left = np.column_stack([-2.0 * X, squares, ones])
    right = np.column_stack([X, ones, squares])

    def block(rows: Any, rest: slice, out: Array | None = None) -> Array:
        out = np.matmul(left[rows], right[rest].T, out=out)
        return np.asarray(np.maximum(out, 0.0, out=out))

    return block


def neighbour_distance(
    X: Array,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    near: Array | None = None,
) -> float:
    r"""Median over rows of the distance to the nearest row that is not a copy of it.

    Arguments as in `mean_distance`; beyond ``NEIGHBOUR_ROWS`` rows a subsample stands for all, and
    its neighbours are looked for among all rows. 0 where all rows coincide. ``near``, of shape
    (n,), is what `mean_distance` found, for rows that have no copies.

    Examples
    --------
    >>> import numpy as np
    >>> neighbour_distance(np.array([[0.0], [1.0], [3.0], [3.0]]))
    1.5
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    X = X - X.mean(axis=0)
    euclidean, pick = metric == "euclidean", np.arange(len(X))
    if len(X) > NEIGHBOUR_ROWS:
        pick = np.random.default_rng(0).choice(len(X), NEIGHBOUR_ROWS, replace=False)
    # Copies come out of |x|^2 + |y|^2 - 2x'y at the square root of its rounding.
    size = np.linalg.norm(X, axis=1) if euclidean else np.abs(X).sum(axis=1)
    copy = 1e-7 * float(size.max(initial=0.0))
    floor = copy**2 if euclidean else copy
    nearest = np.zeros(len(pick)) if near is None else near[pick]
    copied = np.flatnonzero(nearest <= floor)

    def work(some: Indices) -> None:
        block = block_of(pick[some], slice(None))
        block[block <= floor] = np.inf
        nearest[some] = block.min(axis=1)

    if len(copied):
        block_of = squared_blocks(X) if euclidean else _blocks(X, metric)
        step = max(1, min(BLOCK_ROWS, BLOCK_CELLS // len(X)))
        in_threads(work, [copied[start : start + step] for start in range(0, len(copied), step)])
    nearest = np.sqrt(nearest) if euclidean else nearest
    if not np.isfinite(nearest).all():  # all rows are copies of one
        return 0.0
    if sample_weight is None:
        return float(np.median(nearest))
    return weighted_median(nearest, weights[pick])


def weighted_median(values: Array, weights: Array) -> float:
    """The middle of a weighted sample: the mean of its two middle values where there are two."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order])
    low, high = (
        order[min(np.searchsorted(share, share[-1] / 2, side=side), len(order) - 1)]
        for side in ("left", "right")
    )
    return float((values[low] + values[high]) / 2)


def auto_factor(
    X: Array,
    mean: float,
    metric: str = "euclidean",
    sample_weight: Array | None = None,
    near: Array | None = None,
) -> float:
    r"""The width ``"auto"``, as a factor of the mean distance D.

    .. math:: s = \mathrm{median}_i \min_{x_k \ne x_i} d(x_i, x_k)

    the distance that one row usually has to the nearest other. A kernel should tell a row from its
    neighbours and still see some of them. In few dimensions neighbours are near (s is D/4 or
    less), in many dimensions all rows are nearly equally far from each other (s is close to D): no
    one factor of D serves both. Gives s / D, from `AUTO_RANGE`, of the scaled rows X of one view.
    """
    nearest = neighbour_distance(X, metric, sample_weight, near=near)
    low, high = AUTO_RANGE
    return float(np.clip(nearest / mean, low, high))

"""The kernels of a model: views, their scaling and their kernels, fitted to rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from kernull._fields import DERIVED, POSITIVE, Checked, Range, Shape, stored
from kernull._text import visible
from kernull._typing import Array, Indices, Mask
from kernull.errors import ConstantViewWarning, warn
from kernull.kernels import (
    NEIGHBOUR_ROWS,
    Custom,
    DistanceKernel,
    Kernel,
    pair_distances,
    parse_kernels,
)
from kernull.views.scaling import (
    LARGEST,
    Quantile,
    Standard,
    Unscaled,
    constant_columns,
    fit_scaling,
    knows_unseen,
    read_scalings,
    scaling_name,
    transformed,
)

#: What a table may hold: its squares are numbers.
TABLE_RANGE = Range(-LARGEST, LARGEST)


@stored
@dataclass(frozen=True)
class ScaledView(Checked):
    """One view of the training rows in one scaling, with the kernels built on it."""

    name: str
    columns: Annotated[Indices, Shape("_d"), Range(low=0)]
    scaler: Any
    """A fitted transformer."""
    train: Annotated[Array, DERIVED]
    """The training rows as it maps them: of as many columns as it gives."""
    kernels: tuple[Kernel, ...]

    def contradiction(self) -> str | None:
        """What does not fit together."""
        if not self.kernels or not len(self.columns):
            return f"the view {self.name[:40]!r} has no kernels or no columns"
        if len(np.unique(self.columns)) < len(self.columns):
            return "columns that cannot be"
        if isinstance(self.scaler, Standard):
            mean = vars(self.scaler).get("mean_")
            if mean is None or mean.shape != self.columns.shape:
                return "a scaling of other columns"
        lacking = (kernel.lacks for kernel in self.kernels)
        return next((f"no {name}" for name in lacking if name), None)

    @property
    def can_be_stored(self) -> bool:
        """Whether files keep all that was learned; what else there is, is learned again."""
        plain = isinstance(self.scaler, Standard | Unscaled)
        return plain and not any(isinstance(kernel, Custom) for kernel in self.kernels)

    def reads(self, table: Array) -> bool:
        """Whether a table has the columns of the view.

        Parameters
        ----------
        table : array of shape (m, d)
        """
        return bool(self.columns.max(initial=0) < table.shape[1])

    def restored(
        self,
        X: Array,
        weight: Array | None,
        width_rows: int | None = None,
        scaling_rows: int | None = None,
    ) -> ScaledView:
        """The view of a file with its rows X, scaled.

        A file keeps neither what a quantile scaling learns nor what objects from outside do: they
        are fitted again.

        Parameters
        ----------
        X : array of shape (n, d)
        weight : array of shape (n,) or None
        width_rows : int, optional
            Number of rows that widths came from.
        scaling_rows : int, optional
            Number of rows that scalings came from.
        """
        part, first = X[:, self.columns], slice(width_rows)
        if isinstance(self.scaler, Standard | Unscaled):
            scaler, train = self.scaler, transformed(self.scaler, part)
        else:
            scaler, train = fit_scaling(self.scaler, part, weight, self.name, scaling_rows)
        few = None if weight is None else weight[first]
        kernels = tuple(
            one
            for kernel in self.kernels
            for one in (
                kernel.fit(train[first], (1.0,), few) if isinstance(kernel, Custom) else [kernel]
            )
        )
        return replace(self, scaler=scaler, train=train, kernels=kernels)

    @cached_property
    def centre(self) -> Array:
        """Mean of the training rows: with it subtracted from all, distances lose fewer digits."""
        return np.asarray(self.train.mean(axis=0))

    @property
    def scaling(self) -> str:
        """Name of the scaling."""
        return scaling_name(self.scaler)

    def transform(self, X: Array) -> Array:
        """New rows of this view, scaled; what is too far to be squared is brought nearer.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows of the whole table.

        Returns
        -------
        array of shape (m, d_v)
        """
        return transformed(self.scaler, X[:, self.columns])


@stored
@dataclass(frozen=True)
class KernelSet(Checked):
    """All kernels of a model: J functions on named, scaled views of the training rows.

    Kernels are numbered view by view, and scaling by scaling within a view. Kernels of one view
    and scaling that are functions of the same distance share its computation.
    """

    views: tuple[ScaledView, ...]
    kernel_names: Annotated[tuple[str, ...], Shape("J")]
    rows: Annotated[Array | None, Shape("_rows", "d"), TABLE_RANGE] = None
    """The rows that the views were fitted to, all columns."""
    weight: Annotated[Array | None, Shape("_rows"), Range(low=POSITIVE)] = None
    """Their weights; None where all are one."""
    taken: Annotated[Indices | None, Shape("n"), Range(low=0)] = None
    """Which of these rows are the training rows; None: all."""

    def sizes(self) -> dict[str, int]:
        """Sizes that others in a model must have."""
        return {"n": self.n}

    def contradiction(self) -> str | None:
        """What does not fit together."""
        if not self.views or self.rows is None or not self.n:
            return "no views, or no rows"
        if self.taken is not None and self.taken.max() >= len(self.rows):
            return "rows that are not there"
        if not all(view.reads(self.rows) for view in self.views):
            return "columns that are not there"
        count = sum(len(view.kernels) for view in self.views)
        if count != len(self.kernel_names):
            return f"{count} kernels for {len(self.kernel_names)} names"
        return None

    def restored(self) -> KernelSet:
        """The kernels of a file, with the scaled rows."""
        assert self.rows is not None
        views = tuple(view.restored(self.rows, self.weight) for view in self.views)
        whole = replace(self, views=views)
        if self.taken is None:
            return whole
        return whole._holding([view.train[self.taken] for view in views])

    @classmethod
    def fit(
        cls,
        X: Array,
        views: Mapping[str, Indices],
        *,
        kernels: Any = "rbf",
        widths: Any = 1.0,
        scaling: Any = "standard",
        sample_weight: Array | None = None,
        drop_constant: bool = True,
    ) -> KernelSet:
        """Fit scaling and widths of every view; those that are constant are `joined` to others.

        Parameters
        ----------
        X : array of shape (n, d)
        views : mapping
        kernels : str, kernel, callable or list
            As in `MultiKernelFisherNull`.
        widths : float, "auto" or a sequence
            Factors of the mean distance.
        scaling : str, transformer or sequence
            As in `MultiKernelFisherNull`.
        sample_weight : array of shape (n,), optional
        drop_constant : bool
            Whether constant views are joined to others.
        """
        if sample_weight is not None:  # rows of weight zero take no part, here or later
            X, sample_weight = X[sample_weight > 0], sample_weight[sample_weight > 0]
        recipe = Recipe(views, kernels, widths, scaling)
        return (recipe.varying(X) if drop_constant else recipe).fit(X, sample_weight)

    def __repr__(self) -> str:
        names = visible(", ".join(view.name for view in self.views[:6]))
        names += ", ..." if len(self.views) > 6 else ""
        return f"KernelSet(J={self.J}, n={self.n}; views: {names})"

    @property
    def J(self) -> int:
        """Number of kernels."""
        return len(self.kernel_names)

    @property
    def n(self) -> int:
        """Number of training rows."""
        held = self.rows if self.taken is None else self.taken  # before the rows are scaled
        train = self.views[0].train
        return len(held if train is None and held is not None else train)

    @property
    def kernel_views(self) -> tuple[str, ...]:
        """Name of the view that each kernel is built on, of length J."""
        return tuple(view.name for view in self.views for _ in view.kernels)

    def matrices(self, X: Array | None = None) -> Iterator[tuple[int, Array]]:
        """Yield (j, K_j) between the rows of X (training rows if None) and the training rows.

        Parameters
        ----------
        X : array of shape (m, d), optional
            New rows; the training rows by default.

        Returns
        -------
        iterator of (int, array of shape (m, n))
        """
        j = 0
        for view in self.views:
            left, right = (view.train, None) if X is None else (view.transform(X), view.train)
            metric, distances = "", np.empty(0)
            for kernel in view.kernels:
                if isinstance(kernel, DistanceKernel):
                    if kernel.metric != metric:
                        metric, distances = kernel.metric, kernel.distances(left, right)
                    yield j, kernel.of_distances(distances)
                else:
                    yield j, kernel(left, right)
                j += 1

    def diagonal(self, X: Array) -> Array:
        """k_j(x, x), of shape (J, m).

        Parameters
        ----------
        X : array of shape (m, d)

        Returns
        -------
        array of shape (J, m)
        """
        blocks = [(view.transform(X), view.kernels) for view in self.views]
        return np.stack([kernel.diagonal(rows) for rows, kernels in blocks for kernel in kernels])

    def take(self, index: Any) -> KernelSet:
        """The set with some of its training rows; scaling and widths stay as fitted.

        Parameters
        ----------
        index : integer array, mask or slice
            Training rows to keep.
        """
        out = self._holding([view.train[index] for view in self.views])
        if self.rows is not None and all(view.can_be_stored for view in self.views):
            weight = None if self.weight is None else self.weight[index]
            return replace(out, rows=self.rows[index], weight=weight)
        taken = np.arange(self.n) if self.taken is None else self.taken
        return replace(out, taken=taken[index])

    def combine(self, weights: Array, X: Array | None = None) -> Array:
        """Sum of b_j K_j between the rows of X (training rows if None) and the training rows.

        Kernels are added up as they are evaluated; those without weight are left out.

        Parameters
        ----------
        weights : array of shape (J,)
        X : array of shape (m, d), optional
            New rows; the training rows by default.

        Returns
        -------
        array of shape (m, n)
        """
        weights = np.asarray(weights, dtype=float)
        used = weights > 0
        kernels, b = self.select(used), weights[used]
        total, part = np.zeros((2, self.n if X is None else len(X), self.n))
        for j, K in kernels.matrices(X):
            total += np.multiply(K, b[j], out=part)  # K may belong to the user's function
        return np.asarray(total)

    def with_rows(self, X: Array) -> KernelSet:
        """The same scaling, kernels and widths with other training rows.

        Parameters
        ----------
        X : array of shape (n, d)
            Other training rows.
        """
        return replace(
            self._holding([view.transform(X) for view in self.views]),
            rows=None,
            weight=None,
            taken=None,
        )

    def _holding(self, rows: list[Array]) -> KernelSet:
        pairs = zip(self.views, rows, strict=True)
        return replace(self, views=tuple(replace(view, train=part) for view, part in pairs))

    def select(self, mask: Mask) -> KernelSet:
        """The set of some of the kernels, in the same order.

        Parameters
        ----------
        mask : mask of shape (J,)
            Kernels to keep.
        """
        kept, start = [], 0
        for view in self.views:
            picked = mask[start : start + len(view.kernels)]
            start += len(view.kernels)
            kernels = tuple(k for k, keep in zip(view.kernels, picked, strict=True) if keep)
            if kernels:
                kept.append(replace(view, kernels=kernels))
        names = tuple(n for n, keep in zip(self.kernel_names, mask, strict=True) if keep)
        return replace(self, views=tuple(kept), kernel_names=names)


#: Name of all columns as one view.
WHOLE = "all views together"


@dataclass(frozen=True)
class Recipe:
    """The columns of each view, and how their scaling and kernels are fitted.

    Parameters
    ----------
    views : mapping of str to integer array
        Columns of each view.
    kernels, widths, scaling
        As `kernull.MultiKernelFisherNull` takes them.
    """

    views: Mapping[str, Indices]
    kernels: Any = "rbf"
    widths: Any = "auto"
    scaling: Any = "auto"

    @property
    def J(self) -> int:
        """Number of kernels."""
        widths = len(parse_widths(self.widths))
        return sum(
            len(read_scalings(self.scaling, view)) * (widths if kernel.has_widths else 1)
            for view in self.views
            for kernel in parse_kernels(self.kernels, view)
        )

    def fit(self, X: Array, weight: Array | None = None) -> KernelSet:
        """Scalings and kernels of every view, by these rows and their positive weights.

        Parameters
        ----------
        X : array of shape (n, d)
        weight : array of shape (n,), optional
        """
        views = tuple(view for view, _ in self.fit_views(X, weight))
        return KernelSet(views, names_by_view(views), X, weight)

    def fit_views(
        self,
        X: Array,
        weight: Array | None = None,
        width_rows: int | None = None,
        scaling_rows: int | None = None,
    ) -> Iterator[tuple[ScaledView, Mapping[str, Array]]]:
        """Each view in each of its scalings, and the distances between its first rows, by metric.

        Widths come from the first ``width_rows`` rows, scalings from the first ``scaling_rows``,
        and from all by default.

        Parameters
        ----------
        X : array of shape (n, d)
        weight : array of shape (n,), optional
        width_rows : int, optional
            Number of rows that widths come from.
        scaling_rows : int, optional
            Number of rows that scalings come from.

        Returns
        -------
        iterator of (ScaledView, dict)
            Distances have shape (w, w).
        """
        factors, read = parse_widths(self.widths), columns_read(self.views)
        ranks: tuple[Quantile, Array] | None = None  # of all columns: views and the whole share it
        for name, columns in self.views.items():
            part, kernels = X[:, columns], parse_kernels(self.kernels, name)
            check_size(name, part, columns)
            metrics = {kernel.metric for kernel in kernels if kernel.metric is not None}
            for scaling in read_scalings(self.scaling, name):
                if type(scaling) is Quantile:
                    ranks = ranks or fit_scaling(scaling, X[:, read], weight, name, scaling_rows)
                    at = np.searchsorted(read, columns)
                    scaler, Z = ranks[0].of_columns(at), ranks[1][:, at]
                else:
                    scaler, Z = fit_scaling(scaling, part, weight, name, scaling_rows)
                first, counts = Z[:width_rows], None if weight is None else weight[:width_rows]
                pairs = {}
                if len(first) <= NEIGHBOUR_ROWS:  # for widths and for matrices
                    centred = first - first.mean(axis=0)
                    pairs = {name: pair_distances(centred, None, name) for name in metrics}
                fitted = (k for spec in kernels for k in spec.fit(first, factors, counts, pairs))
                yield ScaledView(name, columns, scaler, Z, tuple(fitted)), pairs

    def varying(self, X: Array) -> Recipe:
        """The same without views that are constant on the rows, which are `joined` to others.

        Parameters
        ----------
        X : array of shape (n, d)
        """
        hosts = [name for name in self.views if knows_unseen(self.scaling, name)]
        return replace(self, views=joined(self.views, constant_columns(X), hosts))

    def with_whole(self) -> Recipe:
        """The same views and, where they are several, all columns that they read as one more."""
        if len(self.views) < 2:
            return self
        whole = {WHOLE: columns_read(self.views)}
        return replace(self, views={**self.views, **whole})


def columns_read(views: Mapping[str, Indices]) -> Indices:
    """Columns that are part of any view, in increasing order.

    Parameters
    ----------
    views : mapping
    """
    return np.unique(np.concatenate(list(views.values())))


def joined(
    views: Mapping[str, Indices],
    constant: Mask,
    hosts: Collection[str],
    where: str = "on the training rows",
) -> Mapping[str, Indices]:
    """Views without the constant ones, whose columns join one of the hosts, a wide one if any.

    A constant kernel is alike for all rows and would take much of the weight. Among others
    a constant column leaves all distances of training rows as they are, and a value that was never
    seen is far from all of them. ``hosts`` are views whose scaling knows such values; without one
    that varies, the columns are left out.

    Parameters
    ----------
    views : mapping
    constant : mask of shape (d,)
        Columns that hold one value.
    hosts : collection of str
        Views that may take the columns of others.
    where : str
        Which rows, for the warning.

    Returns
    -------
    mapping
        Columns of each view that varies.
    """
    still = [name for name, columns in views.items() if constant[columns].all()]
    if len(still) == len(views):
        raise ValueError(f"X: every view is constant {where}; there is nothing to learn from.")
    if not still:
        return views
    kept = {name: columns for name, columns in views.items() if name not in still}
    names = ", ".join(map(repr, still))
    message = (
        f"dropped constant view(s) {names}: a kernel that is constant {where} says nothing about "
        "normality and would attract weight."
    )
    able = [name for name in kept if name in hosts]
    if able:
        host = next((name for name in able if len(kept[name]) > 1), able[0])
        more = np.concatenate([views[name] for name in still])
        kept[host] = np.append(kept[host], np.setdiff1d(more, kept[host]))
        message += f" View {host!r} reads the columns: a value never seen there is evidence."
    warn(message, ConstantViewWarning, stacklevel=4)
    return kept


def check_size(name: str, X: Array, columns: Indices) -> None:
    """Refuse a view whose largest value, unless zero, has a square that overflows or vanishes.

    Parameters
    ----------
    name : str
        Of the view, for the message.
    X : array of shape (n, d)
        Rows of this view alone.
    columns : integer array of shape (d,)
        Where its columns lie in the whole table, for the message.
    """
    largest = float(np.abs(X).max(initial=0.0))
    if 1.0 / LARGEST <= largest <= LARGEST or not largest:
        return
    i, j = np.unravel_index(int(np.argmax(np.abs(X))), X.shape)
    raise ValueError(
        f"X: the largest value of the view {name!r} is {X[i, j]:.3g} (row {i}, column "
        f"{columns[j]}); expected between {1 / LARGEST:g} and {LARGEST:g}, so that it can be "
        "squared. Use another unit, or leave out that row."
    )


def parse_widths(widths: Any) -> tuple[float | str, ...]:
    """Factors of the mean distance from one number or several; ``"auto"`` stays for the views.

    Parameters
    ----------
    widths : float, "auto" or a sequence of these
    """
    if isinstance(widths, str) and widths == "auto":
        return ("auto",)
    try:
        factors = tuple(np.asarray(widths, dtype=float).ravel().tolist())
    except (TypeError, ValueError):
        factors = ()
    if not factors or not all(np.isfinite(f) and f > 0 for f in factors):
        raise ValueError(
            f"widths: got {widths!r}; expected a positive factor of the mean pairwise distance, "
            "several of them, or 'auto'."
        )
    return factors


def names_by_view(views: Sequence[ScaledView]) -> tuple[str, ...]:
    """Name kernels by their view, adding function and width only where two would be alike."""
    scalings = Counter(view.name for view in views)
    labels = Counter((view.name, view.scaling) for view in views)
    names = []
    for view in views:
        several_functions = len({kernel.label for kernel in view.kernels}) > 1
        several_widths = len({k.factor for k in view.kernels if k.factor is not None}) > 1
        for kernel in view.kernels:
            parts = [view.name]
            if scalings[view.name] > 1:
                twice = labels[view.name, view.scaling] > 1  # such as two PCA
                parts.append(repr(view.scaler) if twice else view.scaling)
            if several_functions:
                parts.append(kernel.label)
            if several_widths and kernel.factor is not None:
                parts.append(f"{kernel.factor:g}D")
            names.append(" ".join(parts))
    return tuple(names)

"""Rows to learn from, and the kernels that a model keeps.

There are two kinds: rows of a table, whose kernels are functions (`TableRows`, `TableKernels`), and
rows of precomputed kernels (`PrecomputedRows`, `PrecomputedKernels`). All else in this package asks
rows for what it needs: their keys, a part of them, and the kernels and scores learned from them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from kernull._fields import Range, Shape, Size, stored
from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import Cross, Split
from kernull.detector.cross_fit import dense_ranks, row_keys
from kernull.detector.gate import MOST, draw_parts, mixed_rows
from kernull.detector.precomputed import PrecomputedScores
from kernull.detector.scores import Evidence, Nearest, Projection, TableScores, read_scores
from kernull.errors import MissingCapabilityError
from kernull.kernels import Rbf, parse_kernels
from kernull.operators import Budget, CrossKernels, DenseStack, plan
from kernull.operators.dense import (
    check_names,
    names_of_kernels,
    read_precomputed,
    with_diagonal,
    with_scale,
)
from kernull.operators.normalise import normalising_factors, read_normalisation
from kernull.views import KernelSet
from kernull.views.kernel_set import WHOLE, Recipe, columns_read


@stored
@dataclass(frozen=True, eq=False)
class TableKernels:
    """Kernels on the scaled views of a table, with one factor each."""

    set: KernelSet
    factors: Annotated[Array | None, Shape("J"), Range(low=0.0)] = None
    """Those of the normalisation, of shape (J,); None where there is none."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the J kernels."""
        return self.set.kernel_names

    @property
    def views(self) -> tuple[str, ...]:
        """Name of each kernel's view, of length J."""
        return self.set.kernel_views

    @property
    def n(self) -> int:
        """Rows that new ones are compared with: the training rows, or landmarks."""
        return self.set.n

    @property
    def scale(self) -> Array:
        """The factor of each kernel, of shape (J,)."""
        return np.ones(len(self.names)) if self.factors is None else self.factors

    def cross(self, X: Any, dtype: Any = np.float64, device: Any = None) -> Any:
        """Kernels between new rows, a checked table, and the rows of the model."""
        return CrossKernels(self.set, X, self.factors, device, dtype)

    @property
    def columns(self) -> dict[str, Indices]:
        """Columns of each view."""
        return {view.name: view.columns for view in self.set.views}

    def columns_of(self, views: Collection[str]) -> Indices:
        """Columns of the table that only these views read.

        Parameters
        ----------
        views : collection of str

        Returns
        -------
        integer array
            Columns that no other view reads.
        """
        alone = [view.columns for view in self.set.views if view.name in views]
        others = [view.columns for view in self.set.views if view.name not in views]
        none = np.empty(0, dtype=np.intp)
        return np.setdiff1d(np.concatenate([*alone, none]), np.concatenate([*others, none]))


@stored
@dataclass(frozen=True, eq=False)
class PrecomputedKernels:
    """Kernels that the user computed: new rows come as matrices too."""

    names: Annotated[tuple[str, ...], Shape("J")]
    given_scale: Annotated[Array, Shape("J"), Range(low=0.0)]
    """Factors of the kernels given to fit, of shape (J,)."""
    n: Annotated[int, Size("n")]
    """Rows that the model learned from."""
    n_given: Annotated[int, Range(low=0)]
    """Rows given to fit; more, where some had weight zero or were held out."""
    learned: Annotated[Indices | None, Shape("_learned"), Range(low=0)] = None
    """Positions of the rows learned from among those given; None: all."""
    factors: Annotated[Array | None, Shape("J"), Range(low=0.0)] = None
    """Those of the normalisation, beyond ``given_scale``."""

    @property
    def views(self) -> tuple[str, ...]:
        """Each kernel is a view."""
        return self.names

    @property
    def scale(self) -> Array:
        """The factor of each kernel, of shape (J,)."""
        return self.given_scale if self.factors is None else self.given_scale * self.factors

    def cross(self, X: Any, dtype: Any = np.float64, device: Any = None) -> DenseStack:
        """Kernels between new rows and the rows of the model, checked and scaled.

        Parameters
        ----------
        X : array or KernelStack of shape (J, m, n)
            Kernels between new rows and training rows.
        dtype : NumPy dtype
            Precision of the stack.
        device : torch device, optional
            Where the stack is kept.
        """
        J = len(self.names)
        stack = read_precomputed(self._columns(X), n=self.n, J=J, dtype=dtype)
        check_names(stack, self.names)
        stack = with_scale(stack, self.given_scale)
        return stack if self.factors is None else stack.rescaled(self.factors)

    def _columns(self, X: Any) -> Any:
        """Kernels against all rows given to fit, cut to those it learned from."""
        if self.learned is None:
            return X
        values = X if isinstance(X, DenseStack) else np.asarray(X)
        if values.shape[-1] != self.n_given:
            return X
        if isinstance(values, DenseStack):
            return values.columns(self.learned)
        return values[..., self.learned]

    def silenced(self, X: Any, kept: Mask) -> Any:
        """Kernels of which some may hold anything: they are set to zero.

        Parameters
        ----------
        X : array or KernelStack of shape (J, m, n)
            Kernels as passed.
        kept : mask of shape (J,)
            Kernels that take part.

        Returns
        -------
        array or KernelStack of shape (J, m, n)
        """
        values, scale = (X.kernels, X.scale) if isinstance(X, DenseStack) else (np.asarray(X), None)
        values = np.array(values[None] if values.ndim == 2 else values, dtype=float)
        if values.ndim == 3 and len(values) == len(kept):  # what has another shape is refused later
            values[~kept] = 0.0
        if values.ndim != 3:
            return values
        diagonal, names = (X.own_diagonal, X.names) if isinstance(X, DenseStack) else (None, None)
        return DenseStack(values, scale, diagonal, names)


ModelKernels = TableKernels | PrecomputedKernels


@dataclass(frozen=True)
class Settings:
    """What all methods share: how rows become kernels, and scores a threshold."""

    calibrator: Cross | Split
    false_alarm_rate: float
    memory_limit: int
    decision: Evidence | None = None
    """How the views' evidence is combined; None: by the scores of the method."""
    seed: int = 0
    drop_constant: bool = True
    normalize: Any = "none"
    storage: str = "auto"
    dtype: Any = np.float64
    landmarks: int = 1000
    matrix_free: bool = False
    client: Any = None


class Training(NamedTuple):
    """What a method learns from."""

    kernels: TableKernels | PrecomputedKernels
    """What the model will keep."""
    stack: Any
    """The kernels of all rows."""
    rows: Rows
    """The rows, with the views and factors of the kernels: to learn again from some of them."""
    budget: Budget = Budget()
    """What a solver may keep in memory besides the stack."""
    note: str = ""
    """How the stack is kept, in one line."""

    def combine(self, weights: Array) -> Array:
        """Weighted sum of the kernels, of shape (n, n).

        Parameters
        ----------
        weights : array of shape (J,)
        """
        kernels = self.kernels
        if isinstance(kernels, TableKernels):
            return kernels.set.combine(weights * kernels.scale)
        return np.asarray(self.stack.combine(weights))


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table of numbers, and how views and kernels are made of them."""

    values: Array
    """Of shape (n, d)."""
    recipe: Recipe
    on_device: Any = None
    """The table as a tensor on the GPU to work on, where that is one."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def columns(self) -> int:
        """Number of columns that the views read."""
        return len(columns_read(self.recipe.views))

    def take(self, index: Indices) -> TableRows:
        """Some of the rows.

        Parameters
        ----------
        index : integer array of shape (k,)
            Rows to keep.
        """
        there = self.on_device
        return replace(
            self, values=self.values[index], on_device=None if there is None else there[index]
        )

    def keys(self, seed: int) -> Array:
        """A key for each row, which draws its fold: by the columns that views read, in any unit.

        Parameters
        ----------
        seed : int

        Returns
        -------
        array of shape (n,)
        """
        values = self.values[:, columns_read(self.recipe.views)]
        return row_keys(dense_ranks(values), seed)

    def training(self, weight: Array | None, settings: Settings) -> Training:
        """Kernels fitted to the rows, and their stack; positive weights, None where all are one.

        Parameters
        ----------
        weight : array of shape (n,) or None
        settings : Settings
        """
        on_device = self._fitted_on_device(weight, settings)
        if on_device is not None:
            from kernull.operators.torch import to_host

            kernels = replace(to_host(on_device), rows=self.values)
        else:
            drop, table = settings.drop_constant, self.values
            kernels = (self.recipe.varying(table) if drop else self.recipe).fit(table, weight)
        planned = plan(
            kernels,
            settings.storage,
            dtype=settings.dtype,
            limit=settings.memory_limit,
            landmarks=settings.landmarks,
            matrix_free=settings.matrix_free,
            client=settings.client,
            device=None if self.on_device is None else self.on_device.device,
            on_device=on_device,
        )
        stack, factors, exponent = planned.stack, None, read_normalisation(settings.normalize)
        if exponent:
            factors = normalising_factors(stack, exponent, weight)
            stack = stack.rescaled(factors)
        if stack.landmark_rows is not None:  # new rows will meet the landmarks alone
            kernels = kernels.take(stack.landmark_rows)
        fitted = TableKernels(kernels, factors)
        rows = TableRows(self.values, replace(self.recipe, views=fitted.columns))
        return Training(fitted, stack, rows, planned.budget, planned.note)

    def _fitted_on_device(self, weight: Array | None, settings: Settings) -> Any:
        """A kernel set of the rows on the device; None where it cannot be had.

        Kernels other than rbf, and those of rows that count differently, are fitted on the host and
        evaluated on the device all the same.
        """
        recipe = self.recipe
        rbf = all(parse_kernels(recipe.kernels, view) == [Rbf()] for view in recipe.views)
        if self.on_device is None or weight is not None or not rbf:
            return None
        import torch

        from kernull.operators.torch import fit_on_device

        return fit_on_device(
            self.on_device,
            recipe.views,
            widths=recipe.widths,
            scaling=recipe.scaling,
            drop_constant=settings.drop_constant,
            dtype=torch.float32 if np.dtype(settings.dtype) == np.float32 else torch.float64,
        )

    def cross(self, kernels: TableKernels, settings: Settings) -> Any:
        """Kernels between the rows and those of a model.

        Parameters
        ----------
        kernels : TableKernels
            Of a fitted model.
        settings : Settings

        Returns
        -------
        Stack
            Kernels between these rows and those of the model.
        """
        there = None if self.on_device is None else self.on_device.device
        return kernels.cross(self.values, settings.dtype, there)

    def fit_scores(
        self, decision: Evidence, weight: Array | None, full: TableScores | None = None
    ) -> TableScores:
        """Scores of each view, learned from the rows; ``full``: those of the fit to all.

        Parameters
        ----------
        decision : Evidence
            Which scores, and whether the whole is among them.
        weight : array of shape (n,) or None
        full : TableScores, optional
            Scores learned from all rows, of which a fold keeps the widths.
        """
        recipe = self.recipe.with_whole() if decision.whole else self.recipe
        return TableScores.fit(recipe, read_scores(decision.scores), self.values, weight, full)

    def mixed_scores(self, full: TableScores) -> tuple[Array, Any, Array]:
        """Scores of mixed rows (m, C), the view of each score, and factors; NaN: by `gate`.

        Those of views are of rows of mixed cells, those of the whole of rows of mixed views. The
        rows are in the order of their contents, so a fixed seed will do.

        Parameters
        ----------
        full : TableScores
            Scores learned from all rows.

        Returns
        -------
        scores : array of shape (m, C)
            Of mixed rows.
        view : array of shape (C,)
            View of each score.
        factors : array of shape (C,)
            NaN where the gate decides.
        """
        X, views = self.values, self.recipe.views
        if len(views) < 2:
            return np.empty((0, full.width)), np.zeros(full.width), np.ones(full.width)
        single, first = np.arange(X.shape[1]), np.full(X.shape[1], X.shape[1] - 1)
        for columns in views.values():  # a view by its first column, whatever the order of views
            first[columns] = np.minimum(first[columns], columns.min())
        cells, joined = mixed_rows(X, single), mixed_rows(X, first)
        parts = [
            TableScores((p,)).of(joined if p.view.name == WHOLE else cells) for p in full.parts
        ]
        view = np.repeat([part.view.name for part in full.parts], [s.shape[1] for s in parts])
        factors = np.full(len(view), np.nan)
        for name, columns in views.items():
            if (np.ptp(X[:, columns], axis=0) > 0).sum() < 2:  # of one column nothing can be mixed
                factors[view == name] = MOST
        k = len(full.cells)  # mixed rows have none
        mixed = np.hstack([*parts, np.zeros((len(cells), k))])
        return mixed, np.append(view, [""] * k), np.append(factors, np.ones(k))


@dataclass(frozen=True, eq=False)
class PrecomputedRows:
    """Rows of square kernels that the user computed."""

    stack: DenseStack
    """The kernels of all rows."""
    index: Indices | None = None
    """The rows; None: all."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self._index)

    columns, on_device = 0, None
    """Kernels have no columns, and are on the host."""

    @property
    def _index(self) -> Indices:
        return np.arange(self.stack.n) if self.index is None else self.index

    def take(self, index: Indices) -> PrecomputedRows:
        """Some of the rows."""
        return replace(self, index=self._index[index])

    def keys(self, seed: int) -> Array:
        """A key for each row, which draws its fold, whatever the order of rows and the scale."""
        extremes = []
        for K in self.stack.kernels:
            square = np.array(K[np.ix_(self._index, self._index)], dtype=float)
            extremes.append(square.min(axis=1))
            np.fill_diagonal(square, -np.inf)
            extremes.append(square.max(axis=1))
        return row_keys(dense_ranks(np.stack(extremes[::2] + extremes[1::2], axis=1)), seed)

    def training(self, weight: Array | None, settings: Settings) -> Training:
        """The kernels of the rows, with positive weights, None where all are one."""
        complete = self.n == self.stack.n
        stack = self.stack if complete else self.stack[np.ix_(self._index, self._index)]
        rows, scale, factors = PrecomputedRows(stack), stack.scale, None
        if exponent := read_normalisation(settings.normalize):
            factors = normalising_factors(stack, exponent, weight)
            stack = stack.rescaled(factors)
        kernels = PrecomputedKernels(
            names=tuple(names_of_kernels(stack)),
            given_scale=scale,
            n=stack.n,
            n_given=self.stack.n,
            learned=None if complete else self._index,
            factors=factors,
        )
        return Training(kernels, stack, rows)

    def cross(self, kernels: PrecomputedKernels, settings: Settings) -> Any:
        """Kernels between the rows and those of a model."""
        return kernels.cross(with_diagonal(self.stack)[self._index], settings.dtype)

    @property
    def values(self) -> Array:
        """What fitted scores take: kernels with all rows, of shape (J, n, all)."""
        return self.stack.kernels if self.index is None else self.stack.kernels[:, self.index]

    def fit_scores(
        self, decision: Evidence, weight: Array | None, full: PrecomputedScores | None = None
    ) -> PrecomputedScores:
        """Scores of each kernel, learned from the rows; ``full``: those of the fit to all."""
        scores = read_scores(decision.scores)
        if tuple(map(type, scores)) != (Projection, Nearest):
            raise MissingCapabilityError(
                f"decision: got scores={decision.scores!r}; precomputed kernels have no rows that "
                "other scores could see, and are judged by scores=(Projection(...), Nearest())."
            )
        K = self.stack.kernels
        return PrecomputedScores.fit(K, self._index, weight, decision.whole, scores[0], full)

    def mixed_scores(self, full: PrecomputedScores) -> tuple[Array, Any, Array]:
        """Scores of mixed rows (m, C), the view of each score, and factors; NaN: by `gate`.

        There are no cells that could be mixed: the whole alone has a factor, by mixed views.
        """
        kernels, J = self.stack.kernels, self.stack.J
        whole = np.arange(2 * (J + full.has_whole)) >= 2 * J
        mixed = np.empty((0, len(whole)))
        if full.has_whole:
            drawn = self._index[draw_parts(self.n, J)]
            mixed = full.of(np.stack([K[i] for K, i in zip(kernels, drawn.T, strict=True)]))
        return mixed, whole, np.where(whole, np.nan, 1.0)


Rows = TableRows | PrecomputedRows

"""Kernels that a model keeps, and rows to learn from.

`TableKernels` and `GivenKernels` are the two kinds of kernels a fitted model can have: functions of
a table's rows, or matrices that users give. `TableRows` and `GivenRows` are what a fit starts from;
their ``training`` makes the kernels, and the stack to learn from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import Cross, Split
from kernull.detector.cross_fit import dense_ranks, row_keys
from kernull.detector.evidence import Evidence, kernel_keys
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
from kernull.views.kernel_set import Recipe, columns_read


@dataclass(frozen=True, eq=False)
class TableKernels:
    """Kernels on the scaled views of a table, with one factor each."""

    set: KernelSet
    factors: Array | None = None
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

    def recipe(self, settings: Settings) -> Recipe:
        """How these views are scaled and compared, to do the same with other rows."""
        return Recipe(self.columns, settings.kernels, settings.widths, settings.scaling)

    def columns_of(self, views: Collection[str]) -> Indices:
        """Columns of the table that only these views read."""
        own = [view.columns for view in self.set.views if view.name in views]
        others = [view.columns for view in self.set.views if view.name not in views]
        none = np.empty(0, dtype=np.intp)
        return np.setdiff1d(np.concatenate([*own, none]), np.concatenate([*others, none]))


@dataclass(frozen=True, eq=False)
class GivenKernels:
    """Kernels that the user computed: new rows come as matrices too."""

    names: tuple[str, ...]
    given_scale: Array
    """Factors of the kernels given to fit, of shape (J,)."""
    n: int
    """Rows that the model learned from."""
    n_given: int
    """Rows given to fit; more, where some had weight zero or were held out."""
    learned: Indices | None = None
    """Positions of the rows learned from among those given; None: all."""
    factors: Array | None = None
    """Those of the normalisation, beyond ``given_scale``."""
    square: DenseStack | None = None
    """The kernels themselves, where the model needs them again (tasks of a joint model)."""

    @property
    def views(self) -> tuple[str, ...]:
        """Each kernel is a view of its own."""
        return self.names

    @property
    def scale(self) -> Array:
        """The factor of each kernel, of shape (J,)."""
        return self.given_scale if self.factors is None else self.given_scale * self.factors

    def cross(self, X: Any, dtype: Any = np.float64, device: Any = None) -> DenseStack:
        """Kernels between new rows and the rows of the model, checked and scaled."""
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
        """Kernels of which some may hold anything: they are set to zero."""
        values, scale = (X.kernels, X.scale) if isinstance(X, DenseStack) else (np.asarray(X), None)
        values = np.array(values[None] if values.ndim == 2 else values, dtype=float)
        if values.ndim == 3 and len(values) == len(kept):  # what has another shape is refused later
            values[~kept] = 0.0
        if values.ndim != 3:
            return values
        own = getattr(X, "own_diagonal", None)
        return DenseStack(values, scale, own, getattr(X, "names", None))


ModelKernels = TableKernels | GivenKernels


@dataclass(frozen=True)
class Settings:
    """What all methods share: how rows become kernels, and scores a threshold."""

    calibrator: Cross | Split
    false_alarm_rate: float
    memory_limit: int
    decision: Evidence | None = None
    """How the views' evidence is combined; None: by the scores of the method."""
    seed: int = 0
    kernels: Any = "rbf"
    widths: Any = "auto"
    scaling: Any = "auto"
    drop_constant: bool = True
    normalize: Any = "none"
    storage: str = "auto"
    dtype: Any = np.float64
    landmarks: int = 1000
    matrix_free: bool = False
    client: Any = None


class Training(NamedTuple):
    """What a method learns from."""

    kernels: TableKernels | GivenKernels
    """What the model will keep."""
    stack: Any
    """The kernels of all rows."""
    table: Array | None = None
    """The rows learned from, as they were given; None for given kernels."""
    budget: Budget = Budget()
    """What a solver may keep in memory beside the stack."""
    note: str = ""
    """How the stack is kept, in one line."""


@dataclass(frozen=True, eq=False)
class TableRows:
    """A table of numbers, and which columns make which view."""

    table: Array
    views: Mapping[str, Indices]
    X_on_device: Any = None
    """The table as a tensor on the GPU to work on, where that is one."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.table)

    def training(self, weight: Array | None, rows: Any, settings: Settings) -> Training:
        """Kernels fitted to the rows that have weight, and their stack."""
        on_device = None
        if self.X_on_device is not None:
            on_device = self._fitted_on_device(weight, rows, settings)
        if on_device is not None:
            from kernull.operators.torch import to_host

            kernels = to_host(on_device)
        else:
            drop = settings.drop_constant
            kernels = self.fit_kernels(self.table, weight, settings, drop=drop)
        planned = plan(
            kernels,
            settings.storage,
            dtype=settings.dtype,
            limit=settings.memory_limit,
            landmarks=settings.landmarks,
            matrix_free=settings.matrix_free,
            client=settings.client,
            device=None if self.X_on_device is None else self.X_on_device.device,
            on_device=on_device,
        )
        counts = None if weight is None else weight[rows]
        stack, factors = normalise(planned.stack, settings.normalize, counts)
        if stack.landmark_rows is not None:  # new rows will meet the landmarks alone
            kernels = kernels.take(stack.landmark_rows)
        fitted = TableKernels(kernels, factors)
        return Training(fitted, stack, self.table[rows], planned.budget, planned.note)

    def _fitted_on_device(self, weight: Array | None, rows: Any, settings: Settings) -> Any:
        """A kernel set of the rows that have weight, on the device; None where it cannot be had.

        Kernels other than rbf, and those of rows that count differently, are fitted on the host and
        evaluated on the device all the same.
        """
        import torch

        from kernull.operators.torch import fit_on_device

        # Rows held out have weight zero, and the others one: that is a choice of rows.
        even = weight is None or bool((weight[rows] == 1.0).all())
        if not even or any(parse_kernels(settings.kernels, v) != [Rbf()] for v in self.views):
            return None
        X = self.X_on_device.detach()
        return fit_on_device(
            X if weight is None else X[torch.as_tensor(rows, device=X.device)],
            self.views,
            widths=settings.widths,
            scaling=settings.scaling,
            drop_constant=settings.drop_constant,
            dtype=torch.float32 if np.dtype(settings.dtype) == np.float32 else torch.float64,
        )

    def fit_kernels(
        self,
        table: Array,
        weight: Array | None,
        settings: Settings,
        *,
        drop: bool,
    ) -> KernelSet:
        """Scaling, widths and kernels of all views, by these rows."""
        return KernelSet.fit(
            table,
            self.views,
            kernels=settings.kernels,
            widths=settings.widths,
            scaling=settings.scaling,
            sample_weight=weight,
            drop_constant=drop,
        )

    def cross(self, kernels: TableKernels, settings: Settings, rows: Any = slice(None)) -> Any:
        """Kernels between rows and those of a model."""
        device = None if self.X_on_device is None else self.X_on_device.device
        return kernels.cross(self.table[rows], settings.dtype, device)

    def keys(self, seed: int, rows: Any = slice(None)) -> Array:
        """A key for each of these rows, which draws its fold; by the columns that views read."""
        return row_keys(dense_ranks(self.table[rows][:, columns_read(self.views)]), seed)

    def of_kernels(self, kernels: TableKernels) -> TableRows:
        """The rows with the views that these kernels kept."""
        return replace(self, views=kernels.columns, X_on_device=None)


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Square kernels that the user computed."""

    stack: DenseStack

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.stack.n

    def training(self, weight: Array | None, rows: Any, settings: Settings) -> Training:
        """The kernels of the rows that have weight."""
        given = self.stack if weight is None else self.stack[np.ix_(rows, rows)]
        counts = None if weight is None else weight[rows]
        stack, factors = normalise(given, settings.normalize, counts)
        kernels = GivenKernels(
            names=tuple(names_of_kernels(stack)),
            given_scale=given.scale,
            n=stack.n,
            n_given=self.stack.n,
            learned=None if weight is None or weight.all() else rows,
            factors=factors,
        )
        return Training(kernels, stack)

    def cross(self, kernels: GivenKernels, settings: Settings, rows: Any = slice(None)) -> Any:
        """Kernels between rows and those of a model."""
        return kernels.cross(with_diagonal(self.stack)[rows], settings.dtype)

    def keys(self, seed: int, rows: Any = slice(None)) -> Array:
        """A key for each of these rows, which draws its fold."""
        return kernel_keys(self.stack.kernels[:, rows][:, :, rows], seed)

    def of_kernels(self, kernels: GivenKernels) -> GivenRows:
        """The same rows: no kernel is dropped."""
        return self


Rows = TableRows | GivenRows


def normalise(stack: Any, normalize: Any, weight: Array | None = None) -> tuple[Any, Array | None]:
    """A stack with its kernels on a common scale, and the factors; None where there are none."""
    exponent = read_normalisation(normalize)
    if exponent == 0.0:
        return stack, None
    factors = normalising_factors(stack, exponent, weight)
    return stack.rescaled(factors), factors

"""The kernels of a fitted model: functions of a table's rows, or matrices that users give."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.stacks import CrossKernels, DenseStack, KernelSet, TiledStack
from kernull.stacks.cross import device_cross
from kernull.stacks.given import check_names, normalised, read_precomputed, with_scale

__all__ = ["GivenKernels", "ModelKernels", "TableKernels"]


@dataclass(frozen=True, eq=False)
class TableKernels:
    """Kernels on the scaled views of a table, with one factor each."""

    set: KernelSet
    factors: Array | None = None
    """Those of the normalisation, of shape (J,); None where there is none."""
    n_reference: int = 0
    """Rows of reference among the rows, at their end."""

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
        if device is None:
            return CrossKernels(self.set, X, self.factors)
        return device_cross(self.set, X, device, dtype, scale=self.factors)

    def training_stack(self) -> Any:
        """The kernels of the model's own rows, with their factors; nothing n x n is stored."""
        return TiledStack(self.set, scale=self.scale)

    def combined(self, weights: Array) -> Array:
        """The weighted sum of the kernels of the model's own rows, of shape (n, n)."""
        return self.set.combine(weights * self.scale)

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
    n_reference: int = 0

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
        return normalised(with_scale(stack, self.given_scale), self.factors)

    def training_stack(self) -> Any:
        """The kernels of the model's own rows, or None where it does not keep them."""
        return self.square

    def combined(self, weights: Array) -> Array:
        """The weighted sum of the kernels of the model's own rows, of shape (n, n)."""
        assert self.square is not None
        return self.square.combine(weights)

    def _columns(self, X: Any) -> Any:
        """Kernels against all rows given to fit, cut to those it learned from."""
        if self.learned is None:
            return X
        values = X if isinstance(X, DenseStack) else np.asarray(X, dtype=float)
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

    def grown_to(self, n: int) -> GivenKernels:
        """The same kernels over another number of rows, all of them learned from."""
        return replace(self, n=n, n_given=n, learned=None)


ModelKernels = TableKernels | GivenKernels

"""Rows to learn from: a checked table or given kernels, and the stack that a fit makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state

from kernull._typing import Array, Indices
from kernull.calibration import Calibrator
from kernull.errors import MissingCapabilityError
from kernull.models.device import fit_on_device
from kernull.models.kernels import GivenKernels, TableKernels
from kernull.stacks import DenseStack, KernelSet, build_stack
from kernull.stacks.given import names_of_kernels, with_diagonal
from kernull.stacks.normalise import normalising_factors, read_normalisation

__all__ = ["GivenRows", "Rows", "Settings", "TableRows", "Training"]

#: No more than this many rows of reference are drawn.
REFERENCE_ROWS = 1000


@dataclass(frozen=True)
class Settings:
    """What all methods share: how rows become kernels, and scores a threshold."""

    calibrator: Calibrator
    false_alarm_rate: float
    memory_limit: int
    kernels: Any = "rbf"
    widths: Any = "auto"
    scaling: Any = "auto"
    drop_constant: bool = True
    normalize: Any = "none"
    reference: Any = None
    random_state: Any = 0
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
    n_reference: int = 0
    """Rows of reference in the stack, at its end."""
    table: Array | None = None
    """The rows learned from, as they were given; None for given kernels."""


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
            on_device = fit_on_device(settings, self.X_on_device, self.views, weight, rows)
        if on_device is not None:
            kernels = on_device.to_bank()
        else:
            kernels = self.fit_kernels(self.table, weight, settings, drop=settings.drop_constant)
        n_reference = 0
        if settings.reference is not None:
            drawn = _reference_rows(settings, self.table[rows], _at(weight, rows))
            kernels, n_reference = kernels.extend(drawn), len(drawn)
        stack = build_stack(
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
        factors = _normalise(stack, settings.normalize, _at(weight, rows), n_reference)
        kept = n_reference
        if hasattr(stack, "project"):  # new rows will meet the landmarks alone
            # in the order of the rows: those of the reference come last, as among all rows
            kept = int((stack.landmark_rows >= kernels.n - n_reference).sum())
            kernels = kernels.take(stack.landmark_rows)
        model_kernels = TableKernels(kernels, factors, kept)
        return Training(model_kernels, stack, n_reference, self.table[rows])

    def fit_kernels(
        self, table: Array, weight: Array | None, settings: Settings, *, drop: bool
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

    def cross(self, kernels: TableKernels, settings: Settings) -> Any:
        """Kernels between all rows and the rows of a model."""
        device = None if self.X_on_device is None else self.X_on_device.device
        return kernels.cross(self.table, settings.dtype, device)

    def of_kernels(self, kernels: KernelSet) -> TableRows:
        """The columns that these kernels read, with the views that they kept."""
        views = {view.name: view.columns for view in kernels.views}
        read = np.unique(np.concatenate(list(views.values())))
        views = {name: np.searchsorted(read, own) for name, own in views.items()}
        return replace(self, table=self.table[:, read], views=views, X_on_device=None)


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
        if settings.reference is not None:
            raise MissingCapabilityError(
                "reference: precomputed kernels know no rows but those given; leave it None, "
                "or fit on a table."
            )
        stack = self.stack if weight is None else self.stack[np.ix_(rows, rows)]
        given_scale = stack.scale
        factors = _normalise(stack, settings.normalize, _at(weight, rows), 0)
        kernels = GivenKernels(
            names=tuple(names_of_kernels(stack)),
            given_scale=given_scale,
            n=stack.n,
            n_given=self.stack.n,
            learned=None if weight is None or weight.all() else rows,
            factors=factors,
        )
        return Training(kernels, stack)

    def cross(self, kernels: GivenKernels, settings: Settings) -> Any:
        """Kernels between all rows and the rows of a model."""
        return kernels.cross(with_diagonal(self.stack), settings.dtype)


Rows = TableRows | GivenRows


def _at(weight: Array | None, rows: Any) -> Array | None:
    return None if weight is None else weight[rows]


def _normalise(stack: Any, normalize: Any, weight: Array | None, n_reference: int) -> Array | None:
    """Put the kernels of a stack on a common scale; the factors, or None where there are none."""
    exponent = read_normalisation(normalize)
    if exponent == 0.0:
        return None
    counts = np.ones(stack.n) if weight is None else np.append(weight, np.ones(n_reference))
    counts[stack.n - n_reference :] = 0.0  # what targets have in common
    factors = normalising_factors(stack, exponent, counts)
    stack.scale = stack.scale * factors
    return factors


def _reference_rows(settings: Settings, table: Array, sample_weight: Array | None) -> Array:
    r"""Rows of reference: artificial ones, or those given.

    ``"permuted"`` draws every column on its own from the training rows, in proportion to their
    weights: each value is usual, the way they go together is not.
    """
    reference = settings.reference
    if not isinstance(reference, str):
        rows = check_array(reference, dtype=np.float64, input_name="reference")
        if rows.shape[1] != table.shape[1]:
            raise ValueError(
                f"reference: got {rows.shape[1]} columns; expected {table.shape[1]}, those of X."
            )
        return np.asarray(rows)
    if reference != "permuted":
        raise ValueError(
            f"reference: got {reference!r}; expected None, 'permuted', or an array of rows."
        )
    equal = sample_weight is None or (sample_weight == sample_weight[0]).all()
    share = None if equal or sample_weight is None else sample_weight / sample_weight.sum()
    n, d = table.shape
    size = (min(n, REFERENCE_ROWS), d)
    drawn = check_random_state(settings.random_state).choice(n, size=size, p=share)
    return np.asarray(table[drawn, np.arange(d)])

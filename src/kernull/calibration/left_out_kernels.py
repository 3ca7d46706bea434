"""Left-out kernels of a whole kernel set: what each row's own model would have seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration.left_out_distances import (
    LeftOutDistances,
    left_out_distances,
    read_groups,
)
from kernull.kernels.left_out_widths import FEW_ROWS, left_out_widths
from kernull.stacks.kernel_set import KernelSet, ScaledView

__all__ = ["leaves_scaling_out", "left_out_kernel_rows"]


def leaves_scaling_out(kernels: KernelSet) -> bool:
    """Whether `left_out_kernel_rows` leaves rows out of all that was fitted to them.

    It does where every scaled view has rbf kernels alone. A linear or cosine kernel of columns
    that were centred with the row in them is another matter: its cross kernels and its inverse must
    be centred alike, which only refits do (`refit_by_fold`).
    """
    return all(
        view.scaler.kind == "none" or kernel.kind == "rbf"
        for view in kernels.views
        for kernel in view.kernels
    )


def left_out_kernel_rows(
    kernels: KernelSet,
    table: Array,
    sample_weight: Any = None,
    groups: Any = None,
    widths: Sequence[float | str] | None = None,
) -> Callable[[Indices], Iterator[Array]]:
    """Kernel values of each row under scalings and widths that never saw it.

    Rbf kernels take `left_out_distances` and `left_out_widths`. Kernels that are no function of the
    euclidean distance (laplacian, linear, polynomial, cosine, callables) keep scaling and width of
    all rows: see `leaves_scaling_out`. ``table`` has the training rows, not scaled, and ``widths``
    the factors that the kernels were fitted with: those of the fitted kernels by default, which
    takes an automatic factor as a fixed one.

    Gives a function from r rows to J arrays of shape (r, n), one after the other, zero where a row
    would see itself or its group.
    """
    group = read_groups(groups, len(table))
    single = int(group.max(initial=-1)) + 1 == len(table)
    views = [
        (view, *_prepared(view, table, sample_weight, groups, widths)) for view in kernels.views
    ]

    def rows(index: Indices) -> Iterator[Array]:
        own = np.arange(len(index)), index
        for view, distances, scale in views:
            squared = None if distances is None else distances.rows(index)
            rbf = [kernel.kind == "rbf" for kernel in view.kernels]
            column = 0
            for f, kernel in enumerate(view.kernels):
                if squared is not None and rbf[f]:
                    gain = -0.5 / scale[index, column] ** 2
                    # The last kernel of these distances takes their place.
                    out = None if any(rbf[f + 1 :]) else squared
                    K = np.multiply(squared, gain[:, None], out=out)
                    np.exp(K, out=K)
                    column += 1
                else:
                    K = kernel(view.train[index], view.train)
                if single:
                    K[own] = 0.0
                else:
                    K[group[index][:, None] == group] = 0.0
                yield K

    return rows


def _prepared(
    view: ScaledView,
    table: Array,
    sample_weight: Any,
    groups: Any,
    widths: Sequence[float | str] | None,
) -> tuple[LeftOutDistances | None, Array]:
    """Distances and widths of the rbf kernels of one view."""
    rbf = [kernel for kernel in view.kernels if kernel.kind == "rbf"]
    if not rbf:
        return None, np.empty((len(table), 0))
    kind = view.scaler.kind
    distances = left_out_distances(kind, table[:, view.columns], sample_weight, groups)
    if len(table) > FEW_ROWS:  # no single row matters
        return distances, np.tile([float(kernel.width or 1.0) for kernel in rbf], (len(table), 1))
    fitted = [kernel.factor if kernel.factor is not None else 1.0 for kernel in rbf]
    factors = fitted if widths is None else [*widths]
    scale = left_out_widths(
        view.train, factors, sample_weight=sample_weight, groups=groups, rescale=kind != "none"
    )
    return distances, scale

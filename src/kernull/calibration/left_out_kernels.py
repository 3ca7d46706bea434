"""Left-out kernels of a whole kernel set: what each row's own model would have seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernull._threads import in_threads
from kernull._typing import Array, Indices
from kernull.calibration.left_out_distances import (
    LeftOutDistances,
    left_out_distances,
    read_groups,
)
from kernull.kernels.left_out_widths import left_out_widths
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
) -> Callable[[Indices], Iterator[Array]]:
    """Kernel values of each row under scalings and widths that never saw it.

    Rbf kernels take `left_out_distances` and `left_out_widths`. Kernels that are no function of the
    euclidean distance (laplacian, linear, polynomial, cosine, callables) keep scaling and width of
    all rows: see `leaves_scaling_out`. ``table`` has the training rows, not scaled.

    Gives a function from r rows to J arrays of shape (r, n), one after the other, zero where a row
    would see itself or its group.
    """
    group = read_groups(groups, len(table))
    single = int(group.max(initial=-1)) + 1 == len(table)
    prepared = in_threads(lambda v: (v, *_prepared(v, table, sample_weight, groups)), kernels.views)

    def rows(index: Indices) -> Iterator[Array]:
        own = np.arange(len(index)), index
        for view, distances, scale in prepared:
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
    view: ScaledView, table: Array, sample_weight: Any, groups: Any
) -> tuple[LeftOutDistances | None, Array]:
    """Distances and widths of the rbf kernels of one view."""
    widths = [float(kernel.width or 1.0) for kernel in view.kernels if kernel.kind == "rbf"]
    if not widths:
        return None, np.empty((len(table), 0))
    kind = view.scaler.kind
    distances = left_out_distances(kind, table[:, view.columns], sample_weight, groups)
    if kind == "none":
        return distances, np.tile(widths, (len(table), 1))
    own = left_out_widths(view.train, widths, sample_weight=sample_weight, groups=groups)
    return distances, own

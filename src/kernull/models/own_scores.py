"""Each kernel's own scores on its training rows: coefficients, and values with the row left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kernull._quiet import warn
from kernull._typing import Array, Indices, Mask
from kernull.calibration.left_out_distances import left_out_distances, read_groups
from kernull.calibration.left_out_scores import (
    OWN_DELTA,
    KernelProjection,
    beside_the_lowest,
    left_out_view,
)
from kernull.errors import CalibrationWarning
from kernull.kernels.functions import KernelSpec
from kernull.kernels.left_out_widths import left_out_widths
from kernull.stacks.kernel_set import ScaledView
from kernull.views import ViewScaler

#: Rows below which none can be left out of the scaling.
FEWEST_ROWS = 3
#: Of kernels that are refitted: folds, at least, and the number of folds times that of rows.
FEWEST_FOLDS, REFITTED_ROWS = 5, 5_000
#: Times the rows: with so many columns scores of polynomial kernels are too much alike.
MANY_COLUMNS = 5
#: Projections below this are rounding.
NOTHING = 1e-9


def own_of_view(
    view: ScaledView,
    table: Array,
    weight: Array,
    groups: Indices | None,
    matrices: Array | None = None,
    device: Any = None,
) -> tuple[Array, Array, Array, Array]:
    """Coefficients (F, n) of a view's kernels alone, left-out projections (n, F), distances.

    And the projections with the lowest row of each kernel gone as well, (F, n).
    """
    n = len(view.train)
    given, kind = table[:, view.columns], view.scaler.kind
    equal = bool((weight == 1.0).all())
    if n < FEWEST_ROWS:
        return _hardly_any_rows(view, weight)
    distances = left_out_distances(kind, given, None if equal else weight, groups)
    known = matrices if matrices is not None else _kernels_of(view, device)
    own = [own_projection(K, weight) for K in known]
    coef = np.stack([projection.coef for projection in own])
    projected = np.empty((n, len(own)))
    rbf = [f for f, kernel in enumerate(view.kernels) if kernel.kind == "rbf"]
    if rbf:
        fixed: Any = [view.kernels[f].width or 1.0 for f in rbf]
        widths = np.tile(fixed, (n, 1))
        if kind != "none":
            widths = left_out_widths(view.train, fixed, sample_weight=weight, groups=groups)
        projected[:, rbf], nearest2 = left_out_view(distances, widths, [own[f] for f in rbf])
    else:
        nearest2 = np.concatenate([distances.rows(i).min(axis=1) for i in distances.blocks()])
    others = [f for f in range(len(own)) if f not in rbf]
    if others and kind == "none":
        projected[:, others] = np.column_stack([plain_left_out(own[f], groups) for f in others])
    elif others:
        projected[:, others] = _by_refits(view, others, given, weight, groups)
        projected = np.minimum(projected, np.column_stack([projection.own for projection in own]))
    beside = np.full((len(own), n), np.nan)
    if groups is None:
        beside[:] = [beside_the_lowest(own[f], projected[:, f]) for f in range(len(own))]
    return coef, projected, nearest2, beside


def _by_refits(
    view: ScaledView, some: list[int], given: Array, weight: Array, groups: Indices | None
) -> Array:
    """Projections (n, some) of rows by scaling, kernels and coefficients of other rows.

    Kernels of products have no closed form: all of their values move with the centre of the rows.
    Rows are left out one by one where they are few, else in folds.

    With more columns than rows they are alike, and rise or fall with the number of rows learned
    from by more than they differ: they are moved as one fold more has moved them.
    """
    n = len(given)
    fold = read_groups(groups, n) % max(FEWEST_FOLDS, REFITTED_ROWS // n)
    part = replace(view, kernels=tuple(view.kernels[f] for f in some))
    out, with_fewer = np.empty((n, len(some))), np.full((n, len(some)), np.nan)
    columns, folds = given.shape[1], np.unique(fold)
    if columns >= MANY_COLUMNS * n and any(kernel.kind == "polynomial" for kernel in part.kernels):
        warn(
            f"kernels: polynomial ones of {columns} columns hardly tell {n} rows apart: up to "
            "three times as many normal rows may be flagged as false_alarm_rate says. Use "
            "kernels='rbf', fewer columns or more rows.",
            CalibrationWarning,
            stacklevel=2,
        )
    for k, following in zip(folds, np.roll(folds, -1), strict=True):
        held = fold == k
        out[held] = _as_new(part, given, held, ~held, weight)
        seen = ~held & (fold != following)
        if columns > n and seen.sum() >= FEWEST_ROWS:
            with_fewer[held] = _as_new(part, given, held, seen, weight)
    moved = out - with_fewer
    return out + (0.0 if np.isnan(moved).any() else np.median(moved, axis=0))


def _as_new(part: ScaledView, given: Array, new: Mask, seen: Mask, weight: Array) -> Array:
    """Projections of some rows by a view of others."""
    own = None if bool((weight == 1.0).all()) else weight[seen]
    view = refitted(part, given[seen], own)
    rows = view.scaler.transform(given[new])
    found = []
    for kernel in view.kernels:
        coef = own_projection(kernel(view.train), own, whole=False).coef
        found.append(kernel(rows, view.train) @ coef)
    return np.column_stack(found)


def refitted(view: ScaledView, rows: Array, weight: Array | None) -> ScaledView:
    """The same scaling and kernels, fitted to other rows of the view."""
    ((scaler, train),) = ViewScaler.fit_transform((view.scaler.kind,), rows, weight)
    kernels = tuple(
        one
        for kernel in view.kernels
        for one in KernelSpec(kernel.kind, kernel.function).fit(
            train, (kernel.factor or 1.0,), weight
        )
    )
    return replace(view, scaler=scaler, train=train, kernels=kernels)


def _hardly_any_rows(view: ScaledView, weight: Array) -> tuple[Array, Array, Array, Array]:
    """The same for two rows, of which none can be left out of the scaling."""
    own = [own_projection(kernel(view.train), weight) for kernel in view.kernels]
    apart = ((view.train[:, None] - view.train[None]) ** 2).sum(axis=-1)
    nearest2 = np.where(np.eye(len(apart), dtype=bool), np.inf, apart).min(axis=1)
    left_out = np.column_stack([plain_left_out(projection) for projection in own])
    coef = np.stack([projection.coef for projection in own])
    return coef, left_out, nearest2, np.full_like(coef, np.nan)


def _kernels_of(view: ScaledView, device: Any) -> Iterator[Any]:
    """The kernels of a view's rows, on a torch device if there is one and it knows them."""
    if device is None or any(kernel.kind != "rbf" for kernel in view.kernels):
        yield from (kernel(view.train) for kernel in view.kernels)
        return
    import torch

    from kernull.stacks.torch_tiled import TorchTiledStack

    rows = torch.as_tensor(view.train, dtype=torch.float64, device=device)
    for kernel in view.kernels:
        yield TorchTiledStack([rows], [[kernel]]).dense().kernels[0]


def own_projection(K: Any, weight: Array | None = None, *, whole: bool = True) -> KernelProjection:
    """The projection of one kernel alone, with a ridge in the kernel's own unit.

    ``whole`` says whether the whole inverse is needed, not its diagonal alone. Zero where it is
    nothing but rounding, as that of a linear kernel of centred columns is.
    """
    size = float(K.diagonal().mean())
    delta = OWN_DELTA * (size if size > 0 else 1.0)
    own = KernelProjection.fit(K, weight, delta, whole=whole)
    if np.abs(own.own).max() > NOTHING:
        return own
    return replace(own, coef=np.zeros_like(own.coef), own=np.zeros_like(own.own))


def plain_left_out(own: KernelProjection, groups: Indices | None = None) -> Array:
    """Left-out projections of one kernel at fixed scaling, no higher than those as new rows."""
    left_out = 1.0 - own.coef / own.diagonal
    for g in () if groups is None else np.unique(groups):
        assert own.inverse is not None
        mine = np.flatnonzero(groups == g)
        left_out[mine] = 1.0 - np.linalg.solve(own.inverse[np.ix_(mine, mine)], own.coef[mine])
    return np.minimum(left_out, own.own)

"""A kernel bank fitted on a torch device: scaling, widths and rows never leave it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernull._typing import Array, Indices
from kernull.kernels import AUTO_RANGE, EXACT_ROWS, NEIGHBOUR_ROWS, Rbf, spread_sample
from kernull.operators.torch_tiled import TorchTiledStack
from kernull.views import Standard, Unscaled, fit_scaling, knows_unseen, read_scalings
from kernull.views.kernel_set import (
    KernelSet,
    ScaledView,
    joined,
    names_by_view,
    no_squares,
    parse_widths,
)
from kernull.views.scaling import LARGEST

#: Scalings that are fitted on the device, where no column is constant; others on the host.
SCALINGS_ON_DEVICE = (Standard, Unscaled)
#: Rows that neighbours are looked for among at a time.
BLOCK_ROWS = 2**16


@dataclass(frozen=True)
class TorchKernelSet:
    """Rbf kernels on scaled views of rows that live on a device.

    The same scaling, widths and subsample as `KernelSet.fit`, computed where the rows are; of
    whitened views and normal scores, the scaling alone comes from the host.
    """

    names: tuple[str, ...]
    columns: tuple[Indices, ...]
    scalers: tuple[Any, ...]
    rows: tuple[Any, ...]
    kernels: tuple[tuple[Rbf, ...], ...]
    at_host: tuple[Array | None, ...]
    """The rows of views that the host scaled; None of others."""

    @classmethod
    def fit(
        cls,
        X: Any,
        views: Mapping[str, Indices],
        *,
        widths: Any = 1.0,
        scaling: Any = "standard",
        drop_constant: bool = True,
        dtype: Any = None,
    ) -> TorchKernelSet:
        """Fit scaling and widths of every view; columns of constant views join another."""
        factors = parse_widths(widths)
        found: list[Any] = []
        # Up to the rounding of their values.
        spread = (X.amax(dim=0) - X.amin(dim=0)).double()
        constant = spread <= 10 * np.finfo(float).eps * X.abs().amax(dim=0).double()
        constant = constant.cpu().numpy()
        read = views
        if drop_constant:
            read = joined(views, constant, [v for v in views if knows_unseen(scaling, v)])
        for name, columns in read.items():
            part = X[:, torch.as_tensor(columns, device=X.device)]
            if not part.is_floating_point() or part.dtype.itemsize < 4:
                part = part.to(dtype or torch.float64)
            if dtype is not None and dtype.itemsize > part.dtype.itemsize:
                part = part.to(dtype)  # scaled in the better of the two types
            largest = float(part.abs().max())
            if largest > LARGEST or 0.0 < largest < 1.0 / LARGEST:
                raise no_squares(name, part.double().cpu().numpy(), columns)
            scalings = read_scalings(scaling, name)
            for scaler, scaled, own in _scaled(name, part, scalings, constant[columns].any()):
                rows = scaled.to(dtype or scaled.dtype)
                found.append((name, columns, scaler, rows, _fitted(scaled, factors), own))
        return cls(*zip(*found, strict=True))

    def stack(self) -> TorchTiledStack:
        """The tiled stack of the training rows."""
        return TorchTiledStack(self.rows, self.kernels)

    def to_bank(self) -> KernelSet:
        """The same bank with its rows on the host, for scoring there and for files."""
        at_host = (
            rows.double().cpu().numpy() if own is None else own
            for rows, own in zip(self.rows, self.at_host, strict=True)
        )
        parts = zip(self.names, self.columns, self.scalers, at_host, self.kernels, strict=True)
        views = tuple(ScaledView(*part) for part in parts)
        return KernelSet(views, names_by_view(views))


def _scaled(
    view: str, part: Any, scalings: tuple[Any, ...], has_constant: Any
) -> Iterator[tuple[Any, Any, Array | None]]:
    """Each scaling of a view, its rows on the device, and at the host where they were scaled."""
    if has_constant or not all(type(scaling) in SCALINGS_ON_DEVICE for scaling in scalings):
        at_host = part.double().cpu().numpy()
        for scaling in scalings:
            scaler, own = fit_scaling(scaling, at_host, None, view)
            yield scaler, torch.as_tensor(own, device=part.device), own
        return
    for scaling in scalings:
        if isinstance(scaling, Unscaled):
            yield Unscaled(), part, None
            continue
        mean, scale = _mean_and_scale(part)
        scaler = Standard()
        scaler.mean_, scaler.scale_ = mean.cpu().numpy(), scale.cpu().numpy()
        scaler.constant_ = np.zeros(part.shape[1], dtype=bool)
        yield scaler, (part - mean.to(part.dtype)) / scale.to(part.dtype), None


def _fitted(rows: Any, factors: tuple[float | str, ...]) -> tuple[Rbf, ...]:
    """Kernels with the widths that `Rbf.fit` would give them on the host."""
    mean = _mean_distance(rows) or 1.0
    centre = rows.mean(dim=0, dtype=torch.float64).cpu().numpy()
    numbers = [
        float(np.clip(_neighbour_distance(rows) / mean, *AUTO_RANGE)) if isinstance(f, str) else f
        for f in factors
    ]
    return tuple(Rbf(width=f * mean, factor=f, centre=centre) for f in numbers)


def _mean_and_scale(part: Any) -> tuple[Any, Any]:
    """Mean and population deviation of each column in float64."""
    mean = part.mean(dim=0, dtype=torch.float64)
    step = max(1, 2**26 // part.shape[1])
    squares = sum(
        ((part[i : i + step].double() - mean) ** 2).sum(dim=0) for i in range(0, len(part), step)
    )
    scale = (squares / len(part)).sqrt()
    scale[scale == 0.0] = 1.0  # of values too small to be squared
    return mean, scale


def _picked(rows: Any, most: int) -> Any:
    """The rows that the host would draw where there are more than ``most``."""
    if len(rows) <= most:
        return rows
    wide = rows.double()
    size = (wide - wide.mean(dim=0)).norm(dim=1).cpu().numpy()
    pick = spread_sample(size, most)
    return rows[torch.as_tensor(pick, device=rows.device)]


def _mean_distance(rows: Any) -> float:
    """That of `kernull.kernels.mean_distance`."""
    some = _picked(rows, EXACT_ROWS).double()
    some = some - some.mean(dim=0)
    distances = torch.cdist(some, some).fill_diagonal_(0.0)  # rounding leaves about 1e-8 there
    return float(distances.sum()) / (len(some) * (len(some) - 1))


def _neighbour_distance(rows: Any) -> float:
    """That of `kernull.kernels.neighbour_distance`."""
    mean = rows.mean(dim=0, dtype=torch.float64)
    blocks = [slice(i, i + BLOCK_ROWS) for i in range(0, len(rows), BLOCK_ROWS)]
    squares = torch.cat([(rows[i].double() - mean).square().sum(1) for i in blocks])
    floor = 1e-14 * squares.max()  # copies come out at the rounding of |x|^2 + |y|^2 - 2x'y
    some = _picked(rows, NEIGHBOUR_ROWS).double() - mean
    own = some.square().sum(1, keepdim=True)
    nearest = torch.full_like(own[:, 0], torch.inf)
    for i in blocks:
        apart = torch.addmm(squares[i], some, (rows[i].double() - mean).T, alpha=-2.0).add_(own)
        apart.masked_fill_(apart <= floor, torch.inf)
        nearest = torch.minimum(nearest, apart.amin(dim=1))
    if not bool(torch.isfinite(nearest).all()):  # all rows are copies of one
        return 0.0
    return float(np.median(nearest.sqrt().cpu().numpy()))

"""A kernel bank fitted on a torch device: scaling, widths and rows never leave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernull._typing import Indices
from kernull.kernels import FittedKernel
from kernull.kernels.functions import EXACT_ROWS
from kernull.stacks.kernel_set import KernelSet, ScaledView, parse_widths, report_dropped
from kernull.stacks.torch_tiled import TorchTiledStack
from kernull.views import ViewScaler

#: Scalings that are fitted on the device; whitening needs the host's estimators.
SCALINGS_ON_DEVICE = ("standard", "none")


@dataclass(frozen=True)
class TorchKernelSet:
    """Rbf kernels on standardised (or raw) views of rows that live on a device.

    The same scaling, widths and subsample as `KernelSet.fit`, computed where the rows are.

    Examples
    --------
    >>> import numpy as np
    >>> X = torch.as_tensor(np.random.default_rng(0).standard_normal((50, 3)))
    >>> views = {"all": np.arange(3)}
    >>> here, there = TorchKernelSet.fit(X, views).to_bank(), KernelSet.fit(X.numpy(), views)
    >>> bool(np.isclose(here.views[0].kernels[0].width, there.views[0].kernels[0].width))
    True
    """

    names: tuple[str, ...]
    columns: tuple[Indices, ...]
    scalers: tuple[ViewScaler, ...]
    rows: tuple[Any, ...]
    kernels: tuple[tuple[FittedKernel, ...], ...]

    @classmethod
    def fit(
        cls,
        X: Any,
        views: Mapping[str, Indices],
        *,
        widths: Any = 1.0,
        scaling: str = "standard",
        drop_constant: bool = True,
        dtype: Any = None,
    ) -> TorchKernelSet:
        """Fit scaling and widths of every view on the device of X; drop constant views."""
        if scaling not in SCALINGS_ON_DEVICE:
            raise ValueError(f"scaling: got {scaling!r}; a device fits {SCALINGS_ON_DEVICE}.")
        factors = [f for f in parse_widths(widths) if not isinstance(f, str)]
        if not factors:
            raise ValueError(f"widths: got {widths!r}; a device fits factors, not rules.")
        names, picked, scalers, rows, kernels = [], [], [], [], []
        dropped = []
        for name, columns in views.items():
            part = X[:, torch.as_tensor(columns, device=X.device)]
            if not part.is_floating_point() or part.dtype.itemsize < 4:
                part = part.to(dtype or torch.float64)
            if dtype is not None and dtype.itemsize > part.dtype.itemsize:
                part = part.to(dtype)  # scaled in the better of the two types
            if drop_constant and _constant(part):
                dropped.append(name)
                continue
            if scaling == "standard":
                mean, scale = _mean_and_scale(part)
                part = (part - mean.to(part.dtype)) / scale.to(part.dtype)
                scaler = ViewScaler("standard", mean.cpu().numpy(), scale.cpu().numpy())
            else:
                scaler = ViewScaler("none")
            part = part.to(dtype or part.dtype)
            distance = _mean_distance(part) or 1.0
            centre = part.double().mean(dim=0).cpu().numpy()
            kernels.append(
                tuple(
                    FittedKernel("rbf", width=f * distance, factor=f, centre=centre)
                    for f in factors
                )
            )
            names.append(name)
            picked.append(columns)
            scalers.append(scaler)
            rows.append(part)
        report_dropped(dropped, len(names))
        return cls(tuple(names), tuple(picked), tuple(scalers), tuple(rows), tuple(kernels))

    @staticmethod
    def can_fit(kernels: Any, scaling: Any, sample_weight: Any) -> bool:
        """Whether a device can do all of this: rbf kernels, no whitening, rows that count alike."""
        return (
            isinstance(kernels, str)
            and kernels == "rbf"
            and isinstance(scaling, str)
            and scaling in SCALINGS_ON_DEVICE
            and sample_weight is None
        )

    def stack(self, **options: Any) -> TorchTiledStack:
        """The tiled stack of the training rows."""
        return TorchTiledStack(self.rows, self.kernels, **options)

    def to_bank(self) -> KernelSet:
        """The same bank with its rows on the host, for scoring there and for files."""
        parts = zip(self.names, self.columns, self.scalers, self.rows, self.kernels, strict=True)
        return KernelSet.of_views(
            ScaledView(name, columns, scaler, rows.double().cpu().numpy(), kernels)
            for name, columns, scaler, rows, kernels in parts
        )


def _constant(part: Any) -> bool:
    """Whether every column is constant up to the rounding of its values."""
    spread = (part.amax(dim=0) - part.amin(dim=0)).double()
    return bool((spread <= 10 * np.finfo(float).eps * part.abs().amax(dim=0).double()).all())


def _mean_and_scale(part: Any) -> tuple[Any, Any]:
    """Mean and population deviation of each column in float64; 1 where a column is constant."""
    mean = part.mean(dim=0, dtype=torch.float64)
    step = max(1, 2**26 // part.shape[1])
    squares = sum(
        ((part[i : i + step].double() - mean) ** 2).sum(dim=0) for i in range(0, len(part), step)
    )
    scale = (squares / len(part)).sqrt()
    scale[scale <= 10 * np.finfo(float).eps * mean.abs()] = 1.0
    return mean, scale


def _mean_distance(part: Any) -> float:
    if len(part) > EXACT_ROWS:  # the same rows as on the host
        pick = np.random.default_rng(0).choice(len(part), EXACT_ROWS, replace=False)
        part = part[torch.as_tensor(pick, device=part.device)]
    part = part.double() - part.double().mean(dim=0)
    distances = torch.cdist(part, part).fill_diagonal_(0.0)  # rounding leaves about 1e-8 there
    return float(distances.sum()) / (len(part) * (len(part) - 1))

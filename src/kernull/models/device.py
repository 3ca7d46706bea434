"""Fitting scaling and widths where a tensor lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array, Indices

if TYPE_CHECKING:
    from kernull.stacks.torch_kernel_set import TorchKernelSet


def fit_on_device(
    settings: Any, X: Any, views: Mapping[str, Indices], weight: Array | None, rows: Any
) -> TorchKernelSet | None:
    """The bank of the rows of X that have weight, fitted on X's device; None where it cannot be.

    Kernels other than rbf, and those of rows that count differently, are fitted on the host and
    evaluated on the device all the same.
    """
    import torch

    from kernull.stacks.torch_kernel_set import TorchKernelSet

    if weight is not None:
        # Rows held out have weight zero, and the others one: that is a choice of rows.
        weight = None if (weight[rows] == 1.0).all() else weight
        X = X[torch.as_tensor(rows, device=X.device)]
    rbf = isinstance(settings.kernels, str) and settings.kernels == "rbf"
    if not rbf or weight is not None:
        return None
    return TorchKernelSet.fit(
        X.detach(),
        views,
        widths=settings.widths,
        scaling=settings.scaling,
        drop_constant=settings.drop_constant,
        dtype=torch.float32 if np.dtype(settings.dtype) == np.float32 else torch.float64,
    )

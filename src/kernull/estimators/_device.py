"""Fitting scaling and widths where a tensor lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.estimators._auto import is_auto

if TYPE_CHECKING:
    from kernull.stacks.torch_kernel_set import TorchKernelSet

__all__ = ["fit_on_device"]


def fit_on_device(
    estimator: Any,
    X: Any,
    views: Mapping[str, Indices],
    weight: Array | None,
    rows: Any,
    dtype: Any,
) -> TorchKernelSet | None:
    """The bank of the rows of X that have weight, fitted on X's device; None where it cannot be.

    Whitening, automatic widths, rows of reference, kernels other than rbf, and rows that count
    differently are fitted on the host; their kernels are evaluated on the device all the same.
    """
    import torch

    from kernull.stacks.torch_kernel_set import TorchKernelSet

    if weight is not None:
        # Rows held out have weight zero, and the others one: that is a choice of rows.
        weight = None if (weight[rows] == 1.0).all() else weight
        X = X[torch.as_tensor(rows, device=X.device)]
    simple = estimator.reference is None and not is_auto(estimator.widths)
    if not simple or not TorchKernelSet.can_fit(estimator.kernels, estimator.scaling, weight):
        return None
    return TorchKernelSet.fit(
        X.detach(),
        views,
        widths=estimator.widths,
        scaling=estimator.scaling,
        drop_constant=estimator.drop_constant,
        dtype=torch.float32 if np.dtype(dtype) == np.float32 else torch.float64,
    )

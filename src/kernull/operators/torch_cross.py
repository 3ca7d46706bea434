"""Kernels between new rows and the training rows, evaluated on a torch device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from kernull._typing import Array
from kernull.kernels import Custom
from kernull.operators.cross import CrossKernels
from kernull.operators.torch_tiled import TorchTiledStack
from kernull.views.kernel_set import KernelSet


class DeviceCross(CrossKernels):
    """`CrossKernels` whose products and own scores come from a device; the rest from the host.

    Products are in ``dtype``. Own scores are in float64 whatever it is: a distance to the nearest
    row is a small difference of large numbers.
    """

    def __init__(
        self, bank: KernelSet, X: Array, scale: Array | None, device: Any, dtype: Any
    ) -> None:
        super().__init__(bank, X, scale)
        self.device, self.dtype = device, dtype

    @cached_property
    def _stack(self) -> TorchTiledStack:
        kind = torch.float32 if np.dtype(self.dtype) == np.float32 else torch.float64
        left = self.bank.with_rows(self.X)
        return TorchTiledStack.from_kernel_set(self.bank, self.device, kind, left)

    def _sweep(self, V: Array, weights: Array | None = None) -> Array:
        if any(isinstance(k, Custom) for v in self.bank.views for k in v.kernels):
            return super()._sweep(V, weights)
        return self._stack._sweep(V, weights)

    def _like(self, bank: KernelSet, scale: Array | None) -> DeviceCross:
        return DeviceCross(bank, self.X, scale, self.device, self.dtype)

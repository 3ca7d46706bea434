"""Kernels between new rows and the training rows, evaluated on a torch device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from kernull._typing import Array
from kernull.kernels import Custom, Rbf
from kernull.stacks.cross import CrossKernels, bounded
from kernull.stacks.kernel_set import KernelSet
from kernull.stacks.torch_tiled import BAND_BYTES, TorchTiledStack


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

    def own_scores(self, coef: Array, diagonal: Array | None = None) -> tuple[Array, Array]:
        """K_j a_j for every j, and the squared distance to the nearest training row of its view."""
        views = self.bank.views
        if not all(isinstance(kernel, Rbf) for view in views for kernel in view.kernels):
            return super().own_scores(coef, diagonal)
        shape = (self.J, len(self))
        projected = torch.empty(shape, dtype=torch.float64, device=self.device)
        nearest2 = torch.empty_like(projected)
        j = 0
        for view in views:
            here = slice(j, j + len(view.kernels))
            j = here.stop
            centre = view.train.mean(axis=0)
            with np.errstate(over="ignore", invalid="ignore"):
                new, train = bounded(view.transform(self.X) - centre), bounded(view.train - centre)
            a, b = (torch.as_tensor(part, device=self.device) for part in (new, train))
            gains = [-0.5 * float(kernel.width or 1.0) ** -2 for kernel in view.kernels]
            own = torch.as_tensor(coef[here], device=self.device)
            room = BAND_BYTES.get(str(torch.device(self.device).type), BAND_BYTES["cpu"])
            step, norms = max(1, room // (8 * len(b))), b.square().sum(1)
            for i in range(0, len(a), step):
                some = a[i : i + step]
                squared = torch.addmm(norms, some, b.T, alpha=-2.0)
                squared += some.square().sum(1, keepdim=True)
                # What overflows is farther than anything.
                squared.clamp_(min=0.0).nan_to_num_(nan=torch.inf, posinf=torch.inf)
                nearest2[here, i : i + step] = squared.amin(dim=1)
                for f, gain in enumerate(gains):
                    projected[here][f, i : i + step] = (squared * gain).exp_() @ own[f]
        return projected.cpu().numpy(), nearest2.cpu().numpy()

    def _like(self, bank: KernelSet, scale: Array | None) -> DeviceCross:
        return DeviceCross(bank, self.X, scale, self.device, self.dtype)

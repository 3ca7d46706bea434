"""Stacks on torch, CPU or CUDA: what they share, and the dense one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kernull._typing import Array, Indices
from kernull.stacks.base import SweptStack


class TorchStack(SweptStack):
    """What stacks on torch share: NumPy at the border."""

    device: Any
    dtype: Any

    def __repr__(self) -> str:
        name, where = type(self).__name__, self.device
        return f"{name}(J={self.J}, shape={self.shape}, dtype={self.dtype}, device={where})"

    def _sweep(self, V: Any, weights: Array | None = None) -> Array:
        V = self._tensor(V)
        return self._numpy(self._products(V) if weights is None else self._combined(weights, V))

    def combined_there(self, weights: Array, V: Any) -> Any:
        """`combined_products` of a tensor (n, k) that stays on the device, in float64."""
        return self._combined(np.asarray(weights) * self.scale, V.to(self.dtype))

    def _products(self, V: Any) -> Any:
        raise NotImplementedError

    def _combined(self, weights: Array, V: Any) -> Any:
        raise NotImplementedError

    def _tensor(self, V: Any) -> Any:
        return torch.as_tensor(V).to(self.device).to(self.dtype)  # converted on the device

    def _numpy(self, values: Any) -> Array:
        return np.asarray(values.double().cpu().numpy())


class TorchDenseStack(TorchStack):
    """J kernel matrices stored in one tensor of shape (J, m, n) on its device."""

    def __init__(self, kernels: Any, scale: Array | None = None) -> None:
        self.kernels = kernels
        self.scale = np.ones(len(kernels)) if scale is None else np.asarray(scale, dtype=float)
        self.device, self.dtype = kernels.device, kernels.dtype
        self.shape = (int(kernels.shape[1]), int(kernels.shape[2]))

    def __getitem__(self, index: Any) -> TorchDenseStack:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        i, j = (torch.as_tensor(part, device=self.device) for part in self._positions(index))
        return TorchDenseStack(self.kernels[:, i][:, :, j], self.scale)

    def select(self, kernels: Any) -> TorchDenseStack:
        """The stack of some of the kernels."""
        mask = self._mask(kernels)
        return TorchDenseStack(self.kernels[torch.as_tensor(mask)], self.scale[mask])

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n); for square stacks."""
        return self._numpy(self.kernels.diagonal(dim1=1, dim2=2)) * self.scale[:, None]

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        return self._numpy(self.kernels[:, index]) * self.scale[:, None, None]

    def _products(self, V: Any) -> Any:
        return torch.matmul(self.kernels, V)

    def _combined(self, weights: Array, V: Any) -> Any:
        images = torch.matmul(self.kernels, V).double()
        return torch.einsum("j,jmk->mk", torch.as_tensor(weights, device=self.device), images)

    def combined_rows_there(self, weights: Array, index: Indices) -> Any:
        """Some rows of the sum of b_j K_j, of shape (len(index), n), on the device in float64."""
        some = self.kernels[:, torch.as_tensor(index, device=self.device)].double()
        b = torch.as_tensor(np.asarray(weights) * self.scale, device=self.device)
        return torch.einsum("j,jmn->mn", b, some)

"""The inverse of `kernull.solvers.nystroem` on a torch device, from landmark rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kernull._typing import Array, Indices

#: Added to the small matrix, relative to its trace: what rounding may take from it.
JITTER = {torch.float64: 1e-13, torch.float32: 1e-9}


class TorchLandmarks:
    """A function of weights b and a residual r that nearly solves (rho I + K_b) x = r.

    ``columns`` is the stack (n, l) between all rows and the landmarks, which are those at
    ``index``; ``row_scale`` are roots of the weights of rows.
    """

    def __init__(
        self, columns: Any, index: Indices, ridge: float, row_scale: Array | None = None
    ) -> None:
        self.columns, self.ridge = columns, ridge
        self.index = torch.as_tensor(index, device=columns.device)
        self.row_scale = None
        if row_scale is not None:
            self.row_scale = torch.as_tensor(row_scale).to(columns.device, columns.dtype)
        self._C: Any = None

    def __call__(self, weights: Array, residual: Array) -> Array:
        """A direction that nearly solves (rho I + K_b) x = residual."""
        C, factor = self._factorise(weights)
        r = torch.as_tensor(residual).to(C.device, C.dtype)
        y = torch.cholesky_solve((C.T @ r).double()[:, None], factor)[:, 0]
        return np.asarray((r - C @ y.to(C.dtype)).double().cpu().numpy())

    def _factorise(self, weights: Array) -> tuple[Any, Any]:
        """C, of shape (n, l), and the lower factor of rho W + C'C."""
        stack, scaled = self.columns, np.asarray(weights) * self.columns.scale
        n, m = stack.shape
        if self._C is None:
            self._C = torch.empty((n, m), dtype=stack.dtype, device=stack.device)
        C, core = self._C, torch.zeros((m, m), dtype=torch.float64, device=stack.device)
        for band, K in stack.combined_bands(scaled):
            if self.row_scale is not None:
                K = K * self.row_scale[band, None] * self.row_scale[self.index]
            C[band] = K
            core += (K.T @ K).double()
        core += self.ridge * C[self.index].double()
        jitter = JITTER[stack.dtype] * core.diagonal().sum()
        while True:
            core.diagonal().add_(jitter)
            factor, failed = torch.linalg.cholesky_ex(core)
            if not failed or not torch.isfinite(core).all():
                return C, factor
            jitter = 100 * jitter

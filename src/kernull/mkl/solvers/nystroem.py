r"""A Nystroem preconditioner for the subspace solver: fewer passes at small ridges.

.. math::

   (\rho I + C W^{-1} C')^{-1} r = \frac1\rho \big(r - C (\rho W + C'C)^{-1} C' r\big),
   \qquad C = \sum_j b_j k_j(X, L), \quad W = \sum_j b_j k_j(L, L)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array
from kernull.mkl.problems import FisherProblem

#: Change of the weights, relative to the largest, from which on it is factorised anew.
MOVED = 0.1


class NystroemPreconditioner:
    """An approximate inverse of rho I + K_b for any weights b, from a few rows of the kernels.

    Memory is J x landmarks x n, on devices landmarks x n.
    """

    def __init__(self, problem: FisherProblem, landmarks: int = 200) -> None:
        rng = np.random.default_rng(0)
        self.index = np.sort(rng.choice(problem.n, min(landmarks, problem.n), replace=False))
        #: On a device, where the stack knows how.
        self._there: Any = None
        on_device: Any = getattr(problem.stack, "landmark_inverse", None)
        if on_device is not None:
            self._there = on_device(self.index, problem.ridge, problem.row_scale)
            return
        rows = problem.stack.rows(self.index)
        if problem.row_scale is not None:
            rows *= problem.row_scale
            rows *= problem.row_scale[self.index][:, None]
        self._rows = rows
        self._last: tuple[Array, Array, Any] | None = None
        self.ridge = problem.ridge

    def __call__(self, weights: Array, residual: Array) -> Array:
        """A direction that nearly solves (rho I + K_b) x = residual."""
        if self._there is not None:
            return np.asarray(self._there(weights, residual))
        # For weights that are nearly those of the last time, its factor is as good.
        if self._last is None or np.abs(weights - self._last[0]).max() > MOVED * weights.max():
            C = np.tensordot(weights, self._rows, axes=1)  # (l, n)
            core = self.ridge * C[:, self.index] + C @ C.T
            core.flat[:: len(core) + 1] += 1e-12 * np.trace(core)
            self._last = weights.copy(), C, cho_factor(core, overwrite_a=True)
        _, C, factor = self._last
        return np.asarray(residual - cho_solve(factor, C @ residual) @ C)

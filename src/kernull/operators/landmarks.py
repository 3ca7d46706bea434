"""A few rows that stand for all: factors of the kernels between them, and an inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from kernull._runtime import in_threads
from kernull._typing import Array, Indices
from kernull.operators.linalg import cholesky

#: Change of the weights, relative to the largest, from which on `LandmarkInverse` factorises anew.
MOVED = 0.1
#: Added to W_j relative to its mean diagonal entry: the rounding of its own evaluation.
JITTER = {"float64": 1e-10, "float32": 1e-5}


class LandmarkInverse:
    r"""Nystroem's inverse of rho I + K_b for any weights b, from l rows of the kernels.

    .. math::

       (\rho I + C W^{-1} C')^{-1} r = \frac1\rho \big(r - C (\rho W + C'C)^{-1} C' r\big),
       \qquad C = \sum_j b_j k_j(X, L), \quad W = \sum_j b_j k_j(L, L)

    Calls leave out the factor 1/rho. ``rows``, the kernels between landmarks and all rows, (J, l,
    n), are kept and used up.
    """

    def __init__(self, rows: Array, index: Indices, ridge: float, row_scale: Array | None) -> None:
        if row_scale is not None:
            rows *= row_scale
            rows *= row_scale[index][:, None]
        self.kernel_rows, self.index, self.ridge = rows, index, ridge
        self._last: tuple[Array, Array, Array] | None = None

    def __call__(self, weights: Array, residual: Array) -> Array:
        """A direction that nearly solves (rho I + K_b) x = residual."""
        # Weights that are nearly those of the last call share its factor.
        if self._last is None or np.abs(weights - self._last[0]).max() > MOVED * weights.max():
            C = np.tensordot(weights, self.kernel_rows, axes=1)  # (l, n)
            core = self.ridge * C[:, self.index] + C @ C.T
            core.flat[:: len(core) + 1] += 1e-12 * np.trace(core)
            self._last = weights.copy(), C, cholesky(core)
        _, C, factor = self._last
        return np.asarray(residual - cho_solve((factor, True), C @ residual) @ C)


class LandmarkFactors:
    """Cholesky factors of the kernels W_j between l landmarks, with `JITTER` on their diagonals.

    Parameters
    ----------
    landmarks : stack of shape (l, l)
    """

    def __init__(self, landmarks: Any) -> None:
        self.landmarks = landmarks
        self.jitter = JITTER["float32" if landmarks.eps > 1e-10 else "float64"]
        self.lower = self._factorise()

    def _factorise(self) -> Any:
        """Lower Cholesky factors of W_j, J arrays of shape (l, l)."""
        W = self.landmarks.rows(slice(None))
        for matrix in W:
            matrix.flat[:: len(matrix) + 1] += self.jitter * np.trace(matrix) / len(matrix)
        return in_threads(lambda matrix: cholesky(matrix, side_by_side=True), [*W])

    def solve(self, V: Array) -> Array:
        """W_j^-1 V_j for every j: (J, l) -> (J, l), (J, l, k) -> (J, l, k)."""
        pairs = zip(self.lower, V, strict=True)
        return np.stack([cho_solve((f, True), v, check_finite=False) for f, v in pairs])

"""Inverses of the covariances without each row: many small matrices, each near to a common one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernull._typing import Array

#: Relative error of an inverse up to which Newton's iteration improves it.
FAR = 1e-2
#: Residual of an inverse that needs no more than the one step: that of the result is its square.
CLOSE = 1e-6


def near_inverses(C: Array, g: float) -> Callable[..., Array]:
    r"""The function that gives inverses of A_i to first order, but for zz' exact.

    .. math:: A_i = (1 - g_i)(C - \omega_i zz') + g_i\, \mathrm{diag}(1 - \omega_i z^2)

    is S = (1 - g) C + g I, whose inverse all rows share, less zz' and changes as small as g/n.
    """
    d = len(C)
    T = np.linalg.inv((1 - g) * C + g * np.eye(d))
    # T itself, T E T of diagonal E, and the change with g: each a matrix as a row.
    parts = np.vstack([T.reshape(1, d * d), (T[:, :, None] * T[:, None, :]).reshape(d, d * d),
                       (T @ (C - np.eye(d)) @ T).reshape(1, d * d)])  # fmt: skip

    def near(z: Array, b: Array, own: Array, omega: Array) -> Array:
        moves = np.column_stack([np.ones(len(z)), (own * omega)[:, None] * z**2, own - g])
        out = (moves @ parts).reshape(len(z), d, d)
        y = np.matmul(out, z[:, :, None])[:, :, 0]
        gain = b / np.maximum(1.0 - b * (y * z).sum(axis=1), 1e-3)
        out += np.einsum("ri,rj->rij", gain[:, None] * y, y)
        return np.asarray(out)

    return near


def inverses(A: Array, near: Array) -> Array:
    """Inverses of many small matrices by Newton's iteration from near ones.

    It consists of products, which take a fraction of the time of as many small factorisations.
    """
    R = A @ near
    np.negative(R, out=R)
    R[:, np.arange(A.shape[1]), np.arange(A.shape[1])] += 1.0
    size = np.sqrt(np.einsum("rij,rij->r", R, R))
    far = ~(size <= FAR)
    R[far] = 0.0
    out = near @ R
    out += near
    error = float(size[~far].max(initial=0.0))
    while error > CLOSE:
        R = R @ R
        out += out @ R
        error *= error
    out[far] = np.linalg.inv(A[far])
    return np.asarray(out)

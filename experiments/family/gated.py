r"""Kernels that count in one part of the data only: localised weights as a convex problem.

With memberships g_l of the rows in L clusters, each kernel K_j becomes L kernels

.. math:: K_{jl} = \mathrm{diag}(g_l)\, K_j\, \mathrm{diag}(g_l), \qquad g_l \ge 0

which are positive semidefinite, so that everything that learns weights of kernels learns weights
b_jl of kernel j in cluster l, convex and certified as before: in a mixed ball over the table
(j, l), `MixedBall(p, r, np.repeat(range(J), L))`.

Source: Arashloo, *Unknown Face Presentation Attack Detection via Localised Learning of Multiple
Kernels*, arXiv:2204.10675: local weights of kernels for the one-class Fisher null-space under a
joint matrix norm. Gates of this form go back to Gönen and Alpaydın, *Localized algorithms for
multiple kernel learning*, Pattern Recognition 46 (2013). How gates are made, and that they are held
fixed, is ours (`soft_memberships`).
"""

from __future__ import annotations

import numpy as np

from kernull._typing import Array
from kernull.operators.dense import DenseStack

__all__ = ["gate", "soft_memberships"]


def soft_memberships(X: Array, centres: Array, width: float) -> Array:
    r"""Gates of rows in the clusters around some centres.

    .. math:: g_l(x)^2 = \frac{\exp(-\|x - c_l\|^2 / 2w^2)}{\sum_m \exp(-\|x - c_m\|^2 / 2w^2)}

    The squares of a row's gates sum to one, so that equal weights of all clusters leave
    k(x, x) as it was. Centres may come from k-means or be landmarks among the training rows; the
    public descriptions of localised kernels leave this open, and with it the width.

    Parameters
    ----------
    X : array of shape (n, d)
    centres : array of shape (L, d)
    width : float
        w > 0. A small one gives hard clusters, a large one equal gates everywhere.

    Returns
    -------
    array of shape (n, L)

    Examples
    --------
    >>> soft_memberships(np.array([[0.0], [1.0]]), np.array([[0.0], [2.0]]), 1.0).round(2)
    array([[0.94, 0.34],
           [0.71, 0.71]])
    """
    X, centres = np.asarray(X, dtype=float), np.asarray(centres, dtype=float)
    if X.ndim != 2 or centres.ndim != 2 or X.shape[1] != centres.shape[1]:
        raise ValueError(
            f"centres: got shape {centres.shape} for rows of shape {X.shape}; expected one row per "
            "cluster with as many columns as X."
        )
    if isinstance(width, bool) or not 0 < float(width) < np.inf:
        raise ValueError(f"width: got {width!r}; expected a positive number.")
    distance2 = ((X[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    logs = -distance2 / (2.0 * float(width) ** 2)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(np.sqrt(shares / shares.sum(axis=1, keepdims=True)))


def gate(stack: DenseStack, rows: Array, columns: Array | None = None) -> DenseStack:
    """Kernels gated by memberships, listed kernel by kernel: j x L + l.

    Parameters
    ----------
    stack : DenseStack
        J kernels of shape (m, n): training kernels, or kernels of new rows with the training rows.
    rows : array of shape (m, L)
        Gates of the rows.
    columns : array of shape (n, L), optional
        Gates of the columns; those of the rows by default.

    Returns
    -------
    DenseStack
        J L kernels.

    Examples
    --------
    >>> K = DenseStack(np.ones((1, 2, 2)))
    >>> gate(K, np.array([[1.0, 0.0], [0.0, 1.0]])).kernels.tolist()
    [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]]
    """
    kernels = stack.kernels
    left = np.asarray(rows, dtype=float)
    right = left if columns is None else np.asarray(columns, dtype=float)
    J, m, n = kernels.shape
    if left.ndim != 2 or left.shape[0] != m or right.shape != (n, left.shape[1]):
        raise ValueError(
            f"rows: got gates of shape {left.shape} and {right.shape} for kernels of shape "
            f"{(m, n)}; expected one row of gates per row and per column."
        )
    if (left < 0).any() or (right < 0).any():
        raise ValueError("rows: got negative gates; expected memberships of zero or more.")
    L = left.shape[1]
    gated = kernels[:, None] * left.T[None, :, :, None] * right.T[None, :, None, :]
    return DenseStack(gated.reshape(J * L, m, n), scale=np.repeat(stack.scale, L))

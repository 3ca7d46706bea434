r"""Agreement of a view with the others: how like it is to the normal rows that they point to.

Let :math:`k_v(x)` hold the similarities of row x to normal rows, the witnesses, in view v (the sum
over its kernels, each times its weight) and :math:`k_{-v}(x)` those in all other views. With
:math:`G = (\rho I + K_b)^{-1}`, the other views describe x as a mixture of witnesses, of which

.. math:: w = \max(G k_{-v}(x), 0)

are the positive shares (the weights of kernel ridge regression). The agreement of view v is its
mean similarity to these:

.. math:: g_v(x) = \frac{w' k_v(x)}{w' 1}

A view that was swapped for that of something else may contribute as much to the score as it
should, and yet belong to other rows than the rest does: then :math:`g_v` is low. A view that is
broken hardly counts in :math:`k_{-v}`, so it does not drag the others down with it. A witness is
judged by the others: with row i left out, :math:`G^{-i} = G - G e_i e_i' G / G_{ii}`, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array, Indices
from kernull.stacks import KernelBank

__all__ = ["Witnesses", "view_numbers", "witness_rows"]

#: Bytes of kernel rows judged at once.
CHUNK_BYTES = 32 * 2**20
#: Training rows that stand as witnesses: enough to know how views go together, and few enough
#: that judging a million rows costs about as much as scoring them.
WITNESSES = 200


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Normal rows that say which similarities in one view go with which in the others.

    Parameters
    ----------
    weights : array of shape (J,)
        Weight of each kernel.
    groups : integer array of shape (J,)
        Number of each kernel's view, from 0; at least two views.
    inverse : array of shape (w, w)
        G of the w witnesses.
    usual : array of shape (w, J)
        Agreement of each witness with the others, by kernel; a view's is the sum over its kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> kernels = np.stack([rbf_kernel(X), rbf_kernel(X + 0.1 * X**2)])
    >>> witnesses = Witnesses.of(kernels, np.ones(2), np.arange(2), ridge=0.5)
    >>> witnesses.usual.shape
    (50, 2)
    """

    weights: Array
    groups: Indices
    inverse: Array
    usual: Array

    @classmethod
    def of(cls, kernels: Array, weights: Array, groups: Indices, ridge: float) -> Witnesses:
        """Witnesses from their kernels of shape (J, w, w)."""
        w = kernels.shape[1]
        combined = np.tensordot(weights, kernels, 1)
        combined[np.diag_indices(w)] += ridge
        inverse = cho_solve(cho_factor(combined, lower=True, overwrite_a=True), np.eye(w))
        usual = _agreement(kernels, weights, groups, inverse, left_out=True)
        return cls(weights, groups, inverse, usual)

    @property
    def rows_at_once(self) -> int:
        """Number of rows whose kernels fit `CHUNK_BYTES`."""
        return max(1, CHUNK_BYTES // (8 * len(self.weights) * len(self.inverse)))

    def agreement(self, kernels: Array) -> Array:
        """Agreement of new rows, of shape (m, J), from kernels of shape (J, m, w)."""
        return _agreement(kernels, self.weights, self.groups, self.inverse)


def view_numbers(bank: KernelBank) -> Indices:
    """Number of each kernel's view, from 0."""
    index = {name: v for v, name in enumerate(dict.fromkeys(bank.kernel_views))}
    return np.array([index[name] for name in bank.kernel_views], dtype=np.intp)


def witness_rows(n: int) -> Indices:
    """Which of n rows stand as witnesses: at most `WITNESSES`, evenly spread."""
    return np.linspace(0, n - 1, min(n, WITNESSES)).round().astype(np.intp)


def _agreement(
    kernels: Array, weights: Array, groups: Indices, inverse: Array, left_out: bool = False
) -> Array:
    total = np.tensordot(weights, kernels, 1)
    out = np.empty((kernels.shape[1], len(weights)))
    for group in range(int(groups.max()) + 1):
        own = groups == group
        rest = total - np.tensordot(weights[own], kernels[own], 1)
        if left_out:  # new rows are no witnesses of themselves
            np.fill_diagonal(rest, 0.0)
        shares = rest @ inverse
        if left_out:
            shares -= (shares.diagonal() / inverse.diagonal())[:, None] * inverse
            np.fill_diagonal(shares, 0.0)
        shares = np.maximum(shares, 0.0)
        size = shares.sum(axis=1, keepdims=True)
        # Where the other views resemble no witness at all, every witness counts alike.
        shares = np.where(size > np.finfo(float).tiny, shares, 1.0)
        if left_out:
            np.fill_diagonal(shares, 0.0)
        shares /= shares.sum(axis=1, keepdims=True)
        out[:, own] = np.einsum("jik,ik->ij", kernels[own], shares)
    return np.asarray(out * weights)

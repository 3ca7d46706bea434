r"""The Nystroem stack: each kernel is replaced by its best approximation from landmarks.

.. math:: \tilde K_j = C_j W_j^{-1} C_j', \qquad C_j = k_j(X, L), \quad W_j = k_j(L, L)

A product costs two sweeps over n x l kernel values instead of n x n. Where memory allows, the
features :math:`\Phi_j = C_j L_j^{-\top}` (:math:`W_j = L_j L_j'`) are kept, so that
:math:`\tilde K_j = \Phi_j \Phi_j'` and nothing is evaluated twice; elsewhere nothing larger than
the l x l factors is stored. All kernels share the landmark rows L.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.cluster import kmeans_plusplus

from kernull._typing import Array, Indices
from kernull.operators.base import Stack
from kernull.views.kernel_set import KernelSet

#: Candidates that k-means++ looks at, as a multiple of the landmarks.
CANDIDATES = 10
#: Rows whose features are made at a time.
FEATURE_ROWS = 4096


class LowRankStack(Stack):
    r"""J low-rank kernels over n rows, from l landmarks.

    Parameters
    ----------
    stack : TiledStack or TorchTiledStack
        The kernels that are approximated.
    index : integer array of shape (l,)
        The landmarks among the rows.
    keep_bytes : int
        Features, (J, n, l), are kept where they take no more, and are float64 on the CPU.
    """

    landmark_rows: Indices

    def __init__(self, stack: Any, index: Indices, *, keep_bytes: int = 0) -> None:
        self.stack, self.landmark_rows, self.keep_bytes = stack, index, keep_bytes
        self.forward, self.backward = stack[:, index], stack[index]  # (n, l), (l, n)
        self.factors = stack[np.ix_(index, index)].landmark_factors()
        self.shape, self.dtype = stack.shape, stack.dtype
        self.scale = np.ones(stack.J)  # on top of that of the stack
        size = 8 * stack.J * stack.n * len(index)
        self.keep_features = self.dtype == np.float64 and size <= keep_bytes

    @property
    def eps(self) -> float:
        """Relative rounding of a kernel value."""
        return float(self.forward.eps)

    def __repr__(self) -> str:
        return f"LowRankStack(J={self.J}, n={self.n}, landmarks={self.forward.n})"

    @cached_property
    def _features(self) -> Array:
        """C_j L_j^-T, of shape (J, n, l)."""
        out = self.forward.rows(slice(None))
        for C, factor in zip(out, self.factors.lower, strict=True):
            for start in range(0, self.n, FEATURE_ROWS):
                part = C[start : start + FEATURE_ROWS]
                part[:] = solve_triangular(factor, part.T, lower=True, check_finite=False).T
        return np.asarray(out)

    def project(self, V: Array) -> Array:
        """W_j^-1 C_j' V, the coefficients of the landmarks: (n,) -> (J, l), (n, k) -> (J, l, k)."""
        if not self.keep_features:
            return np.asarray(self.factors.solve(self.backward.products(V)))
        solved = [
            solve_triangular(factor, F.T @ V, lower=True, trans=1, check_finite=False)
            for factor, F in zip(self.factors.lower, self._features, strict=True)
        ]
        return np.stack(solved)

    def products(self, V: Array) -> Array:
        """K_j V for every j: (n,) -> (J, n), (n, k) -> (J, n, k)."""
        V = np.asarray(V)
        if self.keep_features:
            out = np.stack([F @ (F.T @ V) for F in self._features])
        else:
            out = self.forward.products_each(self.project(V))
        return np.asarray(out * self.scale.reshape(-1, *[1] * V.ndim))

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        if self.keep_features:
            across = np.stack([np.atleast_2d(F[index]) @ F.T for F in self._features])
            return np.asarray(across * self.scale[:, None, None])
        C = self.forward.rows(np.atleast_1d(np.arange(self.n)[index]))
        across = self.forward.products_each(self.factors.solve(C.transpose(0, 2, 1)))
        return np.asarray(across.transpose(0, 2, 1) * self.scale[:, None, None])

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n)."""
        return np.asarray(self._diagonal * self.scale[:, None])

    @cached_property
    def _diagonal(self) -> Array:
        if self.keep_features:
            return np.stack([np.einsum("il,il->i", F, F) for F in self._features])
        out = np.empty((self.J, self.n))
        step = max(1, 2**24 // (self.J * self.forward.n))
        for start in range(0, self.n, step):
            C = self.forward.rows(slice(start, start + step))
            out[:, start : start + step] = np.einsum(
                "jil,jli->ji", C, self.factors.solve(C.transpose(0, 2, 1))
            )
        return out


def choose_landmarks(kernel_set: KernelSet, count: int) -> Indices:
    """Rows to serve as landmarks, in increasing order, picked among a random subset of all.

    They are spread by squared distance in the joined views (k-means++), in which each view counts
    alike, however many columns it has.
    """
    if count >= kernel_set.n:
        return np.arange(kernel_set.n)
    rng = np.random.default_rng(0)
    candidates = rng.choice(kernel_set.n, min(kernel_set.n, CANDIDATES * count), replace=False)
    views = [view.train[candidates] for view in kernel_set.views]
    joined = np.hstack([part / np.sqrt(part.shape[1]) for part in views])
    _, picked = kmeans_plusplus(joined, count, random_state=0)
    return np.sort(candidates[np.asarray(picked)])

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
from scipy.linalg import cho_solve, solve_triangular
from sklearn.cluster import kmeans_plusplus

from kernull._runtime import in_threads
from kernull._typing import Array, Indices
from kernull.operators.base import Stack
from kernull.operators.linalg import cholesky
from kernull.operators.tiled import TiledStack
from kernull.views.kernel_set import KernelSet

#: Added to W_j relative to its mean diagonal entry: the rounding of its own evaluation.
JITTER = {"float64": 1e-10, "float32": 1e-5}
#: Candidates that k-means++ and leverage sampling look at, as a multiple of the landmarks.
CANDIDATES = 10
#: Rows whose features are made at a time.
FEATURE_ROWS = 4096
#: Landmarks up to which k-means++ picks them.
FEW_LANDMARKS = 2000


class LowRankStack(Stack):
    r"""J low-rank kernels over n rows, from l landmarks.

    Parameters
    ----------
    forward, backward : SweptStack of shape (n, l), (l, n)
        Kernels between rows and landmarks.
    factors : LandmarkFactors
        Of the kernels between the landmarks.
    index : integer array of shape (l,)
        The landmarks among the rows.
    scale : array of shape (J,), optional
        One factor per kernel.
    keep_features : bool
        Whether the features, (J, n, l), are kept.
    """

    landmark_rows: Indices

    def __init__(
        self,
        forward: Any,
        backward: Any,
        factors: LandmarkFactors,
        index: Indices,
        *,
        scale: Array | None = None,
        keep_features: bool = False,
    ) -> None:
        self.forward, self.backward, self.factors = forward, backward, factors
        self.landmark_rows = index
        self.shape = (len(forward), len(forward))
        self.scale = np.ones(forward.J) if scale is None else np.asarray(scale, dtype=float)
        self.dtype = forward.dtype
        self.keep_features = keep_features

    @classmethod
    def from_kernel_set(
        cls, kernel_set: KernelSet, index: Indices, *, keep_bytes: int = 0, dtype: Any = np.float64
    ) -> LowRankStack:
        """The stack of a set's rows with the landmarks at ``index``, on the CPU.

        Features are kept where they take at most ``keep_bytes``.
        """
        few = kernel_set.take(index)
        size = 8 * kernel_set.J * kernel_set.n * len(index)
        return cls(
            TiledStack(few, left=kernel_set, dtype=dtype),
            TiledStack(kernel_set, left=few, dtype=dtype),
            LandmarkFactors(TiledStack(few, dtype=dtype)),
            index,
            keep_features=np.dtype(dtype) == np.float64 and size <= keep_bytes,
        )

    @classmethod
    def from_torch(cls, stack: Any, index: Indices) -> LowRankStack:
        """The low-rank version of a `TorchTiledStack`, on its device."""
        from kernull.operators.torch import DeviceFactors

        factors = DeviceFactors(stack[np.ix_(index, index)])
        return cls(stack[:, index], stack[index], factors, index)

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
            return self.factors.solve(self.backward.products(V))
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
        return self._diagonal * self.scale[:, None]

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

    def select(self, kernels: Any) -> LowRankStack:
        """The stack of the kernels that an index or a mask picks."""
        mask = self._mask(kernels)
        return LowRankStack(
            self.forward.select(mask),
            self.backward.select(mask),
            type(self.factors)(self.factors.landmarks.select(mask)),
            self.landmark_rows,
            scale=self.scale[mask],
            keep_features=self.keep_features,
        )


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


def choose_landmarks(kernel_set: KernelSet, count: int) -> Indices:
    """Rows to serve as landmarks, in increasing order, picked among a random subset of all.

    Up to `FEW_LANDMARKS` are spread by squared distance in the joined views (k-means++, which is
    sequential in the landmarks); more are drawn by how badly a uniform pilot sample explains them,
    which is one matrix product.
    """
    if count >= kernel_set.n:
        return np.arange(kernel_set.n)
    rng = np.random.default_rng(0)
    candidates = rng.choice(kernel_set.n, min(kernel_set.n, CANDIDATES * count), replace=False)
    if count <= FEW_LANDMARKS:
        # Every view counts alike, however many columns it has.
        views = [view.train[candidates] for view in kernel_set.views]
        joined = np.hstack([part / np.sqrt(part.shape[1]) for part in views])
        _, picked = kmeans_plusplus(joined, count, random_state=0)
    else:
        scores = _leverage(kernel_set.take(candidates), count, rng)
        picked = rng.choice(len(candidates), count, replace=False, p=scores / scores.sum())
    return np.sort(candidates[np.asarray(picked)])


def _leverage(kernel_set: KernelSet, count: int, rng: np.random.Generator) -> Array:
    """Ridge leverage of each row given a uniform pilot, for the mean of the kernels.

    With pilot S the residual k_ii - k_iS (K_SS + rho I)^-1 k_Si over rho bounds the leverage.
    """
    pilot = rng.choice(kernel_set.n, max(1, count // 2), replace=False)
    cross = TiledStack(kernel_set, left=kernel_set.take(pilot)).rows(slice(None)).mean(axis=0)
    K = cross[:, pilot].copy()
    ridge = float(np.trace(K)) / len(pilot) * 1e-2
    K.flat[:: len(K) + 1] += ridge
    explained = np.einsum("si,si->i", cross, cho_solve((cholesky(K), True), cross))
    diagonal = TiledStack(kernel_set).diagonal().mean(axis=0)
    return np.asarray(np.maximum(diagonal - explained, 0.0) + 1e-12 * diagonal.max())

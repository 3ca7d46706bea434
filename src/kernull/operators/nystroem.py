r"""The Nystroem stack: each kernel is replaced by its best approximation from landmarks.

.. math:: \tilde K_j = C_j W_j^{-1} C_j', \qquad C_j = k_j(X, L), \quad W_j = k_j(L, L)

A product costs two sweeps over n x l kernel values instead of n x n. Where memory allows, the
features :math:`\Phi_j = C_j L_j^{-\top}` (:math:`W_j = L_j L_j'`) are kept, so that
:math:`\tilde K_j = \Phi_j \Phi_j'` and nothing is evaluated twice; elsewhere nothing larger than
the l x l factors is stored. All kernels share the landmark rows L.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from sklearn.cluster import kmeans_plusplus

from kernull._typing import Array, Indices
from kernull.operators.base import StackShape
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


class LowRankStack(StackShape):
    r"""J low-rank kernels over n rows, from l landmarks.

    From stacks of kernels ``forward`` (n, l), between rows and landmarks, ``backward`` (l, n), and
    between ``landmarks`` (l, l). The features are kept where they take no more than ``keep_bytes``.
    """

    def __init__(
        self,
        forward: Any,
        backward: Any,
        landmarks: Any,
        scale: Array | None = None,
        keep_bytes: int = 0,
    ) -> None:
        self.forward = forward
        self.backward = backward
        self.landmarks = landmarks
        self.shape = (len(forward), len(forward))
        self.scale = np.ones(forward.J) if scale is None else np.asarray(scale, dtype=float)
        self._solve, self._factors = factorise_landmarks(landmarks)
        size = 8 * self.J * self.n * landmarks.n
        single = "32" in str(landmarks.dtype)
        self._kept = bool(self._factors) and not single and size <= keep_bytes
        self.landmark_rows: Indices = np.empty(0, dtype=np.intp)

    @classmethod
    def from_kernel_set(
        cls, bank: KernelSet, index: Indices, keep_bytes: int = 0, **options: Any
    ) -> LowRankStack:
        """The stack of a set's rows with the landmarks at ``index``, on the CPU."""
        few = bank.take(index)
        low = cls(
            TiledStack(few, left=bank, **options),
            TiledStack(bank, left=few, **options),
            TiledStack(few, **options),
            keep_bytes=keep_bytes,
        )
        low.landmark_rows = index
        return low

    @classmethod
    def from_torch(cls, stack: Any, index: Indices) -> LowRankStack:
        """The low-rank version of a `TorchTiledStack`, on its device."""
        low = cls(stack[:, index], stack[index], stack[np.ix_(index, index)])
        low.landmark_rows = index
        return low

    def __repr__(self) -> str:
        return f"LowRankStack(J={self.J}, n={self.n}, landmarks={self.landmarks.n})"

    @cached_property
    def _features(self) -> Array:
        """C_j L_j^-T, of shape (J, n, l)."""
        out = self.forward.rows(slice(None))
        for C, factor in zip(out, self._factors, strict=True):
            for start in range(0, self.n, FEATURE_ROWS):
                part = C[start : start + FEATURE_ROWS]
                part[:] = solve_triangular(factor, part.T, lower=True, check_finite=False).T
        return np.asarray(out)

    def project(self, V: Array) -> Array:
        """W_j^-1 C_j' V, the coefficients of the landmarks: (n,) -> (J, l), (n, k) -> (J, l, k)."""
        if not self._kept:
            return np.asarray(self._solve(self.backward.products(V)))
        solved = [
            solve_triangular(factor, F.T @ V, lower=True, trans=1, check_finite=False)
            for factor, F in zip(self._factors, self._features, strict=True)
        ]
        return np.stack(solved)

    def products(self, V: Array) -> Array:
        """K_j V for every j: (n,) -> (J, n), (n, k) -> (J, n, k)."""
        V = np.asarray(V)
        if self._kept:
            out = np.stack([F @ (F.T @ V) for F in self._features])
        else:
            out = self.forward.products_each(self.project(V))
        return np.asarray(out * self.scale.reshape(-1, *[1] * V.ndim))

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        if self._kept:
            across = np.stack([np.atleast_2d(F[index]) @ F.T for F in self._features])
            return np.asarray(across * self.scale[:, None, None])
        some = self.forward[np.atleast_1d(np.arange(self.n)[index])].rows(slice(None))
        across = self.forward.products_each(self._solve(some.transpose(0, 2, 1)))
        return np.asarray(across.transpose(0, 2, 1) * self.scale[:, None, None])

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n)."""
        return self._diagonal * self.scale[:, None]

    @cached_property
    def _diagonal(self) -> Array:
        if self._kept:
            return np.stack([np.einsum("il,il->i", F, F) for F in self._features])
        out = np.empty((self.J, self.n))
        step = max(1, 2**24 // (self.J * self.landmarks.n))
        for start in range(0, self.n, step):
            C = self.forward[np.arange(start, min(start + step, self.n))].rows(slice(None))
            out[:, start : start + step] = np.einsum(
                "jil,jli->ji", C, self._solve(C.transpose(0, 2, 1))
            )
        return out

    def select(self, kernels: Any) -> LowRankStack:
        """The stack of some of the kernels."""
        mask = self._mask(kernels)
        return LowRankStack(
            self.forward.select(mask),
            self.backward.select(mask),
            self.landmarks.select(mask),
            self.scale[mask],
            sys.maxsize if self._kept else 0,
        )


def factorise_landmarks(landmarks: Any) -> tuple[Any, list[Array]]:
    """A function that applies W_j^-1 to arrays of shape (J, l) or (J, l, k), and the factors.

    These are the lower Cholesky factors of W_j; there are none on a device.
    """
    jitter = JITTER[str(landmarks.dtype).removeprefix("torch.")]
    if hasattr(landmarks, "device"):
        return _factorise_on_device(landmarks, jitter), []
    W = landmarks.rows(slice(None))
    factors = []
    for matrix in W:
        matrix.flat[:: len(matrix) + 1] += jitter * np.trace(matrix) / len(matrix)
        factors.append(cholesky(matrix, lower=True, overwrite_a=True, check_finite=False))

    def solve(V: Array) -> Array:
        return np.stack(
            [cho_solve((f, True), v, check_finite=False) for f, v in zip(factors, V, strict=True)]
        )

    return solve, factors


def _factorise_on_device(landmarks: Any, jitter: float) -> Any:
    import torch

    W = landmarks.dense().kernels.double()
    W.diagonal(dim1=1, dim2=2).add_(jitter * W.diagonal(dim1=1, dim2=2).mean(dim=1, keepdim=True))
    factor = torch.linalg.cholesky(W)

    def solve(V: Array) -> Array:
        flat = torch.as_tensor(np.ascontiguousarray(V).reshape(*V.shape[:2], -1))
        out = torch.cholesky_solve(flat.to(factor.device), factor)
        return np.asarray(out.cpu().numpy()).reshape(V.shape)

    return solve


def choose_landmarks(bank: KernelSet, count: int) -> Indices:
    """Rows to serve as landmarks, in increasing order, picked among a random subset of all.

    Up to `FEW_LANDMARKS` are spread by squared distance in the joined views (k-means++, which is
    sequential in the landmarks); more are drawn by how badly a uniform pilot sample explains them,
    which is one matrix product.
    """
    if count >= bank.n:
        return np.arange(bank.n)
    rng = np.random.default_rng(0)
    candidates = rng.choice(bank.n, min(bank.n, CANDIDATES * count), replace=False)
    if count <= FEW_LANDMARKS:
        # Every view counts alike, however many columns it has.
        views = [view.train[candidates] for view in bank.views]
        joined = np.hstack([part / np.sqrt(part.shape[1]) for part in views])
        _, picked = kmeans_plusplus(joined, count, random_state=0)
    else:
        scores = _leverage(bank.take(candidates), count, rng)
        picked = rng.choice(len(candidates), count, replace=False, p=scores / scores.sum())
    return np.sort(candidates[np.asarray(picked)])


def _leverage(bank: KernelSet, count: int, rng: np.random.Generator) -> Array:
    """Ridge leverage of each row given a uniform pilot, for the mean of the kernels.

    With pilot S the residual k_ii - k_iS (K_SS + rho I)^-1 k_Si over rho bounds the leverage.
    """
    pilot = rng.choice(bank.n, max(1, count // 2), replace=False)
    cross = TiledStack(bank, left=bank.take(pilot)).rows(slice(None)).mean(axis=0)
    K = cross[:, pilot].copy()
    ridge = float(np.trace(K)) / len(pilot) * 1e-2
    K.flat[:: len(K) + 1] += ridge
    explained = np.einsum("si,si->i", cross, cho_solve(cho_factor(K), cross))
    diagonal = TiledStack(bank).diagonal().mean(axis=0)
    return np.asarray(np.maximum(diagonal - explained, 0.0) + 1e-12 * diagonal.max())

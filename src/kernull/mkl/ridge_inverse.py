r"""The inverse of a ridge system, kept up to date while rows come and go.

.. math:: G = (\rho W^{-1} + K_b)^{-1}, \qquad a = G t

Adding or removing k rows costs n^2 k instead of n^3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve
from scipy.linalg.blas import dgemm

from kernull._typing import Array, Indices
from kernull.errors import InvalidKernelError
from kernull.operators.linalg import cholesky


@dataclass(frozen=True, eq=False)
class RidgeInverse:
    r"""The inverse G of a ridge system at fixed kernel weights b, for incremental learning.

    .. math:: G = (\rho W^{-1} + K_b)^{-1}, \qquad K_b = \sum_j b_j K_j

    Objects are immutable: `append` and `remove` return new ones, so that a step that fails
    changes nothing. Make one from the kernel by `RidgeInverse.of`.

    Parameters
    ----------
    inverse : array of shape (n, n)
        The matrix G.
    ridge : float
        The ridge rho > 0: delta n in the objective of `MultiKernelFisherNull`.
    row_weight : array of shape (n,)
        The diagonal of W, > 0: weights of the rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((8, 2))
    >>> K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    >>> state = RidgeInverse.of(K[:6, :6], ridge=0.1)
    >>> state = state.append(K[6:, :6], K[6:, 6:]).remove([0])
    >>> bool(np.allclose(state.inverse, np.linalg.inv(K[1:, 1:] + 0.1 * np.eye(7))))
    True
    """

    inverse: Array
    ridge: float
    row_weight: Array

    @classmethod
    def of(
        cls,
        kernel: Array,
        ridge: float,
        row_weight: Array | None = None,
        *,
        overwrite: bool = False,
    ) -> RidgeInverse:
        """The inverse from the kernel itself, by one factorisation.

        Parameters
        ----------
        kernel : array of shape (n, n)
            The weighted sum K_b of the kernels.
        ridge : float
            The ridge rho > 0.
        row_weight : array of shape (n,), optional
            Weights of the rows, > 0; 1 by default.
        overwrite : bool, default=False
            Work in place of ``kernel``.

        Returns
        -------
        RidgeInverse
            Of n rows.
        """
        kernel = kernel if overwrite else kernel.copy()
        w = np.ones(len(kernel)) if row_weight is None else np.asarray(row_weight, dtype=float)
        kernel.flat[:: len(kernel) + 1] += ridge / w
        try:
            factor = cholesky(kernel)
        except LinAlgError:
            raise InvalidKernelError(
                "kernels: the weighted sum of the kernels plus the ridge is not positive definite; "
                "check the kernels, or raise delta."
            ) from None
        inverse = cho_solve((factor, True), np.eye(len(kernel)))
        return cls((inverse + inverse.T) / 2, float(ridge), w)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.inverse)

    def coef(self, target: Array | None = None) -> Array:
        """Coefficients a = G t.

        Parameters
        ----------
        target : array of shape (n,), optional
            The target t; ones by default, which is that of one-class learning.

        Returns
        -------
        array of shape (n,)
        """
        t = np.ones(self.n) if target is None else target
        return np.asarray(self.inverse @ t)

    def append(self, cross: Array, square: Array, row_weight: Array | None = None) -> RidgeInverse:
        r"""The inverse after k rows were added.

        With :math:`W = G B'` and the Schur complement
        :math:`S = \rho W_{new}^{-1} + D - B G B'` the new inverse is

        .. math:: \begin{pmatrix} G + W S^{-1} W' & -W S^{-1} \\ -S^{-1} W' & S^{-1} \end{pmatrix}.

        Parameters
        ----------
        cross : array of shape (k, n)
            B, the weighted kernel between the new rows and those of the inverse.
        square : array of shape (k, k)
            D, the weighted kernel among the new rows.
        row_weight : array of shape (k,), optional
            Weights of the new rows, > 0; 1 by default.

        Returns
        -------
        RidgeInverse
            Of n + k rows, the new ones last.
        """
        k, n = cross.shape
        w = np.ones(k) if row_weight is None else np.asarray(row_weight, dtype=float)
        GB = self.inverse @ cross.T
        S = square - cross @ GB
        S = (S + S.T) / 2
        S.flat[:: k + 1] += self.ridge / w
        try:
            factor = cholesky(S)
        except LinAlgError:
            raise InvalidKernelError(
                "kernels: with the new rows the weighted sum of the kernels is not positive "
                "semidefinite; check that they were computed like those of the fit."
            ) from None
        # [[G, 0], [0, 0]] + P S^-1 P' with P = (W; -I): one pass over the matrix, in place.
        out = np.zeros((n + k, n + k))
        out[:n, :n] = self.inverse
        P = np.concatenate([GB, -np.eye(k)])
        half = cho_solve((factor, True), P.T, check_finite=False)
        dgemm(1.0, P, half, beta=1.0, c=out.T, overwrite_c=1)
        return RidgeInverse(out, self.ridge, np.concatenate([self.row_weight, w]))

    def remove(self, rows: Indices | list[int]) -> RidgeInverse:
        r"""The inverse after rows f were removed: :math:`G_{kk} - G_{kf} G_{ff}^{-1} G_{fk}`.

        Parameters
        ----------
        rows : array or list of int
            Positions of the rows f among the n rows of the inverse.

        Returns
        -------
        RidgeInverse
            Of the other rows, in their order.
        """
        gone = np.zeros(self.n, dtype=bool)
        gone[rows] = True
        keep, drop = np.flatnonzero(~gone), np.flatnonzero(gone)
        side = self.inverse[np.ix_(drop, keep)]
        factor = cholesky(self.inverse[np.ix_(drop, drop)])
        out = self.inverse[np.ix_(keep, keep)]
        out -= side.T @ cho_solve((factor, True), side, check_finite=False)
        return RidgeInverse(out, self.ridge, self.row_weight[keep])

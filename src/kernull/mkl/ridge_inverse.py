r"""The inverse of a ridge system, kept up to date while rows come and go.

.. math:: G = (\rho W^{-1} + K_b)^{-1}, \qquad a = G 1

Adding or removing k rows costs n^2 k instead of n^3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve

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
    def of(cls, kernel: Array, ridge: float, row_weight: Array | None = None) -> RidgeInverse:
        """The inverse from the kernel K_b itself, of shape (n, n), by one factorisation.

        Parameters
        ----------
        kernel : array of shape (n, n)
            Combined kernel.
        ridge : float
            Ridge rho.
        row_weight : array of shape (n,), optional
        """
        empty = cls(np.zeros((0, 0)), float(ridge), np.zeros(0))
        return empty.append(np.zeros((len(kernel), 0)), kernel, row_weight)

    def coef(self) -> Array:
        """Coefficients a = G 1 of one-class learning, of shape (n,)."""
        return np.asarray(self.inverse.sum(axis=1))

    def append(self, cross: Array, square: Array, row_weight: Array | None = None) -> RidgeInverse:
        r"""The inverse after k rows were added, as the last ones.

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
        """
        k = len(cross)
        w = np.ones(k) if row_weight is None else np.asarray(row_weight, dtype=float)
        GB = self.inverse @ cross.T
        S = square - cross @ GB + np.diag(self.ridge / w)
        try:
            factor = cholesky((S + S.T) / 2)
        except LinAlgError:
            raise InvalidKernelError(
                "kernels: the weighted sum of the kernels plus the ridge is not positive definite; "
                "check that all rows have the same kernels, or raise delta."
            ) from None
        P = np.concatenate([GB, -np.eye(k)])
        out = P @ cho_solve((factor, True), P.T, check_finite=False)
        n = len(self.inverse)
        out[:n, :n] += self.inverse
        return RidgeInverse((out + out.T) / 2, self.ridge, np.concatenate([self.row_weight, w]))

    def remove(self, rows: Indices | list[int]) -> RidgeInverse:
        r"""The inverse after rows f were removed: :math:`G_{kk} - G_{kf} G_{ff}^{-1} G_{fk}`.

        Parameters
        ----------
        rows : array or list of int
            Positions of the rows f among the n rows of the inverse.
        """
        drop = np.unique(np.arange(len(self.inverse))[rows])
        keep = np.setdiff1d(np.arange(len(self.inverse)), drop)
        side = self.inverse[np.ix_(drop, keep)]
        factor = cholesky(self.inverse[np.ix_(drop, drop)])
        out = self.inverse[np.ix_(keep, keep)]
        out -= side.T @ cho_solve((factor, True), side, check_finite=False)
        return RidgeInverse(out, self.ridge, self.row_weight[keep])

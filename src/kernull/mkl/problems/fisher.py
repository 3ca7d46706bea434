r"""The one-class Fisher null-space problem.

.. math::

   F(b) = \max_a \; 2 a't - \rho\, a'a - a'K_b a = t'(\rho I + K_b)^{-1} t,
   \qquad K_b = \sum_j b_j K_j

with t = 1 for the paper's problem. F is convex and falls in every b_j: its gradient is -u with
:math:`u_j = a'K_j a`.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrs, dtrtrs

from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.mkl.problems.base import Evaluation, Problem
from kernull.operators import DenseStack, Stack
from kernull.operators.dense import smallest_ritz_value
from kernull.operators.linalg import cholesky

#: Squares of the coefficients, which are about 1 / ridge, must be numbers above 0.
MAX_RIDGE = 1e140


class FisherProblem(Problem):
    r"""Fisher null-space with an absolute ridge, a general right-hand side and row weights.

    Parameters
    ----------
    stack : Stack
        J kernels over n rows.
    ridge : float
        :math:`\rho > 0`, absolute (estimators pass delta times n).
    target : array of shape (n,), optional
        Right-hand side t; ones by default.
    row_weight : array of shape (n,), optional
        A weight w_i turns the ridge of row i into :math:`\rho / w_i`. Internally rows are scaled:
        with S = diag(sqrt(w)), the problem is that of the kernels S K_j S, the right-hand side S t
        and the plain ridge, and a = S times its solution. `coef` is always the unscaled a.

    Notes
    -----
    *Curvature.* 1/F is concave in b, being the minimum over {a : a't = 1} of functions linear in
    b, and is much closer to a quadratic than F is. The curvature returned is that of the problem
    "maximise 1/F", scaled by F^2 so that its gradient is u:
    :math:`H = 2 (M - uu'/F)`, :math:`M_{jk} = a'K_j (\rho I + K_b)^{-1} K_k a`.

    *Certificate.* For any a, with r = t - (\rho I + K_b) a,

    .. math::

       U = 2a't - \rho a'a - b'u + r'r/\rho \;\ge\; F(b), \qquad
       L = \frac{(a't)^2}{\rho a'a + h(u)} \;\le\; \min F,

    where h is the support function of the set of weights.
    """

    stack: Stack

    def __init__(
        self,
        stack: Stack,
        ridge: float,
        target: Array | None = None,
        row_weight: Array | None = None,
    ) -> None:
        if not 0 < ridge <= MAX_RIDGE:
            raise ValueError(
                f"ridge: got {ridge!r} (delta times the number of rows); expected a positive "
                f"number, at most {MAX_RIDGE:g}."
            )
        self.stack = stack
        #: Number of kernels, and of rows.
        self.J, self.n = stack.J, stack.n
        self.factor_rows = stack.n
        self.ridge = float(ridge)
        self.row_scale = None if row_weight is None else np.sqrt(np.asarray(row_weight, float))
        target = np.ones(stack.n) if target is None else np.asarray(target, dtype=float)
        #: Right-hand side in the scaled coordinates in which everything below works.
        self.target = target if self.row_scale is None else self._scale(target)
        self.n_evaluations = 0
        self._last: tuple[Array, Array] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stack!r}, ridge={self.ridge:g})"

    def _scale(self, V: Array) -> Array:
        """S V, where rows have weights."""
        assert self.row_scale is not None
        return np.asarray(self.row_scale.reshape(-1, *[1] * (V.ndim - 1)) * V)

    def on(self, stack: Stack) -> FisherProblem:
        """The same problem with other kernels of the same rows."""
        other = copy.copy(self)
        other.stack, other.n_evaluations = stack, 0
        return other

    def products(self, V: Array) -> Array:
        """K_j V for all j in one pass over the kernels: (n, k) -> (J, n, k)."""
        if self.row_scale is None:
            return self.stack.products(V)
        out = self.stack.products(self._scale(V))
        return np.asarray(out * self.row_scale.reshape(1, -1, *[1] * (V.ndim - 1)))

    def restrict(
        self, Q: Array, products: Array | None = None, matrices: Array | None = None
    ) -> FisherProblem:
        """The same problem with a confined to the span of orthonormal columns Q.

        Its kernels are T_j = Q'K_jQ and its right-hand side is Q't. ``products`` are K_jQ, of
        shape (J, n, m), and ``matrices`` the T_j themselves, where they are already known.
        """
        if matrices is None:
            matrices = Q.T @ (self.products(Q) if products is None else products)
        return FisherProblem(DenseStack(matrices), self.ridge, Q.T @ self.target)

    def factorise(self, weights: Array) -> Array:
        """Lower Cholesky factor of the scaled rho I + K_b, of shape (n, n).

        That of the last evaluation, where these are its weights: a solver ends where it evaluated.
        """
        last, self._last = self._last, None  # whoever gets a factor may use it up
        if last is not None and np.array_equal(last[0], weights):
            return last[1]
        A = self.stack.combine(weights)
        if self.row_scale is not None:
            A *= self.row_scale[:, None]
            A *= self.row_scale
        A.flat[:: self.n + 1] += self.ridge
        self.n_evaluations += 1
        try:
            return cholesky(A)
        except LinAlgError:
            raise self._indefinite(weights) from None

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at b, from one factorisation and one pass."""
        weights = np.asarray(weights, dtype=float)
        factor = self.factorise(weights)
        self._last = weights.copy(), factor
        a, _ = dpotrs(factor, self.target, lower=1)
        Ka = self.products(a)

        def curvature() -> Array:
            Z, _ = dtrtrs(factor, Ka.T, lower=1)
            u = Ka @ a
            return np.asarray(2.0 * (Z.T @ Z - np.outer(u, u) / (self.target @ a)))

        return self.certify(weights, a, Ka, curvature)

    def certify(self, weights: Array, a: Array, Ka: Array, curvature: Any = None) -> Evaluation:
        """Value, gradient and bound at weights b from coefficients that need not be exact.

        Parameters
        ----------
        weights : array of shape (J,)
        a : array of shape (n,)
            Coefficients, in the coordinates of ``target``.
        Ka : array of shape (J, n)
            K_j a, in the same coordinates.
        curvature : callable, optional
            Gives the curvature (J, J) at b, where the solver asks for it.

        Returns
        -------
        Evaluation
            With an upper bound of F(b), u of shape (J,), and a lower bound of the minimum of F.
        """
        u = Ka @ a
        residual = self.target - self.ridge * a - weights @ Ka
        linear, quadratic = float(self.target @ a), self.ridge * float(a @ a)
        if not u.min() >= 0.0:  # NaN included
            self._check_sign(u, quadratic, a)
        upper = (
            2 * linear - quadratic - float(weights @ u) + float(residual @ residual) / self.ridge
        )

        return Evaluation(
            weights,
            upper,
            u,
            a if self.row_scale is None else self._scale(a),
            lambda support: linear * linear / (quadratic + support),
            curvature,
        )

    def solution(self, weights: Array) -> Array:
        """Coefficients a at weights (J,), of shape (n,), exact by one Cholesky factorisation.

        They solve the problem as it was posed; what scales rows inside is undone.
        """
        a = np.asarray(dpotrs(self.factorise(weights), self.target, lower=1)[0])
        return a if self.row_scale is None else self._scale(a)

    def _check_sign(self, u: Array, quadratic: float, a: Array) -> None:
        # u_j = a'K_j a >= 0 for a positive semidefinite K_j, up to rounding. Rounding is measured
        # against rho a'a too: linear kernels of centred columns have every u_j = 0.
        worst = int(np.argmin(u))
        if u[worst] >= -1e-6 * max(float(np.abs(u).max()), quadratic):
            return
        if u[worst] >= -self._rounding(worst, a):
            return
        raise InvalidKernelError(
            f"kernels: kernel {worst} is not positive semidefinite: a'K a = {u[worst]:.3g} for "
            "the model's own coefficients a."
        )

    def _rounding(self, j: int, a: Array) -> float:
        """How far rounding may take a'K_j a: 2 n eps |a|'|K_j||a|, with |K_ij| <= sqrt(k_ii k_jj).

        Where the ridge is tiny, a is huge in the directions that K_j does not have, and a'K_j a is
        a small difference of large numbers.
        """
        root = np.sqrt(np.maximum(self.stack.diagonal()[j], 0.0))
        spread = np.abs(a if self.row_scale is None else self.row_scale * a) @ root
        return float(2.0 * self.n * self.stack.eps * spread * spread)

    def _indefinite(self, weights: Array) -> InvalidKernelError:
        K = self.stack.combine(weights)
        lowest, largest = smallest_ritz_value(K[None], steps=60)
        if -lowest[0] <= 1e-8 * largest[0]:  # the kernels may be fine, the ridge is not
            return InvalidKernelError(
                f"kernels: the ridge of {self.ridge:.3g} is lost in the rounding of kernels whose "
                f"largest eigenvalue is about {largest[0]:.3g}. Raise delta, or scale the data or "
                "the kernels."
            )
        return InvalidKernelError(
            "kernels: the weighted sum of the kernels is not positive semidefinite: it has an "
            f"eigenvalue of {lowest[0]:.3g} or below (largest about {largest[0]:.3g}), beyond the "
            f"ridge of {self.ridge:.3g}. Check the kernels, or raise delta."
        )

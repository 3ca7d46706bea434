"""The lp ball: b >= 0, ||b||_p <= 1, for every p in [1, inf].

Everything is computed in logarithms: u^(1/(p-1)) overflows for p near 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._fields import stored
from kernull._typing import Array
from kernull.mkl.balls._quadratic import (
    P_INF,
    P_ONE,
    Sphere,
    convex_norm,
    minimise_on_simplex,
    minimise_on_sphere,
)


@stored
class LpBall:
    r"""Weights with :math:`b \ge 0, \|b\|_p \le 1`.

    Its linear oracle is the paper's weight update,
    :math:`b = u^{1/(p-1)} / \|u^{1/(p-1)}\|_p`, and its support function is
    :math:`h(u) = \|u_+\|_q`, 1/p + 1/q = 1.

    Parameters
    ----------
    p : float in [1, inf]

    Examples
    --------
    >>> import numpy as np
    >>> LpBall(2).oracle(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    >>> LpBall(2).support(np.array([3.0, 4.0]))
    5.0
    """

    def __init__(self, p: float) -> None:
        if isinstance(p, bool) or not isinstance(p, int | float | np.number) or not p >= 1:
            raise ValueError(f"p: got {p!r}; expected a number in [1, inf].")
        self.p = self.exponent = float(p)
        #: True at p = 1, where optima are sparse.
        self.polyhedral = self.p < P_ONE
        self._uniform_only = self.p > P_INF

    def __repr__(self) -> str:
        return f"LpBall(p={self.p:g})"

    def oracle(self, u: Array) -> Array:
        """The maximiser of b'u: the paper's update of the weights."""
        if self._uniform_only:
            return np.where(u >= 0, 1.0, 0.0)
        if not (u > 0).any():
            return self.uniform(len(u)) if (u == 0).all() else np.zeros(len(u))
        if self.polyhedral:
            b = np.zeros(len(u))
            b[int(np.argmax(u))] = 1.0
            return b
        with np.errstate(divide="ignore"):
            return self._from_logs(np.log(np.maximum(u, 0.0)) / (self.p - 1.0))

    def support(self, u: Array) -> float:
        """h(u) = ||u_+||_q."""
        positive = np.maximum(u, 0.0)
        top = float(positive.max())
        if top == 0.0 or self.polyhedral:
            return top
        if self._uniform_only:
            return float(positive.sum())
        q = self.p / (self.p - 1.0)
        return top * float(np.sum((positive / top) ** q) ** (1.0 / q))

    def uniform(self, J: int) -> Array:
        """J^(-1/p) everywhere."""
        return np.full(J, float(J) ** (-1.0 / self.p))

    def normalise(self, b: Array) -> Array:
        """Scale to unit p-norm."""
        if self._uniform_only:
            return np.asarray(b / b.max())
        with np.errstate(divide="ignore"):
            return self._from_logs(np.log(b))

    def kloft(self, u: Array, b: Array) -> Array:
        r"""Kloft's update :math:`b_j \propto (b_j^2 u_j)^{1/(p+1)}`; it never raises F.

        Parameters
        ----------
        u : array of shape (J,)
            Minus the gradient of F at b.
        b : array of shape (J,)
        """
        if self._uniform_only:
            return self.uniform(len(u))
        with np.errstate(divide="ignore"):
            logs = 2.0 * np.log(b) + np.log(np.maximum(u, 0.0))
        return self._from_logs(logs / (self.p + 1.0))

    def cvxpy_constraints(self, b: Any) -> list[Any]:
        """Constraints on a cvxpy variable.

        Parameters
        ----------
        b : cvxpy.Variable of shape (J,)
        """
        return [b >= 0, convex_norm(b, self.p) <= 1]

    def minimise_model(self, u: Array, H: Array, b: Array, tol: float = 0.0) -> Array:
        """Minimise m(c) = -u'(c - b) + (c - b)'H(c - b)/2 over the sphere c >= 0, ||c||_p = 1.

        On the sphere, because F falls in every weight, so its minimiser lies there. For p > 1 the
        minimiser has no zero weight where the model falls, so this is a smooth problem: Newton on
        the sphere with steps relative to c, ended when the gap of the model is at most ``tol``.

        Parameters
        ----------
        u : array of shape (J,)
            Minus the gradient at b.
        H : array of shape (J, J)
            Curvature.
        b : array of shape (J,)
            Where the model is made.
        tol : float
            Precision.

        Returns
        -------
        array of shape (J,)
        """
        if self._uniform_only:
            return self.uniform(len(u))
        if self.polyhedral:
            return minimise_on_simplex(u + H @ b, H, b)
        return minimise_on_sphere(self._sphere(len(u)), self, u + H @ b, H, b, tol)

    def _from_logs(self, logs: Array) -> Array:
        """Weights proportional to exp(logs), of unit p-norm."""
        if self.polyhedral:  # exact sums, where p * logs would be rounded
            weights = np.exp(logs - logs.max())
            return np.asarray(weights / weights.sum())
        return np.asarray(np.exp(self._sphere(len(logs)).normalised_logs(logs)))

    def _sphere(self, J: int) -> Sphere:
        return Sphere(self.p, self.p, np.zeros(J, dtype=np.intp))

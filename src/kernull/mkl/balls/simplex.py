"""The simplex: b >= 0, sum b = 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._fields import stored
from kernull._typing import Array
from kernull.mkl.balls._quadratic import minimise_on_simplex


@stored
class Simplex:
    """Weights that are non-negative and sum to one (an average of kernels)."""

    polyhedral = True
    exponent = 1.0

    def __repr__(self) -> str:
        return "Simplex()"

    def oracle(self, u: Array) -> Array:
        """The vertex with the largest u."""
        b = np.zeros(len(u))
        b[int(np.argmax(u))] = 1.0
        return b

    def support(self, u: Array) -> float:
        """The largest u."""
        return float(np.max(u))

    def uniform(self, J: int) -> Array:
        """1/J everywhere."""
        return np.full(J, 1.0 / J)

    def normalise(self, b: Array) -> Array:
        """Divide by the sum."""
        return np.asarray(b / b.sum())

    def minimise_model(self, u: Array, H: Array, b: Array, tol: float = 0.0) -> Array:
        """Minimise -u'(c - b) + (c - b)'H(c - b)/2 over c in the set, exactly."""
        return minimise_on_simplex(u + H @ b, H, b)

    def cvxpy_constraints(self, b: Any) -> list[Any]:
        """Constraints on a cvxpy variable."""
        return [b >= 0, sum(b) == 1]

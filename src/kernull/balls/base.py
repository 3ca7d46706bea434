"""What every set of weights answers."""

from __future__ import annotations

from typing import Protocol

from kernull._typing import Array


class Ball(Protocol):
    """A convex set of weights b >= 0.

    Some can do more, which the solvers that need it ask for: `QuadraticBall`, Kloft's update
    (``kloft``), and what cvxpy is told (``cvxpy_constraints``).
    """

    @property
    def polyhedral(self) -> bool:
        """Whether optima may have weights that are exactly zero (the set has corners)."""
        ...

    def oracle(self, u: Array) -> Array:
        """A maximiser of b'u over the set; u may be negative."""
        ...

    def support(self, u: Array) -> float:
        """h(u) = max of b'u over the set."""
        ...

    def uniform(self, J: int) -> Array:
        """The point with equal weights on the boundary."""
        ...

    def normalise(self, b: Array) -> Array:
        """Scale b >= 0 onto the boundary."""
        ...


class QuadraticBall(Ball, Protocol):
    """One over which the quadratic model of Newton's method can be minimised."""

    def minimise_model(self, u: Array, H: Array, b: Array, tol: float = 0.0) -> Array:
        """Minimise -u'(c - b) + (c - b)'H(c - b)/2 over the boundary."""
        ...

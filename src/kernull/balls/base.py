"""What every set of weights answers."""

from __future__ import annotations

from typing import Protocol

from kernull._typing import Array

__all__ = ["Ball"]


class Ball(Protocol):
    """A convex set of weights b >= 0.

    Optional abilities, asked for by name by the solvers that need them: ``minimise_model`` (the
    quadratic model of Newton's method), ``kloft`` (Kloft's closed-form update),
    ``cvxpy_constraints``.
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

"""What every set of weights answers."""

from __future__ import annotations

from typing import Any, Protocol

from kernull._typing import Array


class Ball(Protocol):
    """A convex set of weights b >= 0.

    Some can do more, which the solvers that need it ask for by name, in the table of solvers:
    minimise the quadratic model -u'(c - b) + (c - b)'H(c - b)/2 of Newton's method over the
    boundary (``minimise_model``; with it goes ``exponent``, the smallest norm of the ball, 1 where
    it has corners), Kloft's update (``kloft``), and constraints for cvxpy (``cvxpy_constraints``).
    """

    @property
    def polyhedral(self) -> bool:
        """Whether optima may have weights that are exactly zero (the set has corners)."""
        ...

    def oracle(self, u: Array) -> Array:
        """A maximiser of b'u over the set, of shape (J,).

        Parameters
        ----------
        u : array of shape (J,)
            May be negative.
        """
        ...

    def support(self, u: Array) -> float:
        """h(u) = max of b'u over the set.

        Parameters
        ----------
        u : array of shape (J,)
        """
        ...

    def uniform(self, J: int) -> Array:
        """The point with equal weights on the boundary.

        Parameters
        ----------
        J : int
            Number of weights.
        """
        ...

    def normalise(self, b: Array) -> Array:
        """Scale weights onto the boundary.

        Parameters
        ----------
        b : array of shape (J,)
            Zero or more.
        """
        ...


def is_ball(value: Any) -> bool:
    """Whether an object, which may come from outside, answers what every set of weights answers."""
    asked = ("polyhedral", "oracle", "support", "uniform", "normalise")
    return not isinstance(value, type) and all(hasattr(value, name) for name in asked)

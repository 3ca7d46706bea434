"""What every problem answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kernull._typing import Array


@dataclass(frozen=True)
class Evaluation:
    """A convex problem seen from one point b.

    The problem is to minimise F over weights b in some convex set. A problem knows nothing of
    that set: it meets it only through ``support`` = max over the set of b'u, a single number.
    """

    weights: Array
    """The point b itself."""
    value: float
    """F(b), or an upper bound of it where the inner problem is solved inexactly."""
    u: Array
    """Minus the gradient of F at b, of shape (J,)."""
    coef: Array
    """The inner solution a."""
    lower_bound: Callable[[float], float]
    """From support(u) to a lower bound of min F over the set (the dual value at a)."""
    curvature: Callable[[], Array] | None = None
    """A positive semidefinite (J, J) matrix H of second-order information, or None.

    ``-u'd + d'Hd/2`` models the change of F under a step d, up to a monotone transformation that
    leaves the minimiser in place; see the problem for which.
    """


class Problem(Protocol):
    """A convex problem in kernel weights."""

    @property
    def J(self) -> int:
        """Number of weights."""
        ...

    @property
    def n_evaluations(self) -> int:
        """How often F was evaluated from scratch (for Fisher: factorisations)."""
        ...

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient, curvature and inner solution at b."""
        ...

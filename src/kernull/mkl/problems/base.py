"""What every problem answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from kernull._typing import Array
from kernull.operators import Stack


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


class Problem(ABC):
    """A convex problem in J kernel weights.

    Solvers ask for more than `evaluate` by name, in the table of solvers: ``products(V)`` and
    ``certify(weights, a, Ka)`` to work without factorisations, ``restrict(Q)`` to work in a
    subspace, ``plane(a)`` where F has kinks. `FisherProblem` and the machines show what these are.
    """

    J: int
    """Number of weights."""
    stack: Stack | None = None
    """The kernels, where a solver may work with them."""
    factor_rows: int = 0
    """Rows of the largest matrix that an evaluation factorises, where solvers may avoid that."""
    precision: float = 1e-14
    """Relative accuracy of F; a line search that took its rounding for a rise would never end."""
    n_evaluations: int = 0
    """Evaluations of F from scratch (for Fisher: factorisations)."""

    @abstractmethod
    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient, curvature and inner solution at b.

        Parameters
        ----------
        weights : array of shape (J,)
        """

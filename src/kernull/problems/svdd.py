r"""Support vector data description as a problem in kernel weights.

.. math::

   F(d) = \max_a \; \sum_j d_j \big[ a'\mathrm{diag}(K_j) - a'K_j a \big],
   \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

is the squared radius (with slack) of the smallest ball around the rows. F is convex and *rises* in
every d_j, so the weights live on the simplex, not in a ball: with less weight everything shrinks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.problems._quadratic import CappedProblem, curvature, free_rows, slack, solve_capped
from kernull.problems.base import Evaluation
from kernull.problems.ocsvm import boundary
from kernull.stacks import DenseStack

#: Squared radii below this share of the largest k(x, x) are rounding: the rows coincide.
_ROUNDING = 1e-12


class SVDDProblem(CappedProblem):
    r"""Data description over a stack of kernels, to be solved on the `Simplex`.

    Parameters
    ----------
    stack : DenseStack
        J kernels over n rows.
    nu : float in (0, 1]
        At most this share of the rows lies outside the ball; the cost is C = 1/(nu n).

    Notes
    -----
    *Inner programme.* Since the a_i sum to one, :math:`a'\mathrm{diag}(K) = a'[(k_{ii} +
    k_{jj})/2]a`: the programme is that of the one-class SVM with
    :math:`Q_{ij} = K_{ij} - (k_{ii} + k_{jj})/2 + c`. Q is minus half the squared distances, hence
    positive semidefinite on vectors that sum to zero, which is all libsvm needs; c, the mean of
    the diagonal, only makes Q equal to K where the diagonal is constant.

    *Certificate.* With :math:`u_j = a'K_j a - a'\mathrm{diag}(K_j)` and any feasible a,
    U = -d'u plus the slack of a in the inner programme, L = -max u.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.balls import Simplex
    >>> from kernull.solvers import solve
    >>> from kernull.stacks import DenseStack
    >>> spread, constant = np.eye(4), np.ones((4, 4))
    >>> problem = SVDDProblem(DenseStack(np.stack([spread, constant])), nu=0.5)
    >>> solve(problem, Simplex()).weights  # a constant kernel has radius zero
    array([0., 1.])
    """

    def __init__(self, stack: DenseStack, nu: Any) -> None:
        super().__init__(stack, nu)
        self.diagonal = stack.diagonal()

    def inner(self, weights: Array) -> Array:
        """The coefficients a at d."""
        return self._solve(self.stack.combine(weights), weights @ self.diagonal)

    def _solve(self, K: Array, k: Array) -> Array:
        Q = K - 0.5 * k[:, None] - 0.5 * k[None, :] + float(k.mean())
        return solve_capped(Q, self.nu)

    def plane(self, a: Array) -> Array:
        """u(a) for any feasible a: F(d) >= -d'u(a) for all d."""
        return np.asarray(self.stack.products(a) @ a - self.diagonal @ a)

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at d, from one run of libsvm and one pass."""
        weights = np.asarray(weights, dtype=float)
        self.n_evaluations += 1
        K, k = self.stack.combine(weights), weights @ self.diagonal
        a = self._solve(K, k)
        Ka = self.stack.products(a)
        # The pull k_j/2 - K_j a of each kernel on the rows; the inner gradient is twice its sum.
        pull = 0.5 * self.diagonal - Ka
        u = Ka @ a - self.diagonal @ a
        floor = _ROUNDING * float(k.max())
        value = -float(weights @ u) + slack(-2.0 * (weights @ pull), a, self.nu)

        def lower_bound(support: float) -> float:
            return -support if abs(support) > floor else 0.0

        def second_order() -> Array:
            free = free_rows(a, self.nu)
            return 2.0 * curvature(K[np.ix_(free, free)], pull[:, free].T)

        value = value if value > floor else 0.0
        return Evaluation(weights, value, u, a, lower_bound, second_order)

    def sphere(self, weights: Array, a: Array) -> tuple[float, float]:
        """Squared radius R^2 of the description, and a'K_d a, the squared norm of its centre."""
        g = weights @ self.stack.products(a)
        norm2 = float(g @ a)
        # Squared distance to the centre of row i is k_ii - 2 g_i + a'K a.
        return -2.0 * boundary(g - 0.5 * (weights @ self.diagonal), a, self.nu) + norm2, norm2

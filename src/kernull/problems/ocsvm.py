r"""The one-class SVM as a problem in kernel weights.

.. math::

   F(b) = \max_a \; -\tfrac12 a'K_b a, \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

F is convex and falls in every b_j (its gradient is -u with :math:`u_j = \tfrac12 a'K_j a`), so any
lp ball serves: p = 1 is the paper's MK-OCSVM, p > 1 the lp version of Kloft and others.
"""

from __future__ import annotations

import numpy as np

from kernull._typing import Array
from kernull.problems._quadratic import CappedProblem, curvature, free_rows, slack, solve_capped
from kernull.problems.base import Evaluation


class OneClassSVMProblem(CappedProblem):
    r"""One-class SVM over a stack of kernels.

    Parameters
    ----------
    stack : DenseStack
        J kernels over n rows.
    nu : float in (0, 1]
        At most this share of the rows lies outside; at least this share are support vectors.

    Notes
    -----
    *Certificate.* For any feasible a, with g = K_b a and the minimum over feasible a',

    .. math::

       U = -\tfrac12 a'K_b a + \max_{a'} g'(a - a') \;\ge\; F(b), \qquad
       L = -h(u) \;\le\; \min F,

    where h is the support function of the set of weights; for an exact a the gap U - L is
    :math:`h(u) - b'u`. *Curvature* is the Hessian of F at a fixed set of free support vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.balls import LpBall
    >>> from kernull.solvers import solve
    >>> from kernull.stacks import DenseStack
    >>> narrow, wide = np.eye(4), np.full((4, 4), 0.5) + np.eye(4) / 2
    >>> problem = OneClassSVMProblem(DenseStack(np.stack([narrow, wide])), nu=0.5)
    >>> solve(problem, LpBall(1)).weights.round(6)
    array([0., 1.])
    """

    def inner(self, weights: Array) -> Array:
        """The coefficients a at b."""
        return solve_capped(self.stack.combine(weights), self.nu)

    def plane(self, a: Array) -> Array:
        """u(a) for any feasible a: F(b) >= -b'u(a) for all b."""
        return np.asarray(0.5 * self.stack.products(a) @ a)

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at b, from one run of libsvm and one pass."""
        weights = np.asarray(weights, dtype=float)
        self.n_evaluations += 1
        K = self.stack.combine(weights)
        a = solve_capped(K, self.nu)
        Ka = self.stack.products(a)
        u = 0.5 * Ka @ a
        value = -float(weights @ u) + slack(weights @ Ka, a, self.nu)

        def second_order() -> Array:
            free = free_rows(a, self.nu)
            return curvature(K[np.ix_(free, free)], Ka[:, free].T)

        return Evaluation(weights, value, u, a, lambda support: -support, second_order)

    def offset(self, weights: Array, a: Array) -> float:
        """Rho, the projection at which rows turn into outliers: that of the free rows."""
        return boundary(weights @ self.stack.products(a), a, self.nu)


def boundary(g: Array, a: Array, nu: float) -> float:
    """Mean of g over the free rows, or the middle of what the bounded rows allow, as libsvm's."""
    free = free_rows(a, nu)
    if free.any():
        return float(g[free].mean())
    outside = a > 0.5 / (nu * len(a))
    low = float(g[outside].max())
    # With nu = 1 every row is outside, and any rho beyond the last of them would do.
    return low if outside.all() else 0.5 * (low + float(g[~outside].min()))

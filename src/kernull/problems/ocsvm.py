r"""The one-class SVM as a problem in kernel weights.

.. math::

   F(b) = \max_a \; -\tfrac12 a'K_b a, \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

F is convex and falls in every b_j (its gradient is -u with :math:`u_j = \tfrac12 a'K_j a`), so any
lp ball serves: p = 1 is the paper's MK-OCSVM, p > 1 the lp version of Kloft and others.
"""

from __future__ import annotations

from kernull._typing import Array
from kernull.problems._quadratic import CappedProblem, boundary


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

    quadratic = 1.0

    def offset(self, weights: Array, a: Array) -> float:
        """Rho, the projection at which rows turn into outliers: that of the free rows."""
        return boundary(weights @ self.stack.products(a), a, self.nu)

"""The one-class SVM and support vector data description as problems in kernel weights."""

from __future__ import annotations

from typing import Any

from kernull._typing import Array
from kernull.problems._quadratic import CappedProblem, boundary, solve_capped
from kernull.stacks import DenseStack


class OneClassSVMProblem(CappedProblem):
    r"""One-class SVM over a stack of kernels.

    .. math::

       F(b) = \max_a \; -\tfrac12 a'K_b a, \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

    F is convex and falls in every b_j (its gradient is -u with :math:`u_j = \tfrac12 a'K_j a`), so
    any lp ball serves: p = 1 is the paper's MK-OCSVM, p > 1 the lp version of Kloft and others.

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
    >>> from kernull import KernelStack, LpBall, solve
    >>> narrow, wide = np.eye(4), np.full((4, 4), 0.5) + np.eye(4) / 2
    >>> problem = OneClassSVMProblem(KernelStack(np.stack([narrow, wide])), nu=0.5)
    >>> solve(problem, LpBall(1)).weights.round(6)
    array([0., 1.])
    """

    quadratic = 1.0

    def offset(self, weights: Array, a: Array) -> float:
        """Rho, the projection at which rows turn into outliers: that of the free rows."""
        return boundary(weights @ self.stack.products(a), a, self.nu)


class SVDDProblem(CappedProblem):
    r"""Data description over a stack of kernels, to be solved on the `Simplex`.

    .. math::

       F(d) = \max_a \; \sum_j d_j \big[ a'\mathrm{diag}(K_j) - a'K_j a \big],
       \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

    is the squared radius (with slack) of the smallest ball around the rows. F is convex and *rises*
    in every d_j, so the weights live on the simplex, not in a ball: with less weight everything
    shrinks.

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
    >>> from kernull import KernelStack, Simplex, solve
    >>> spread, constant = np.eye(4), np.ones((4, 4))
    >>> problem = SVDDProblem(KernelStack(np.stack([spread, constant])), nu=0.5)
    >>> solve(problem, Simplex()).weights  # a constant kernel has radius zero
    array([0., 1.])
    """

    quadratic = 2.0

    def __init__(self, stack: DenseStack, nu: Any) -> None:
        super().__init__(stack, nu)
        self.diagonal = stack.diagonal()

    def _solve(self, K: Array, d: Array) -> Array:
        Q = K - 0.5 * d[:, None] - 0.5 * d[None, :] + float(d.mean())
        return solve_capped(Q, self.nu)

    def sphere(self, weights: Array, a: Array) -> tuple[float, float]:
        """Squared radius R^2 of the description, and a'K_d a, the squared norm of its centre."""
        g = weights @ self.stack.products(a)
        norm2 = float(g @ a)
        # Squared distance to the centre of row i is k_ii - 2 g_i + a'K a.
        return -2.0 * boundary(g - 0.5 * (weights @ self.diagonal), a, self.nu) + norm2, norm2

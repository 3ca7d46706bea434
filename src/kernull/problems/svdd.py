r"""Support vector data description as a problem in kernel weights.

.. math::

   F(d) = \max_a \; \sum_j d_j \big[ a'\mathrm{diag}(K_j) - a'K_j a \big],
   \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

is the squared radius (with slack) of the smallest ball around the rows. F is convex and *rises* in
every d_j, so the weights live on the simplex, not in a ball: with less weight everything shrinks.
"""

from __future__ import annotations

from typing import Any

from kernull._typing import Array
from kernull.problems._quadratic import CappedProblem, boundary, solve_capped
from kernull.stacks import DenseStack


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

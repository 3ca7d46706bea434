r"""Data description whose slacks are punished by a power: lp-norm SVDD (Arashloo, 2022).

.. math::

   \min_{R, c, \xi \ge 0} \; R^2 + C \sum_i \xi_i^s
   \quad\text{subject to}\quad \|\phi(x_i) - c\|^2 \le R^2 + \xi_i, \qquad s > 1

s -> 1 is plain SVDD. The larger s, the more evenly the excess is spread over the rows, and every
row beyond the ball gets a coefficient of its own size instead of one common cap. Its dual, and
what it is as a problem in kernel weights d, with q = s/(s - 1):

.. math::

   F(d) = \max_{a \ge 0,\, 1'a = 1} \; \sum_j d_j \big[a'\mathrm{diag}(K_j) - a'K_j a\big]
          - \gamma \sum_i a_i^q, \qquad \gamma = \frac{s - 1}{s} (C s)^{-1/(s-1)}

Source: Arashloo, *lp-Norm Support Vector Data Description*, Pattern Recognition (2022), as a
preprint *lp Slack Norm Support Vector Data Description*, arXiv:2203.08932. It has one kernel; the
weights of several are ours.
"""

from __future__ import annotations

import numpy as np

from experiments.family.interior import minimise_on_the_simplex
from kernull._typing import Array
from kernull.mkl.problems.base import Evaluation, Problem
from kernull.mkl.problems.machines import curvature
from kernull.operators import DenseStack

__all__ = ["SlackSVDDProblem"]

#: Coefficients below this share of 1/n belong to rows inside the ball.
_INSIDE = 1e-7


class SlackSVDDProblem(Problem):
    r"""Data description with slacks to the power s, over a stack of kernels.

    Parameters
    ----------
    stack : DenseStack
        J kernels over n rows.
    cost : float
        C > 0, the price of slack.
    power : float
        s > 1, the power of the slacks. (s = 1 is `SVDDProblem` with nu = 1/(C n).)
    diagonal : bool
        Whether a'diag(K_j) counts. With it F is the paper's, the squared radius with its slack;
        it rises in every weight, which therefore live on the `Simplex`. Without it F falls in
        every weight, and any lp or mixed ball serves. Where all kernels have the same constant
        diagonal, as rbf kernels have, both ask for the same coefficients at given weights. The
        paper has one kernel; this extension to several is ours.

    Notes
    -----
    *Inner programme.* Smooth and convex on the simplex; solved by an interior point method.
    *Certificate.* With :math:`u_j = a'K_j a - a'\mathrm{diag}(K_j)` for any feasible a,
    :math:`U = -d'u - \gamma\sum a_i^q` plus the slack of a in the inner programme, and
    :math:`L = -h(u) - \gamma\sum a_i^q`, h the support function of the set of weights.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.mkl.balls import Simplex
    >>> from kernull.mkl.solvers import solve
    >>> from kernull.operators import DenseStack
    >>> spread, constant = np.eye(4), np.ones((4, 4))
    >>> problem = SlackSVDDProblem(DenseStack(np.stack([spread, constant])), cost=1.0, power=2.0)
    >>> solve(problem, Simplex()).weights.round(4)  # a constant kernel has radius zero
    array([0., 1.])
    """

    stack: DenseStack

    def __init__(
        self, stack: DenseStack, cost: float, power: float = 2.0, diagonal: bool = True
    ) -> None:
        if isinstance(cost, bool) or not 0 < float(cost) < np.inf:
            raise ValueError(f"cost: got {cost!r}; expected a positive number.")
        if isinstance(power, bool) or not 1 < float(power) < np.inf:
            raise ValueError(
                f"power: got {power!r}; expected a number above 1 (SVDDProblem has power 1)."
            )
        self.stack, self.J = stack, stack.J
        self.cost, self.power = float(cost), float(power)
        self.q = self.power / (self.power - 1.0)
        # In logarithms: for powers near 1 the exponent is large.
        rate = -np.log(self.cost * self.power) / (self.power - 1.0)
        with np.errstate(over="ignore"):
            self.gamma = float(np.exp(np.log((self.power - 1.0) / self.power) + rate))
        if not 0 < self.gamma < np.inf:
            raise ValueError(
                f"power: {power!r} is too near 1 for cost = {cost!r}; use SVDDProblem."
            )
        self.self_similarity = stack.diagonal() if diagonal else np.zeros((stack.J, stack.n))
        self.precision = 1e-10

    def inner(self, weights: Array) -> Array:
        """The coefficients a at d."""
        K, k = self.stack.combine(weights), weights @ self.self_similarity
        return minimise_on_the_simplex(K, k, self.gamma, self.q)

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at d, from one inner programme and one pass."""
        weights = np.asarray(weights, dtype=float)
        self.n_evaluations += 1
        K, k = self.stack.combine(weights), weights @ self.self_similarity
        a = minimise_on_the_simplex(K, k, self.gamma, self.q)
        Ka = self.stack.products(a)
        u = Ka @ a - self.self_similarity @ a
        penalty = self.gamma * float((a**self.q).sum())
        gradient = 2.0 * (weights @ Ka) - k + self.gamma * self.q * a ** (self.q - 1.0)
        value = -float(weights @ u) - penalty + float(gradient @ a - gradient.min())

        def second_order() -> Array:
            free = a > _INSIDE / len(a)
            bend = self.gamma * self.q * (self.q - 1.0) * a[free] ** (self.q - 2.0)
            pull = (self.self_similarity - 2.0 * Ka)[:, free]
            return curvature(2.0 * K[np.ix_(free, free)] + np.diag(bend), pull.T)

        return Evaluation(weights, value, u, a, lambda support: -support - penalty, second_order)

    def slacks(self, a: Array) -> Array:
        r"""The slacks that belong to coefficients, :math:`\xi_i = (a_i / (Cs))^{1/(s-1)}`."""
        return np.asarray((a / (self.cost * self.power)) ** (1.0 / (self.power - 1.0)))

    def sphere(self, weights: Array, a: Array) -> tuple[float, float]:
        """Squared radius R^2 of the description, and a'K_d a, the squared norm of its centre."""
        g = weights @ self.stack.products(a)
        norm2 = float(g @ a)
        distance2 = weights @ self.stack.diagonal() - 2.0 * g + norm2
        # Every row with a coefficient lies on the ball of its own slack.
        share = a / a.sum()
        return float(share @ (distance2 - self.slacks(a))), norm2

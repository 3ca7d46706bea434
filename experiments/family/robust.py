r"""The Fisher null-space problem for targets that are contaminated.

Kernel spectral regression asks every training row for the value 1 and squares what is missing. A
row that does not belong pulls as hard as its residual. Here residuals beyond a threshold k count
linearly (Huber's loss), so that no row pulls harder than k:

.. math::

   F(b) = \min_f \; \frac{1}{\rho} \sum_i h_k\big(1 - f(x_i)\big) + \|f\|_{K_b}^2,
   \qquad h_k(r) = \begin{cases} r^2 & |r| \le k \\ 2k|r| - k^2 & |r| > k \end{cases}

f' K_b^{-1} f is convex in f and b together, so F is convex in the kernel weights b, as without the
threshold, and its dual is the Fisher problem with capped coefficients:

.. math::

   F(b) = \max_a \; 2a'1 - \rho\,a'a - a'K_b a, \qquad |a_i| \le k/\rho, \qquad f = K_b a

Source: Arashloo and Kittler, *Robust One-Class Kernel Spectral Regression*, IEEE Transactions on
Neural Networks and Learning Systems (2021), arXiv:1902.02208, doi:10.1109/TNNLS.2020.2979823, has
the aim and the reweighting of rows; Huber's loss and the weights of kernels are ours, see the notes
of `RobustFisherProblem`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernull._typing import Array, Mask
from kernull.mkl.problems.base import Evaluation, Problem
from kernull.operators import DenseStack

__all__ = ["RobustFisherProblem"]

_STEPS = 100


class RobustFisherProblem(Problem):
    r"""One-class Fisher null-space with Huber's loss, over a stack of kernels.

    Parameters
    ----------
    stack : DenseStack
        J kernels over n rows.
    ridge : float
        rho > 0.
    threshold : float
        k > 0: residuals beyond it count linearly. From the largest residual of `FisherProblem` on
        it changes nothing; a typical choice is a quantile of those residuals.

    Notes
    -----
    Robust one-class kernel spectral regression (Arashloo and Kittler, 2021) re-estimates labels or
    reweights rows until nothing changes; the public description leaves the loss open. Huber's is
    taken, since with it the fixed point of reweighting by min(1, k/|r_i|) is the optimum of a
    convex problem, also over the kernel weights, with a certificate. Reweighting is how it is read,
    not how it is solved: a projected Newton method ends after a few factorisations.

    *Certificate.* For any a within the cap and f = K_b a, U is the primal value at f, L the best
    dual value among the multiples of a within the cap: with h(u) = max of b'u over the ball,
    :math:`L = 2s\,a'1 - s^2(\rho a'a + h(u))`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.mkl.balls import LpBall
    >>> from kernull.mkl.solvers import solve
    >>> from kernull.operators import DenseStack
    >>> K = np.ones((5, 5)) + 0.1 * np.eye(5)
    >>> K[4, :4] = K[:4, 4] = 0.0  # the last row is like no other
    >>> result = solve(RobustFisherProblem(DenseStack(K[None]), 1.0, threshold=0.2), LpBall(2))
    >>> result.coef.round(3)  # its pull is cut off at k/rho
    array([0.196, 0.196, 0.196, 0.196, 0.2  ])
    """

    stack: DenseStack

    def __init__(self, stack: DenseStack, ridge: float, threshold: float) -> None:
        for name, value in (("ridge", ridge), ("threshold", threshold)):
            if isinstance(value, bool) or not 0 < float(value) < np.inf:
                raise ValueError(f"{name}: got {value!r}; expected a positive number.")
        self.stack, self.J = stack, stack.J
        self.ridge, self.threshold = float(ridge), float(threshold)
        self.cap = self.threshold / self.ridge

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at b."""
        weights = np.asarray(weights, dtype=float)
        self.n_evaluations += 1
        A = self.stack.combine(weights)
        A.flat[:: len(A) + 1] += self.ridge
        a, free = _capped_solution(A, self.cap)
        Ka = self.stack.products(a)
        u = Ka @ a
        linear, quadratic = float(a.sum()), self.ridge * float(a @ a)
        upper = self._loss(1.0 - weights @ Ka) / self.ridge + float(weights @ u)
        room = self.cap / float(np.abs(a).max())

        def lower_bound(support: float) -> float:
            bend = quadratic + support
            s = min(linear / bend, room)
            return 2.0 * s * linear - s * s * bend

        def second_order() -> Array:
            V = Ka[:, free].T
            if not free.any():
                return np.zeros((self.J, self.J))
            factor = cho_factor(A[np.ix_(free, free)], lower=True, check_finite=False)
            H = 2.0 * V.T @ cho_solve(factor, V, check_finite=False)
            return np.asarray((H + H.T) / 2)

        return Evaluation(weights, upper, u, a, lower_bound, second_order)

    def row_weights(self, weights: Array, a: Array) -> Array:
        """What each row counts, min(1, k/|residual|), at weights b and coefficients a."""
        residual = np.abs(1.0 - weights @ self.stack.products(a))
        return np.asarray(self.threshold / np.maximum(residual, self.threshold))

    def _loss(self, residual: Array) -> float:
        size = np.abs(residual)
        k = self.threshold
        return float(np.where(size <= k, size**2, 2.0 * k * size - k * k).sum())


def _capped_solution(A: Array, cap: float) -> tuple[Array, Mask]:
    """The maximiser of 2a'1 - a'Aa with |a_i| <= cap, and the rows that are not at the cap.

    Projected Newton: rows that press against the cap stay there, the others take the Newton step,
    cut back until the objective rises enough.
    """
    n = len(A)
    a = np.zeros(n)
    rise = np.ones(n)  # half the gradient, 1 - Aa
    value = 0.0
    free = np.ones(n, dtype=bool)
    for _ in range(_STEPS):
        pressed = ((a >= cap) & (rise > 0)) | ((a <= -cap) & (rise < 0))
        free = ~pressed
        if not free.any() or float(np.abs(rise[free]).max()) <= 1e-13 * max(1.0, cap):
            break
        step = np.zeros(n)
        factor = cho_factor(A[np.ix_(free, free)], lower=True, check_finite=False)
        step[free] = cho_solve(factor, rise[free], check_finite=False)
        length = 1.0
        while length > 1e-12:
            trial = np.clip(a + length * step, -cap, cap)
            slope = 1.0 - A @ trial
            gained = float(trial @ (1.0 + slope)) - value
            if gained >= 1e-4 * 2.0 * float(rise @ (trial - a)):
                break
            length *= 0.5
        if gained <= 1e-15 * max(1.0, abs(value)):
            break
        a, rise, value = trial, slope, value + gained
    return a, np.abs(a) < cap * (1.0 - 1e-12)

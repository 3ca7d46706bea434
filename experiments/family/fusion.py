r"""One-class scores fused with weights of bounded lp norm: the nearest published relative.

A linear ensemble s'b of J one-class scores, whose weights minimise a convex loss over the targets
under a constraint on their norm:

.. math::

   F(b) = \frac{1}{n} \sum_i \log\big(1 + e^{-\tau s_i'b}\big), \qquad b \ge 0,\ \|b\|_p \le 1

Source: Nourmohammadi and Arashloo, *lp-Norm Constrained One-Class Classifier Combination* (2023),
arXiv:2312.15769. Its abstract was at hand and no more: the linear ensemble, a convex objective, the
lp norm with p >= 1, solved by Frank-Wolfe. The logistic loss, its steepness tau, the base scores
(the one-class Fisher null-space on each kernel) and that the loss sees every target through models
without it are ours. Locally adaptive weights (arXiv:2411.06406) are not tried: its abstract does
not say what is local.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from kernull._typing import Array
from kernull.mkl.problems.base import Evaluation, Problem
from kernull.operators import DenseStack

__all__ = ["ScoreFusionProblem", "left_out_responses"]


def left_out_responses(stack: DenseStack, ridge: float) -> tuple[Array, Array]:
    """Responses of every target to the model of each kernel without it, and coefficients.

    With A = K_j + ridge I and a = A^-1 1, the response of row i to the model of the other rows is
    1 - a_i / (A^-1)_ii.

    Returns
    -------
    (array of shape (n, J), array of shape (J, n))
    """
    inverse = np.linalg.inv(stack.scale[:, None, None] * stack.kernels + ridge * np.eye(stack.n))
    coef = inverse.sum(axis=2)
    return (1.0 - coef / np.diagonal(inverse, axis1=1, axis2=2)).T, coef


class ScoreFusionProblem(Problem):
    r"""Weights of J scores by the logistic loss of targets.

    Parameters
    ----------
    scores : array of shape (n, J)
        Scores of the targets, higher is more normal. Those below 0 count as 0, so that F falls in
        every weight.
    steepness : float
        tau > 0. A small one asks for the largest mean score, a large one for the largest lowest.

    Notes
    -----
    *Certificate.* F is convex and differentiable, so with u minus its gradient and h(u) = max of
    b'u over the ball, :math:`F \ge F(b) + b'u - h(u)` everywhere in it: the Frank-Wolfe gap.

    Examples
    --------
    >>> from kernull.mkl.balls import LpBall
    >>> from kernull.mkl.solvers import solve
    >>> scores = np.array([[1.0, 0.2], [0.9, 0.8], [1.0, 0.1]])
    >>> solve(ScoreFusionProblem(scores, 4.0), LpBall(2)).weights.round(2)
    array([0.95, 0.3 ])
    """

    def __init__(self, scores: Array, steepness: float) -> None:
        self.scores = np.maximum(np.asarray(scores, dtype=float), 0.0)
        self.steepness = float(steepness)
        self.J = int(self.scores.shape[1])

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at b; ``coef`` are the slopes of the rows' losses."""
        self.n_evaluations += 1
        weights = np.asarray(weights, dtype=float)
        margin = self.steepness * (self.scores @ weights)
        value = float(np.logaddexp(0.0, -margin).mean())
        slope = expit(-margin) * self.steepness / len(margin)
        u = slope @ self.scores
        level = value + float(weights @ u)

        def second_order() -> Array:
            bend = self.steepness * slope * expit(margin)
            return np.asarray((self.scores * bend[:, None]).T @ self.scores)

        return Evaluation(weights, value, u, slope, lambda support: level - support, second_order)

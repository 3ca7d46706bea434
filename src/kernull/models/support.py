"""Support vector methods with learned kernel weights: one-class SVM and SVDD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.balls import Ball, LpBall, Simplex
from kernull.calibration import LeftOut, cross_scores
from kernull.models.fusion import constant_diagonal, self_similarity
from kernull.models.kernels import Training
from kernull.models.model import Certificate, RuleFit
from kernull.problems import OneClassSVMProblem, SVDDProblem
from kernull.solvers import solve
from kernull.stacks import DenseStack

_ONE = np.ones(1)


@dataclass(frozen=True, eq=False)
class SupportRule:
    r"""Scores by what lies inside a hyperplane, or a ball.

    .. math::

       \sum_i a_i k_b(x_i, x) - \rho, \qquad
       R^2 - k_b(x, x) + 2 \sum_i a_i k_b(x_i, x) - a'K_b a
    """

    weights: Array
    coef: Array
    description: tuple[float, ...]
    """(rho,) of a hyperplane, or (R^2, a'K_b a) of a ball."""
    constant_diagonal: Array | None = None

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        used = self.weights > 0  # kernels without weight need not be evaluated
        some, weights = cross.select(used), self.weights[used]
        own = None
        if self.is_ball:
            constant = self.constant_diagonal
            own = weights @ self_similarity(some, None if constant is None else constant[used])
        return self.projection_to_score(weights @ some.products(self.coef), own)

    @property
    def is_ball(self) -> bool:
        """Whether the description is a ball, so that k(x, x) counts."""
        return len(self.description) == 2

    def projection_to_score(self, projection: Array, own: Array | None) -> Array:
        """From sum_i a_i k(x_i, x) and, for a ball, k(x, x)."""
        if own is None or not self.is_ball:
            return np.asarray(projection - self.description[0])
        radius2, norm2 = self.description
        return np.asarray(radius2 - own + 2.0 * projection - norm2)


@dataclass(frozen=True)
class SupportMethod:
    """Learn weights of kernels for a one-class SVM (p > 0), or an SVDD (p is None)."""

    nu: float
    p: float | None
    folds: int
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ball(self) -> Ball:
        """An lp ball; for an SVDD, whose objective rises in every weight, the simplex."""
        return Simplex() if self.p is None else LpBall(self.p)

    def problem(self, stack: DenseStack) -> Any:
        """The inner problem on some kernels."""
        return (SVDDProblem if self.p is None else OneClassSVMProblem)(stack, self.nu)

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from a dense stack."""
        stack = training.stack
        problem = self.problem(stack)
        result = solve(
            problem, self.ball, self.solver, tol=self.tol, max_iter=self.max_iter, **self.options
        )
        b, a = result.weights, result.coef
        description = problem.sphere(b, a) if self.p is None else (problem.offset(b, a),)
        rule = SupportRule(b, a, tuple(description), constant_diagonal(stack))

        def left_out() -> LeftOut:
            """By folds, at the same kernel weights: there is no closed form."""
            K = stack.combine(b)
            own = np.diagonal(K)

            def score(seen: Indices, held: Indices) -> Array:
                # The offset is the final machine's: one learned from fewer rows has another, and
                # scores on another scale could put the threshold below the lowest score there is.
                alone = self.problem(DenseStack(K[np.ix_(seen, seen)][None])).inner(_ONE)
                return rule.projection_to_score(K[np.ix_(held, seen)] @ alone, own[held])

            return LeftOut(cross_scores(stack.n, self.folds, score))

        return RuleFit(rule, left_out, Certificate.of(result))

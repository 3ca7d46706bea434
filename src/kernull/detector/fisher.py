"""lp MK-FN: the Fisher null-space with learned kernel weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.detector.model import Certificate, RidgeSystem, RuleFit
from kernull.detector.rows import ModelKernels, TableKernels, Training
from kernull.detector.sum import FisherRule, coefficients
from kernull.errors import OneKernelWarning, ZeroProjectionWarning
from kernull.mkl.balls import Ball, LpBall, MixedBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import Solver, solve
from kernull.mkl.solvers.base import iterations_logged

#: Solvers that are Algorithm 1.
PRINTED = ("paper", "paper-cvx")
#: Norms of ``p="auto"`` between views and within one: views of noise, whose kernels fit the targets
#: best, take less of the weight than under one norm of 1.5.
AUTO_BETWEEN, AUTO_WITHIN = 4.0, 1.5
#: Rows up to which coefficients are solved for exactly under the weights. Those of more are as near
#: as the certificate tells: the factorisation takes a third of a fit of 4,000 rows.
SOLVED_ROWS = 2000


@dataclass(frozen=True)
class FisherMethod:
    r"""Learn kernel weights and coefficients.

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \;
       2 a'1 - \delta n\, a'a - a' \Big(\sum_j b_j K_j\Big) a

    Its fields are parameters of `MultiKernelFisherNull`; ``p`` may be a ball, or "auto" for norms
    `AUTO_BETWEEN` between views and `AUTO_WITHIN` within one. ``solver`` is an object.
    """

    p: Any
    delta: float
    solver: Any
    score_type: str = "projection"

    def ball(self, kernels: ModelKernels) -> Ball:
        """The set of weights; kernels of one view form a group where a mixed ball names none.

        Parameters
        ----------
        kernels : ModelKernels
            With the view of each kernel.
        """
        p, views = self.p, kernels.views
        if isinstance(p, str):
            p = LpBall(AUTO_WITHIN)
            return p if len(set(views)) == 1 else MixedBall(AUTO_BETWEEN, AUTO_WITHIN, views)
        if isinstance(p, int | float | np.number):
            return LpBall(float(p))
        if isinstance(p, MixedBall) and p.groups is None:
            if not isinstance(kernels, TableKernels):
                raise ValueError(
                    "p: precomputed kernels belong to no view; expected the group of each of the "
                    f"{len(views)} kernels, MixedBall(p, r, groups)."
                )
            return MixedBall(p.p, p.r, views)
        return p  # type: ignore[no-any-return]

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn weights and coefficients from kernels."""
        kernels, stack = training.kernels, training.stack
        ball = self.ball(kernels)
        if stack.J == 1:
            warn_of_one_kernel(self.solver)
        # Weights have mean one, so their sum is the number of rows.
        n = stack.n if row_weight is None else float(row_weight.sum())
        problem = FisherProblem(stack, self.delta * n, row_weight=row_weight)
        note = f" ({training.note})" if training.note else ""
        shown = f"{stack.n} rows, {stack.J} kernels{note}"
        result = solve(
            problem,
            ball,
            self.solver,
            callback=iterations_logged(shown, self.solver),
            budget=training.budget,
        )
        # Without any kernel F would be 1'1 / rho: a model that is no better has learned nothing.
        if result.value >= (1.0 - 1e-10) * float(problem.target @ problem.target) / problem.ridge:
            _warn_of_nothing()
        exact = stack.can_combine and stack.n <= SOLVED_ROWS
        coef = problem.solution(result.weights) if exact else stack.project(result.coef)
        rule = FisherRule(result.weights, coef, self.score_type)
        system = RidgeSystem(
            float(getattr(ball, "p", np.nan)), self.delta, problem.ridge, row_weight
        )
        return RuleFit(rule, Certificate.of(result), system)


@dataclass(frozen=True, eq=False)
class KeptWeights:
    """lp MK-FN of rows that lack a fold: coefficients are learned anew, at the weights of a fit.

    The ridge is in proportion to the number of rows.
    """

    weights: Array
    delta: float
    score_type: str = "projection"

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn coefficients from kernels."""
        coef = coefficients(training.combine(self.weights), self.delta, row_weight)
        return RuleFit(FisherRule(self.weights, coef, self.score_type))


def warn_of_one_kernel(solver: Any) -> None:
    """Warn that the update of the paper's algorithm has a single kernel to weigh."""
    if not isinstance(solver, Solver) or solver.name not in PRINTED:
        return
    message = OneKernelWarning(
        f"solver={solver.name!r}: the paper's rule weighs kernels, and there is one, of weight 1: "
        "nothing is weighed.",
        "Pass views= (views='features' is one kernel a column), or several kernels or widths.",
        "Say which columns are a view (--view NAME=PATTERN), or use --views features.",
    )
    warnings.warn(message, stacklevel=3)


def _warn_of_nothing() -> None:
    warnings.warn(
        "kernels: every projection is zero, so scores mean nothing. Linear kernels of centred "
        "columns (scaling='standard' or 'whiten') do this, and so do kernels of zeros: use "
        "scaling='none' or another kernel, or a smaller delta.",
        ZeroProjectionWarning,
        stacklevel=3,
    )

"""lp MK-FN: the Fisher null-space with learned kernel weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.detector.model import Certificate, RidgeSystem, RuleFit
from kernull.detector.rows import ModelKernels, TableKernels, Training
from kernull.detector.sum import FisherRule
from kernull.errors import OneKernelWarning, ZeroProjectionWarning
from kernull.mkl.balls import Ball, LpBall, MixedBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.mkl.solvers.base import iterations_shown

#: Solvers that are Algorithm 1.
PRINTED = ("paper", "paper-cvx")
#: Norms of ``p="auto"`` between views and within one: views of noise, whose kernels fit the targets
#: best, take less of the weight than under one norm of 1.5.
AUTO_BETWEEN, AUTO_WITHIN = 4.0, 1.5


@dataclass(frozen=True)
class FisherMethod:
    r"""Learn kernel weights and coefficients.

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \;
       2 a'1 - \delta n\, a'a - a' \Big(\sum_j b_j K_j\Big) a

    Its fields are parameters of `MultiKernelFisherNull`; ``p`` may be a ball, or "auto" for norms
    `AUTO_BETWEEN` between views and `AUTO_WITHIN` within one.
    """

    p: Any
    delta: float
    r: float | None = None
    kernel_groups: Any = None
    solver: str = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    score_type: str = "projection"
    verbose: int = 0

    def ball(self, kernels: ModelKernels) -> Ball:
        """The set of weights: the lp ball, or the mixed (r, p) ball where ``r`` is given.

        Kernels of one view form a group unless ``kernel_groups`` names another grouping.
        """
        p, r = self.p, self.r
        if isinstance(p, str):
            p = AUTO_BETWEEN
            if r is None and self.kernel_groups is None:
                if len(set(kernels.views)) == 1:
                    return LpBall(AUTO_WITHIN)
                return MixedBall(p, AUTO_WITHIN, kernels.views)
        if not isinstance(p, int | float | np.number):
            if r is not None or self.kernel_groups is not None:
                raise ValueError(
                    f"p: got the ball {p!r} together with r or kernel_groups; expected a "
                    "number beside these."
                )
            return p  # type: ignore[no-any-return]
        if r is None:
            if self.kernel_groups is not None:
                raise ValueError(
                    "kernel_groups: got groups while r is None; pass r, the norm within a group."
                )
            return LpBall(float(p))
        J, groups = len(kernels.names), list(kernels.views)
        if self.kernel_groups is not None:
            groups = np.asarray(self.kernel_groups, dtype=object).tolist()
            if not isinstance(groups, list) or len(groups) != J:
                raise ValueError(
                    f"kernel_groups: got {self.kernel_groups!r}; expected {J} names, the group of "
                    "each kernel in the order of kernel_names_."
                )
        elif not isinstance(kernels, TableKernels):
            raise ValueError(
                "kernel_groups: precomputed kernels belong to no view; with r, pass the group of "
                f"each of the {J} kernels."
            )
        return MixedBall(float(p), r, groups)

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn weights and coefficients from kernels."""
        kernels, stack = training.kernels, training.stack
        ball = self.ball(kernels)
        if stack.J == 1 and self.solver in PRINTED:
            warn_of_one_kernel(self.solver)
        # Weights have mean one, so their sum is the number of rows.
        n = stack.n if row_weight is None else float(row_weight.sum())
        problem = FisherProblem(stack, self.delta * n, row_weight=row_weight)
        note = f" ({training.note})" if training.note else ""
        shown = f"{stack.n} rows, {stack.J} kernels{note}"
        with iterations_shown(self.verbose, shown, self.tol) as callback:
            result = solve(
                problem,
                ball,
                self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
                budget=training.budget,
            )
        # Without any kernel F would be 1'1 / rho: a model that is no better has learned nothing.
        if result.value >= (1.0 - 1e-10) * float(problem.target @ problem.target) / problem.ridge:
            _warn_of_nothing()
        # Exact ones where an n x n matrix can be had, those of landmarks where these stand for all.
        exact = stack.can_combine
        coef = problem.solution(result.weights) if exact else stack.project(result.coef)
        rule = FisherRule(result.weights, coef, self.score_type)
        system = RidgeSystem(
            float(getattr(ball, "p", np.nan)), self.delta, problem.ridge, row_weight
        )
        return RuleFit(rule, Certificate.of(result), system)


def warn_of_one_kernel(solver: str) -> None:
    """Tell who asked for the paper's algorithm that its update has one kernel to choose from."""
    message = OneKernelWarning(
        f"solver={solver!r}: the paper's rule weighs kernels, and there is one, of weight 1: "
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

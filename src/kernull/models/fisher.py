"""lp MK-FN: the Fisher null-space with learned kernel weights."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.balls import LpBall, MixedBall
from kernull.calibration import (
    LeftOut,
    attributed_contributions,
    leave_one_out_contributions,
    left_out_projections,
    sampled_leave_one_out,
)
from kernull.errors import ZeroProjectionWarning
from kernull.models.kernels import GivenKernels, ModelKernels, TableKernels, Training
from kernull.models.model import Certificate, RidgeSystem
from kernull.models.rules import FisherRule
from kernull.problems import FisherProblem, RidgeInverse
from kernull.problems.fisher import inverse_diagonal
from kernull.solvers import Result, solve
from kernull.solvers.base import iterations_shown

__all__ = ["FisherFit", "FisherMethod", "weight_ball"]


@dataclass(frozen=True)
class FisherMethod:
    r"""Learn kernel weights and coefficients.

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \;
       2 a't - \delta n\, a'a - a' \Big(\sum_j b_j K_j\Big) a

    t is 1 for rows and 0 for rows of reference. Its fields are the parameters of
    `MultiKernelFisherNull`.
    """

    p: float
    delta: float
    r: float | None = None
    kernel_groups: Any = None
    solver: str = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    score_type: str = "projection"
    verbose: int = 0

    def ball(self, kernels: ModelKernels) -> LpBall | MixedBall:
        """Where the weights may live."""
        if self.r is None and self.kernel_groups is None:
            return LpBall(self.p)
        groups = kernels.views if isinstance(kernels, TableKernels) else None
        return weight_ball(self.p, self.r, self.kernel_groups, groups, len(kernels.names))

    def learn(
        self, training: Training, row_weight: Array | None, init: Array | None = None
    ) -> FisherFit:
        """Learn from kernels, starting from the weights ``init`` where there are some."""
        kernels, stack, n_reference, _ = training
        ball, target = self.ball(kernels), None
        if n_reference:
            target = np.ones(stack.n)
            target[stack.n - n_reference :] = 0.0
            if row_weight is not None:
                row_weight = np.append(row_weight, np.ones(n_reference))
        # Weights count rows, so n is their sum.
        n = stack.n if row_weight is None else float(row_weight.sum())
        problem = FisherProblem(stack, self.delta * n, target, row_weight=row_weight)
        shown = f"{stack.n} rows, {stack.J} kernels"
        with iterations_shown(self.verbose, shown, self.tol) as callback:
            result = solve(
                problem,
                ball,
                self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                init=init,
                callback=callback,
            )
        # Without any kernel F would be t't / rho: a model that is no better has learned nothing.
        if result.value >= (1.0 - 1e-10) * float(problem.target @ problem.target) / problem.ridge:
            _warn_of_nothing()
        system = RidgeSystem(float(self.p), self.delta, problem.ridge, row_weight)
        certificate = Certificate.of(result)
        given = isinstance(kernels, GivenKernels)
        return FisherFit(
            problem, result, system, certificate, self.score_type, target, n_reference, given
        )


@dataclass(frozen=True, eq=False)
class FisherFit:
    """A solved problem, and what follows from it."""

    problem: FisherProblem
    result: Result
    system: RidgeSystem
    certificate: Certificate
    score_type: str
    target: Array | None
    n_reference: int
    given: bool
    """Whether the kernels are given, and so not at hand later."""

    @cached_property
    def _factor(self) -> Array | None:
        """Of rho I + K_b, where an n x n matrix can be had."""
        has_matrix = hasattr(self.problem.stack, "combine")
        return self.problem.factorise(self.result.weights) if has_matrix else None

    @cached_property
    def coef(self) -> Array:
        """Coefficients of all rows.

        Exact ones, where they can be had: the solver's are as good as its certificate asks, and
        leaving rows out magnifies what they lack.
        """
        if self._factor is None:
            return self.result.coef
        return self.problem.coefficients(self._factor)

    @cached_property
    def rule(self) -> FisherRule:
        """The projection."""
        stack: Any = self.problem.stack
        # A low-rank model keeps coefficients of its landmarks alone.
        coef = stack.project(self.coef) if hasattr(stack, "project") else self.coef
        return FisherRule(self.result.weights, coef, self.score_type)

    def leave_one_out(self) -> LeftOut:
        """Scores at fixed kernel weights and scaling: exact, or certified on a sample of rows."""
        problem, b, weight = self.problem, self.result.weights, self.system.row_weight
        n = problem.n - self.n_reference
        own = None if weight is None else weight[:n]
        if self._factor is not None:
            inverse = inverse_diagonal(self._factor.copy(order="K"))
            if weight is not None:  # from the problem's scaled coordinates to those of the rows
                inverse = weight * inverse
            left_out = left_out_projections(inverse, self.coef, problem.ridge, row_weight=weight)
            scores = self.rule.projection_to_score(left_out[:n])
            return LeftOut(scores, own, self._contributions() if self.given else None)
        sampled = sampled_leave_one_out(
            problem, b, self.coef, self.result.basis, row_weight=weight, targets=n
        )
        scores, rows = self.rule.projection_to_score(sampled.projections[:n]), sampled.index
        # Contributions now, as the kernels will not be at hand later.
        parts = attributed_contributions(
            problem.stack, b, self.coef, sampled.projections[rows], rows
        )
        return LeftOut(scores[rows], None if own is None else own[rows], parts, every=scores)

    def _contributions(self) -> Array:
        stack: Any = self.problem.stack
        b, system = self.result.weights, self.system
        inverse = RidgeInverse.of(stack.combine(b), system.ridge, system.row_weight)
        return leave_one_out_contributions(stack, b, inverse, self.target)


def weight_ball(
    p: Any, r: Any, kernel_groups: Any, views: Sequence[str] | None, J: int
) -> LpBall | MixedBall:
    """The lp ball, or the mixed (r, p) ball over groups of kernels where ``r`` is given.

    Kernels of one view form a group unless ``kernel_groups`` names another grouping; ``views`` are
    the views of the kernels, None where they belong to none.
    """
    if r is None:
        if kernel_groups is not None:
            raise ValueError(
                "kernel_groups: got groups while r is None; pass r, the norm within a group."
            )
        return LpBall(p)
    return MixedBall(p, r, _groups(kernel_groups, views, J))


def _groups(kernel_groups: Any, views: Sequence[str] | None, J: int) -> Sequence[Any]:
    if kernel_groups is None:
        if views is None:
            raise ValueError(
                "kernel_groups: precomputed kernels belong to no view; with r, pass the group of "
                f"each of the {J} kernels."
            )
        return views
    groups: list[Any] = np.asarray(kernel_groups, dtype=object).tolist()
    if not isinstance(groups, list) or len(groups) != J:
        raise ValueError(
            f"kernel_groups: got {kernel_groups!r}; expected {J} names, the group of each kernel "
            "in the order of kernel_names_."
        )
    return groups


def _warn_of_nothing() -> None:
    warnings.warn(
        "kernels: every projection is zero, so scores mean nothing. Linear kernels of centred "
        "columns (scaling='standard' or 'whiten') do this, and so do kernels of zeros: use "
        "scaling='none' or another kernel, or a smaller delta.",
        ZeroProjectionWarning,
        stacklevel=3,
    )

"""lp MK-FN: the Fisher null-space with learned kernel weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from kernull._lapack import inverse_diagonal, inverse_of_factor
from kernull._typing import Array, Indices
from kernull.balls import LpBall, MixedBall
from kernull.calibration import LeftOut, attributed_contributions, sampled_leave_one_out
from kernull.calibration.calibrators import Later
from kernull.calibration.left_out_kernels import leaves_scaling_out, left_out_kernel_rows
from kernull.calibration.left_out_sample import (
    SAMPLE_ROWS,
    TILED_ROWS,
    drawn_sample,
    sampled_contributions,
)
from kernull.calibration.left_out_scores import left_out_contributions, not_above_own
from kernull.errors import (
    InvalidKernelError,
    MissingCapabilityError,
    OneKernelWarning,
    ZeroProjectionWarning,
)
from kernull.models.kernels import GivenKernels, ModelKernels, TableKernels, Training
from kernull.models.model import Certificate, RidgeSystem
from kernull.models.rules import FisherRule
from kernull.problems import FisherProblem
from kernull.solvers import Result, solve
from kernull.solvers.base import iterations_shown
from kernull.stacks import DenseStack, TiledStack

#: Solvers that are Algorithm 1.
PRINTED = ("paper", "paper-cvx")


@dataclass(frozen=True)
class FisherMethod:
    r"""Learn kernel weights and coefficients.

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \;
       2 a'1 - \delta n\, a'a - a' \Big(\sum_j b_j K_j\Big) a

    Its fields but the last are the parameters of `MultiKernelFisherNull`.
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
    every: bool = False
    """Whether every row is left out for the threshold, however many there are."""

    def ball(self, kernels: ModelKernels) -> LpBall | MixedBall:
        """The lp ball, or the mixed (r, p) ball over groups of kernels where ``r`` is given.

        Kernels of one view form a group unless ``kernel_groups`` names another grouping.
        """
        if self.r is None:
            if self.kernel_groups is not None:
                raise ValueError(
                    "kernel_groups: got groups while r is None; pass r, the norm within a group."
                )
            return LpBall(self.p)
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
        return MixedBall(self.p, self.r, groups)

    def learn(
        self,
        training: Training,
        row_weight: Array | None,
        groups: Indices | None = None,
    ) -> FisherFit:
        """Learn from kernels; ``groups`` says which rows are left out together."""
        kernels, stack, _ = training
        ball = self.ball(kernels)
        if stack.J == 1 and self.solver in PRINTED:
            warn_of_one_kernel(self.solver)
        # Weights have mean one, so their sum is the number of rows.
        n = stack.n if row_weight is None else float(row_weight.sum())
        problem = FisherProblem(stack, self.delta * n, row_weight=row_weight)
        plan = getattr(stack, "plan_note", "")
        shown = f"{stack.n} rows, {stack.J} kernels{f' ({plan})' * bool(plan)}"
        with iterations_shown(self.verbose, shown, self.tol) as callback:
            result = solve(
                problem,
                ball,
                self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )
        # Without any kernel F would be 1'1 / rho: a model that is no better has learned nothing.
        if result.value >= (1.0 - 1e-10) * float(problem.target @ problem.target) / problem.ridge:
            _warn_of_nothing()
        system = RidgeSystem(float(self.p), self.delta, problem.ridge, row_weight)
        certificate = Certificate.of(result)
        return FisherFit(
            problem, result, system, certificate, self.score_type, training, groups, self.every
        )


@dataclass(frozen=True, eq=False)
class FisherFit:
    """A solved problem, and what follows from it."""

    problem: FisherProblem
    result: Result
    system: RidgeSystem
    certificate: Certificate
    score_type: str
    training: Training
    groups: Indices | None = None
    """Rows of a group are left out together."""
    every: bool = False
    """Whether every row is left out, not a sample of many."""

    @cached_property
    def leaves_out_scaling(self) -> bool:
        """Whether rows are left out of their own scaling too, in closed form."""
        kernels, stack, table = self.training
        many = isinstance(stack, TiledStack) and stack.n > TILED_ROWS
        return (
            isinstance(kernels, TableKernels)
            and (many or isinstance(stack, DenseStack))
            and table is not None
            and leaves_scaling_out(kernels.set)
        )

    @cached_property
    def solution(self) -> tuple[Array | None, Array, Indices | None]:
        """The factor of rho I + K_b, the coefficients of all rows, and a sample of many rows.

        Exact ones, where an n x n matrix can be had: the solver's are as good as its certificate
        asks, and leaving rows out magnifies what they lack. Else there is no factor. The rows of
        the sample, which alone will be left out, are the last ones of the factor.
        """
        problem, b, sample, order = self.problem, self.result.weights, None, None
        if not hasattr(problem.stack, "combine"):
            return None, self.result.coef, None
        known = self.result.basis is not None and self.leaves_out_scaling
        if problem.n > SAMPLE_ROWS and known and self.groups is None and not self.every:
            sample = drawn_sample(problem.n)
            order = np.append(np.delete(np.arange(problem.n), sample), sample)
        factor = problem.factorise(b, order)
        return factor, problem.coefficients(factor, order), sample

    @cached_property
    def rule(self) -> FisherRule:
        """The projection."""
        stack, coef = self.problem.stack, self.solution[1]
        if hasattr(stack, "project"):  # a low-rank model keeps coefficients of its landmarks alone
            coef = stack.project(coef)
        return FisherRule(self.result.weights, coef, self.score_type)

    def leave_one_out(self, *, whole: bool = False) -> LeftOut:
        """Scores at fixed kernel weights: in closed form, or certified on a sample of rows.

        Rows are left out of their own scaling and width wherever that has a closed form. What each
        kernel contributed is known at once where it is needed for the scores, or on demand.
        """
        rule, (factor, coef, sample) = self.rule, self.solution
        if factor is None:
            return self._sampled()
        del vars(self)["solution"]  # its factor is used up: made anew if asked for again
        if sample is not None:
            return self._of_a_sample(factor, coef, sample)
        b, weight, stack = self.result.weights, self.system.row_weight, self.problem.stack
        residual = self.system.ridge * coef
        as_new = 1.0 - (residual if weight is None else residual / weight)
        plain = isinstance(stack, DenseStack) and not self.leaves_out_scaling
        if plain and self.groups is None and not whole:
            # The diagonal of the inverse tells all but what each kernel contributed.
            diagonal = inverse_diagonal(factor)
            left_out = 1.0 - coef / (diagonal if weight is None else weight * diagonal)
            y = not_above_own(left_out[:, None], as_new)[:, 0]
            given = isinstance(self.training.kernels, GivenKernels)
            later = Later(len(y), partial(self._later, y)) if given else None  # tables are kept
            return LeftOut(rule.projection_to_score(y), weight, later)
        inverse, scale = inverse_of_factor(factor), self.problem.row_scale
        if scale is not None:
            inverse *= scale[:, None] * scale
        rows: Any = stack.rows
        if self.leaves_out_scaling:
            kernels, _, table = self.training
            rows = left_out_kernel_rows(kernels.set, table, weight, self.groups)  # type: ignore
            b = b if kernels.factors is None else b * kernels.factors
        elif isinstance(stack, DenseStack):
            rows, b = stack.raw_rows, b * stack.scale
        found = left_out_contributions(rows, b, inverse, coef, groups=self.groups)
        parts = not_above_own(found, as_new)
        return LeftOut(rule.projection_to_score(parts.sum(axis=1)), weight, parts)

    def _of_a_sample(self, factor: Array, coef: Array, sample: Indices) -> LeftOut:
        """Where rows are many: a sample of them, the last rows of the factor; others on demand.

        The end of the factor tells their G_ii: what is before it has no part in these.
        """
        weight, end = self.system.row_weight, slice(-len(sample), None)
        diagonal = inverse_diagonal(factor[end, end])
        found = self._nearly(
            coef, sample, diagonal if weight is None else weight[sample] * diagonal
        )
        every = Later(len(coef), lambda: replace(self, every=True).leave_one_out().scores)
        return replace(found, every=every)

    def _nearly(self, coef: Array, rows: Indices, diagonal: Array) -> LeftOut:
        """Scores of some rows that left their scaling too, from their G_ii and the basis."""
        kernels, _, table = self.training
        b, basis, weight = self.result.weights, self.result.basis, self.system.row_weight
        assert isinstance(kernels, TableKernels)
        assert table is not None
        assert basis is not None
        values = left_out_kernel_rows(kernels.set, table, weight)
        factors = 1.0 if kernels.factors is None else kernels.factors
        found = sampled_contributions(
            self.problem, b, coef, basis, rows, diagonal, values, b * factors
        )
        own = None if weight is None else weight[rows]
        residual = self.system.ridge * coef[rows]
        parts = not_above_own(found, 1.0 - (residual if own is None else residual / own))
        return LeftOut(self.rule.projection_to_score(parts.sum(axis=1)), own, parts)

    def _later(self, known: Array) -> Array:
        """The contributions from kernels that the user still holds, and must not have changed."""
        parts: Any = self.leave_one_out(whole=True).contributions
        if not np.allclose(parts.sum(axis=1), known, rtol=0.0, atol=1e-6):
            raise InvalidKernelError(
                "kernels: the kernels given to fit have changed since, so it can no longer be told "
                "what each contributed to rows left out. Leave them as they are, fit on a copy, or "
                "ask for calibration_contributions_ (or save the model) before."
            )
        return np.asarray(parts)

    def _sampled(self) -> LeftOut:
        """Where no n x n matrix can be had."""
        if self.groups is not None:
            raise MissingCapabilityError(
                "groups: rows can be left out together only where an n x n matrix can be had; use "
                "storage='dense', or calibration='split'."
            )
        problem, b, weight = self.problem, self.result.weights, self.system.row_weight
        coef = self.result.coef
        sampled = sampled_leave_one_out(problem, b, coef, self.result.basis, row_weight=weight)
        rows, diagonal = sampled.index, sampled.diagonal
        if self.leaves_out_scaling and self.result.basis is not None:
            found = self._nearly(coef, rows, diagonal[rows])
            every = Later(
                problem.n, lambda: self._nearly(coef, np.arange(problem.n), diagonal).scores
            )
            return replace(found, every=every)
        scores = self.rule.projection_to_score(sampled.projections)
        # Contributions now, as the kernels will not be at hand later.
        parts = attributed_contributions(problem.stack, b, coef, sampled.projections[rows], rows)
        return LeftOut(scores[rows], None if weight is None else weight[rows], parts, every=scores)


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

"""Related tasks that share kernel weights: a dict of models, learned together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration import LeftOut, left_out_projections
from kernull.calibration.left_out_kernels import leaves_scaling_out, left_out_kernel_rows
from kernull.calibration.left_out_scores import left_out_contributions, lower_ties, not_above_own
from kernull.mkl import RidgeInverse
from kernull.models.evidence import (
    EvidenceMethod,
    evidence_of,
    left_out_evidence,
    warn_of_views,
    with_weights,
)
from kernull.models.fisher import PRINTED, FisherMethod, warn_of_one_kernel
from kernull.models.kernels import GivenKernels, ModelKernels, TableKernels, Training
from kernull.models.model import Certificate, KernelModel, RidgeSystem, calibrate
from kernull.models.rules import EvidenceRule, FisherRule
from kernull.problems import FisherProblem, JointFisherProblem
from kernull.solvers import solve
from kernull.stacks.normalise import normalising_factors


@dataclass(frozen=True, eq=False)
class TaskKernels:
    """A task before it is learned, or before its weights are learned again."""

    kernels: ModelKernels
    row_weight: Array | None = None
    """Trust in its rows, of mean one; None where all are one."""
    table: Array | None = None
    """Its rows as they were given."""
    system: RidgeSystem | None = None
    """That of an earlier learning: its ridge stays."""
    rule: EvidenceRule | None = None
    """That of an earlier learning: each kernel's own evidence stays."""

    @classmethod
    def of(cls, model: KernelModel) -> TaskKernels:
        """A task that was learned, and is to be again."""
        assert model.system is not None
        rule = model.rule if isinstance(model.rule, EvidenceRule) else None
        table = None if rule is not None else _given_rows(model)
        return cls(model.kernels, model.system.row_weight, table, model.system, rule)

    def normalised(self, stack: Any, exponent: float) -> tuple[TaskKernels, Any]:
        """The task and its stack, with kernels on the scale that ``normalize`` asks for."""
        factors = self.kernels.factors
        if self.system is None and exponent > 0:
            factors = normalising_factors(stack, exponent, self.row_weight)
        if factors is not None:
            stack = copy(stack)  # given kernels are kept as they are
            stack.scale = stack.scale * factors
        return replace(self, kernels=replace(self.kernels, factors=factors)), stack


@dataclass(frozen=True, eq=False)
class JointModel:
    """All that a joint fit has learned: one model for each task, with weights in common."""

    tasks: Mapping[Hashable, KernelModel]
    certificate: Certificate
    views: Mapping[str, Indices] | None = None
    """Columns of the views, for tasks that enrol; None for given kernels."""
    device: str | None = None

    @property
    def first(self) -> KernelModel:
        """A task that stands for what all have in common."""
        return next(iter(self.tasks.values()))

    @property
    def weights(self) -> Array:
        """The shared kernel weights."""
        return np.asarray(self.first.rule.weights)

    @property
    def kernels(self) -> ModelKernels:
        """Those of the first task: names and views are the same for all."""
        return self.first.kernels

    @property
    def decides_by_evidence(self) -> bool:
        """Whether scores are minus the evidence against a row."""
        return self.first.decides_by_evidence


def learn_tasks(
    tasks: Mapping[Hashable, TaskKernels],
    method: FisherMethod,
    rate: float,
    *,
    dtype: Any,
    normalize: float = 0.0,
    views: Mapping[str, Indices] | None = None,
    n_jobs: int | None = None,
    init: Array | None = None,
) -> tuple[JointModel, dict[Hashable, Array]]:
    """Learn the shared weights and every task; with the left-out scores of each task's rows.

    ``method`` says how weights are learned, and whether tasks decide by evidence; ``rate`` is the
    share of normal rows of a task that may be flagged. Kernels of new tasks are divided by their
    mean off-diagonal entry to the power ``normalize``; ``views`` are kept for them. Tasks are
    solved in ``n_jobs`` threads, from the weights ``init``. Scores are NaN for rows that the task's
    evidence was not learned from: they are as good as new.
    """
    ready = {name: _ready(task, method, normalize, dtype) for name, task in tasks.items()}
    problem = JointFisherProblem([problem for _, _, problem in ready.values()], n_jobs)
    ball = method.ball(next(iter(ready.values()))[0].kernels)
    if problem.J == 1 and method.solver in PRINTED:
        warn_of_one_kernel(method.solver)
    result = solve(
        problem, ball, method.solver, tol=method.tol, max_iter=method.max_iter, init=init
    )
    certificate = Certificate.of(result)
    # Exact coefficients: the solver's are as good as its certificate asks, and leaving rows out
    # magnifies what they lack.
    solutions = problem.solutions(result.weights)
    found, scores = {}, {}
    for (name, (task, system, _)), (coef, diagonal) in zip(ready.items(), solutions, strict=True):
        rule = FisherRule(result.weights, coef, method.score_type)
        diagonal = _unscaled(diagonal, system.row_weight)
        found[name], left_out = _model(task, rule, method, rate, certificate, system, diagonal)
        scores[name] = left_out.of_all()
    first = next(iter(found.values()))
    if isinstance(first.rule, EvidenceRule):
        warn_of_views(first.rule, first.kernels.views)
    return JointModel(found, certificate, views), scores


def enrolled(
    model: JointModel,
    task: TaskKernels,
    method: FisherMethod,
    rate: float,
    *,
    dtype: Any,
    normalize: float = 0.0,
    kernel: Array | None = None,
) -> KernelModel:
    """A new task with the shared weights: one linear solve; ``kernel`` is its K_b, if known."""
    weights, inverse = model.weights, None
    if kernel is not None:
        system = _new_system(task, method)
        inverse = system.inverse(kernel)
        coef, diagonal = inverse.coef(), inverse.diagonal
    else:
        task, system, problem = _ready(task, method, normalize, dtype)
        coef, scaled = problem.solution(weights)
        diagonal = _unscaled(scaled, task.row_weight)
    rule, certificate = FisherRule(weights, coef, method.score_type), model.certificate
    return _model(task, rule, method, rate, certificate, system, diagonal, inverse)[0]


def _ready(
    task: TaskKernels, method: FisherMethod, normalize: float, dtype: Any
) -> tuple[TaskKernels, RidgeSystem, FisherProblem]:
    """The task with its factors, its ridge, and its own Fisher problem."""
    kernels = task.kernels
    stack = kernels.set.stack(dtype) if isinstance(kernels, TableKernels) else kernels.square
    task, stack = task.normalised(stack, normalize)
    system = task.system or _new_system(task, method)
    return task, system, FisherProblem(stack, system.ridge, row_weight=task.row_weight)


def _new_system(task: TaskKernels, method: FisherMethod) -> RidgeSystem:
    ridge = method.delta * task.kernels.n
    return RidgeSystem(float(method.p), method.delta, ridge, task.row_weight)


def _model(
    task: TaskKernels,
    projection: FisherRule,
    method: FisherMethod,
    rate: float,
    certificate: Certificate,
    system: RidgeSystem,
    diagonal: Array,
    inverse: RidgeInverse | None = None,
) -> tuple[KernelModel, LeftOut]:
    """The task's model, from the inverse of its system or the diagonal of it; with its scores."""
    kernels, rule = task.kernels, None
    if isinstance(method, EvidenceMethod):
        rule = _evidence(task, projection, method.max_rows)
        left_out = left_out_evidence(rule, kernels.n, task.row_weight)
    else:
        left_out = _left_out_sums(task, projection, system, diagonal, inverse)
    more: dict[str, Any] = {"certificate": certificate, "system": system, "n_given": kernels.n}
    decided = calibrate(left_out, rate)
    return KernelModel(kernels, rule or projection, **decided, **more), left_out


def _evidence(task: TaskKernels, projection: FisherRule, max_rows: int) -> EvidenceRule:
    """The task's own evidence under the shared weights."""
    kernels, weight = task.kernels, task.row_weight
    if task.rule is not None:
        return with_weights(task.rule, projection, weight)
    stack = kernels.square if isinstance(kernels, GivenKernels) else None
    training = Training(kernels, stack, table=task.table)
    return evidence_of(training, lambda: projection, weight, max_rows)


def _left_out_sums(
    task: TaskKernels,
    rule: FisherRule,
    system: RidgeSystem,
    inverse_diagonal: Array,
    inverse: RidgeInverse | None = None,
) -> LeftOut:
    """Scores of rows left out by the paper's sum."""
    kernels, table = task.kernels, task.table
    weight, ridge = system.row_weight, system.ridge
    own = 1.0 - (ridge * rule.coef if weight is None else ridge * rule.coef / weight)
    parts = None
    if isinstance(kernels, TableKernels) and table is not None and leaves_scaling_out(kernels.set):
        rows = left_out_kernel_rows(kernels.set, table, weight)
        G = (inverse or system.inverse(kernels.combined(rule.weights))).inverse
        b = rule.weights * kernels.scale
        parts = not_above_own(left_out_contributions(rows, b, G, rule.coef), own)
        left_out = parts.sum(axis=1)
    else:
        left_out = np.minimum(left_out_projections(inverse_diagonal, rule.coef), own)
    scores = rule.projection_to_score(left_out)
    return LeftOut(lower_ties(scores), weight, parts, every=scores)


def _unscaled(diagonal: Array, row_weight: Array | None) -> Array:
    """The diagonal of (rho W^-1 + K_b)^-1 from that of the scaled problem."""
    return diagonal if row_weight is None else row_weight * diagonal


def _given_rows(task: KernelModel) -> Array | None:
    """The rows of a task as they were given, from its scaling; None for given kernels."""
    if not isinstance(task.kernels, TableKernels):
        return None
    views = task.kernels.set.views
    table = np.zeros((task.kernels.n, 1 + max(int(view.columns.max()) for view in views)))
    for view in views:
        table[:, view.columns] = view.scaler.inverse_transform(view.train)
    return table

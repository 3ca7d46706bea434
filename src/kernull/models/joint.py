"""Related tasks that share kernel weights: a dict of models, learned together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration import LeftOut, left_out_projections
from kernull.calibration.left_out_kernels import leaves_scaling_out, left_out_kernel_rows
from kernull.calibration.left_out_scores import (
    left_out_contributions,
    lower_ties,
    not_above_own,
)
from kernull.models.fisher import FisherMethod
from kernull.models.kernels import GivenKernels, ModelKernels, TableKernels
from kernull.models.model import Certificate, KernelModel, RidgeSystem
from kernull.models.rules import FisherRule
from kernull.problems import FisherProblem, JointFisherProblem, RidgeInverse
from kernull.solvers import solve

__all__ = ["JointModel", "TaskKernels", "enrolled", "learn_tasks", "relearn_tasks"]


@dataclass(frozen=True, eq=False)
class TaskKernels:
    """A task before it is learned."""

    kernels: ModelKernels
    row_weight: Array | None = None
    """Trust in its rows, of mean one; None where all are one."""
    table: Array | None = None
    """Its rows as they were given, where scaling and widths are its own."""

    @property
    def size(self) -> float:
        """Number of rows."""
        return float(self.kernels.n)

    def problem(self, delta: float, dtype: Any, device: Any = None) -> FisherProblem:
        """The task's own Fisher problem, on a torch device if there is one."""
        return _problem(self.kernels, delta * self.size, self.row_weight, dtype, device)


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

    def with_task(self, name: Hashable, model: KernelModel) -> JointModel:
        """The model with one more task."""
        return replace(self, tasks={**self.tasks, name: model})

    def without_task(self, name: Hashable) -> JointModel:
        """The model with one task less."""
        rest = {other: task for other, task in self.tasks.items() if other != name}
        return replace(self, tasks=rest)


def learn_tasks(
    tasks: Mapping[Hashable, TaskKernels],
    method: FisherMethod,
    rate: float,
    *,
    dtype: Any,
    views: Mapping[str, Indices] | None = None,
    n_jobs: int | None = None,
    device: Any = None,
) -> tuple[JointModel, dict[Hashable, Array]]:
    """Learn the shared weights and every task; with the left-out scores of each task's rows."""
    kernels = next(iter(tasks.values())).kernels
    problems = [task.problem(method.delta, dtype, device) for task in tasks.values()]
    systems = {
        name: RidgeSystem(float(method.p), method.delta, problem.ridge, task.row_weight)
        for (name, task), problem in zip(tasks.items(), problems, strict=True)
    }
    learned = {name: task.kernels for name, task in tasks.items()}
    tables = {name: task.table for name, task in tasks.items()}
    return _learn(
        learned, systems, problems, kernels, method, rate, views, n_jobs, device, None, tables
    )


def relearn_tasks(
    model: JointModel, method: FisherMethod, rate: float, *, dtype: Any, n_jobs: int | None = None
) -> JointModel:
    """Learn the shared weights again on all present tasks, starting from the present ones."""
    kernels = {name: task.kernels for name, task in model.tasks.items()}
    systems = {name: _system(task) for name, task in model.tasks.items()}
    problems = [
        _problem(own, system.ridge, system.row_weight, dtype)
        for own, system in zip(kernels.values(), systems.values(), strict=True)
    ]
    found, _ = _learn(
        kernels, systems, problems, model.kernels, method, rate, model.views, n_jobs, None,
        model.weights, {name: _given_rows(task) for name, task in model.tasks.items()},
    )  # fmt: skip
    return found


def enrolled(
    model: JointModel,
    task: TaskKernels,
    method: FisherMethod,
    rate: float,
    *,
    dtype: Any,
    kernel: Array | None = None,
    device: Any = None,
) -> KernelModel:
    """A new task with the shared weights: one linear solve; ``kernel`` is its K_b, if known."""
    ridge, weights = method.delta * task.size, model.weights
    inverse = None
    if kernel is not None:
        inverse = RidgeInverse.of(kernel, ridge, task.row_weight, overwrite=True)
        coef, diagonal = inverse.coef(), inverse.diagonal
    else:
        problems = [task.problem(method.delta, dtype, device)]
        ((coef, scaled),) = _joint_problem(problems, None, device).solutions(weights)
        diagonal = _unscaled(scaled, task.row_weight)
    system = RidgeSystem(float(method.p), method.delta, ridge, task.row_weight)
    rule = FisherRule(weights, coef, method.score_type)
    return _finished(
        task.kernels, rule, system, model.certificate, diagonal, rate, task.table, inverse
    )[0]


def _learn(
    kernels: Mapping[Hashable, ModelKernels],
    systems: Mapping[Hashable, RidgeSystem],
    problems: list[FisherProblem],
    shared: ModelKernels,
    method: FisherMethod,
    rate: float,
    views: Mapping[str, Indices] | None,
    n_jobs: int | None,
    device: Any,
    init: Array | None,
    tables: Mapping[Hashable, Array | None],
) -> tuple[JointModel, dict[Hashable, Array]]:
    ball = method.ball(shared)
    problem = _joint_problem(problems, n_jobs, device)
    result = solve(
        problem, ball, method.solver, tol=method.tol, max_iter=method.max_iter, init=init
    )
    certificate = Certificate.of(result)
    # Exact coefficients: the solver's are as good as its certificate asks, and leaving rows out
    # magnifies what they lack.
    solutions = problem.solutions(result.weights)
    tasks, scores = {}, {}
    for name, (coef, diagonal) in zip(kernels, solutions, strict=True):
        system = systems[name]
        rule = FisherRule(result.weights, coef, method.score_type)
        inverse = _unscaled(diagonal, system.row_weight)
        tasks[name], scores[name] = _finished(
            kernels[name], rule, system, certificate, inverse, rate, tables[name]
        )
    return JointModel(tasks, certificate, views), scores


def _finished(
    kernels: ModelKernels,
    rule: FisherRule,
    system: RidgeSystem,
    certificate: Certificate,
    inverse_diagonal: Array,
    rate: float,
    table: Array | None,
    inverse: RidgeInverse | None = None,
) -> tuple[KernelModel, Array]:
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
    model = KernelModel.of(
        kernels,
        rule,
        LeftOut(lower_ties(scores), weight, parts),
        rate,
        certificate=certificate,
        system=system,
        n_given=kernels.n,
    )
    return model, scores


def _joint_problem(
    problems: Iterable[FisherProblem], n_jobs: int | None, device: Any
) -> JointFisherProblem:
    """The problem that tasks share: on the host, or on a torch device in batches."""
    if device is None:
        return JointFisherProblem(list(problems), n_jobs)
    from kernull.problems.torch_joint import BatchedJointFisherProblem

    return BatchedJointFisherProblem(list(problems))


def _problem(
    kernels: ModelKernels, ridge: float, row_weight: Array | None, dtype: Any, device: Any = None
) -> FisherProblem:
    stack: Any
    if device is not None:
        stack = _device_stack(kernels, dtype, device)
    elif isinstance(kernels, TableKernels):
        stack = kernels.set.stack(dtype)
    else:
        stack = kernels.square
    return FisherProblem(stack, ridge, row_weight=row_weight)


def _device_stack(kernels: ModelKernels, dtype: Any, device: Any) -> Any:
    import torch

    from kernull.stacks.torch_tiled import TorchDenseStack, TorchTiledStack

    kind = torch.float32 if np.dtype(dtype) == np.float32 else torch.float64
    if isinstance(kernels, TableKernels):
        return TorchTiledStack.from_bank(kernels.set, device, kind).dense()
    assert isinstance(kernels, GivenKernels)
    assert kernels.square is not None
    values = torch.as_tensor(kernels.square.kernels).to(device, kind)
    return TorchDenseStack(values, kernels.square.scale)


def _unscaled(diagonal: Array, row_weight: Array | None) -> Array:
    """The diagonal of (rho W^-1 + K_b)^-1 from that of the scaled problem."""
    return diagonal if row_weight is None else row_weight * diagonal


def _given_rows(task: KernelModel) -> Array | None:
    """The rows of a task as they were given, from its own scaling; None where it has none."""
    if not isinstance(task.kernels, TableKernels) or task.left_out is None:
        return None
    views = task.kernels.set.views
    table = np.zeros((task.kernels.n, 1 + max(int(view.columns.max()) for view in views)))
    for view in views:
        table[:, view.columns] = view.scaler.inverse_transform(view.train)
    return table


def _system(task: KernelModel) -> RidgeSystem:
    assert task.system is not None
    return task.system

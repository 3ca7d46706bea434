"""Related tasks that share kernel weights: a dict of models, learned together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.detector.calibration import Cross, LeftOut, is_no_label, rank_weights
from kernull.detector.cautions import warn_of_views
from kernull.detector.cross_fit import folds_of
from kernull.detector.evidence import EvidenceRule
from kernull.detector.fisher import PRINTED, FisherMethod, warn_of_one_kernel
from kernull.detector.learning import learn_evidence, sum_contributions
from kernull.detector.model import Certificate, KernelModel, RidgeSystem, calibrate
from kernull.detector.rows import (
    GivenRows,
    ModelKernels,
    Settings,
    TableKernels,
    TableRows,
    Training,
)
from kernull.detector.sum import FisherRule
from kernull.detector.tails import lowered
from kernull.errors import MissingCapabilityError
from kernull.mkl.problems import FisherProblem, JointFisherProblem
from kernull.mkl.solvers import solve
from kernull.operators.dense import DenseStack
from kernull.operators.normalise import normalising_factors, read_normalisation
from kernull.views import KernelSet
from kernull.views.kernel_set import joined
from kernull.views.scaling import constant_columns


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
            stack = stack.rescaled(factors)
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
    settings: Settings,
    *,
    views: Mapping[str, Indices] | None = None,
    n_jobs: int | None = None,
    init: Array | None = None,
) -> tuple[JointModel, dict[Hashable, Array]]:
    """Learn the shared weights and every task.

    Parameters
    ----------
    tasks : mapping
        Kernels of each task.
    method : FisherMethod
        How weights are learned.
    settings : Settings
    views : mapping, optional
        Columns of the views, kept for tasks that enrol.
    n_jobs : int, optional
        Threads that solve tasks side by side.
    init : array of shape (J,), optional
        Weights to start from.

    Returns
    -------
    model : JointModel
    scores : dict
        Left-out scores of each task's rows; NaN for rows beyond those that its evidence was learned
        from, which are as good as new.
    """
    ready = {name: _ready(task, method, settings) for name, task in tasks.items()}
    problem = JointFisherProblem([problem for _, _, problem in ready.values()], n_jobs)
    ball = method.ball(next(iter(ready.values()))[0].kernels)
    if problem.J == 1 and method.solver in PRINTED:
        warn_of_one_kernel(method.solver)
    result = solve(
        problem, ball, method.solver, tol=method.tol, max_iter=method.max_iter, init=init
    )
    certificate = Certificate.of(result)
    found, scores = {}, {}
    # Exact coefficients: the solver's are as good as its certificate asks.
    exact = problem.solutions(result.weights)
    for (name, (task, system, own)), coef in zip(ready.items(), exact, strict=True):
        rule = FisherRule(result.weights, coef, method.score_type)
        found[name], scores[name] = _model(task, own, rule, settings, certificate, system)
    first = next(iter(found.values()))
    if isinstance(first.rule, EvidenceRule) and isinstance(first.kernels, TableKernels):
        warn_of_views(first.rule, first.kernels.views)
    return JointModel(found, certificate, views), scores


def enrolled(
    model: JointModel, task: TaskKernels, method: FisherMethod, settings: Settings
) -> KernelModel:
    """A new task with the shared weights: one linear solve."""
    task, system, problem = _ready(task, method, settings)
    rule = FisherRule(model.weights, problem.solution(model.weights), method.score_type)
    return _model(task, problem, rule, settings, model.certificate, system)[0]


def _ready(
    task: TaskKernels, method: FisherMethod, settings: Settings
) -> tuple[TaskKernels, RidgeSystem, FisherProblem]:
    """The task with its factors, its ridge, and its own Fisher problem."""
    kernels = task.kernels
    stack: Any = None
    if isinstance(kernels, TableKernels):
        stack = DenseStack.of(kernels.set, settings.dtype)
    else:
        stack = kernels.square
    task, stack = task.normalised(stack, read_normalisation(settings.normalize))
    system = task.system
    if system is None:
        ridge, p = method.delta * kernels.n, float(getattr(method.ball(kernels), "p", np.nan))
        system = RidgeSystem(p, method.delta, ridge, task.row_weight)
    return task, system, FisherProblem(stack, system.ridge, row_weight=task.row_weight)


def _model(
    task: TaskKernels,
    problem: FisherProblem,
    projection: FisherRule,
    settings: Settings,
    certificate: Certificate,
    system: RidgeSystem,
) -> tuple[KernelModel, Array]:
    """The task's model, and the left-out scores of its rows."""
    kernels, weight, how = task.kernels, task.row_weight, settings.calibrator
    assert isinstance(how, Cross)
    training = Training(kernels, problem.stack, task.table)
    rule: FisherRule | EvidenceRule = projection
    if settings.decision is None:
        stack: Any = problem.stack
        if isinstance(kernels, TableKernels) and task.table is not None:
            rows: GivenRows | TableRows = TableRows(task.table, kernels.columns)
        else:
            rows = GivenRows(stack)
        fold = folds_of(rows.keys(settings.seed), how.count(kernels.n))
        parts = sum_contributions(training, projection, system, weight, fold, settings)
        scores = lowered(projection.of_contributions(parts))
        left_out = LeftOut(scores, rank_weights(weight, None, kernels.n), parts)
    else:
        if task.rule is not None:
            rule = task.rule.with_weights(projection)
        else:
            rule = learn_evidence(
                training, projection, settings, row_weight=weight, folds=how.count(kernels.n)
            )
        left_out = LeftOut(rule.calibration_scores, rule.rank_weight)
        scores = np.full(kernels.n, np.nan)
        scores[slice(None) if rule.rows is None else rule.rows] = rule.calibration_scores
    decided = calibrate(left_out, settings.false_alarm_rate)
    more: dict[str, Any] = {"certificate": certificate, "system": system, "n_given": kernels.n}
    return KernelModel(kernels, rule, **decided, **more), scores


def _given_rows(task: KernelModel) -> Array | None:
    """The rows of a task as they were given, from its scaling; None for given kernels."""
    if not isinstance(task.kernels, TableKernels):
        return None
    views = task.kernels.set.views
    table = np.zeros((task.kernels.n, 1 + max(int(view.columns.max()) for view in views)))
    for view in views:
        if not view.can_be_undone:
            raise MissingCapabilityError(
                f"scaling: {view.scaler!r} does not give the rows of the view {view.name!r} back, "
                "which decision='sum' needs to learn weights again; fit all tasks anew."
            )
        table[:, view.columns] = view.scaler.inverse_transform(view.train)
    return table


# -- Related tasks: which rows belong to which, the views they share, and their kernels. --


#: The name of the only task where no groups are given.
ONLY = "all"


def read_task_labels(
    groups: Any, rows: int, known: Mapping[Any, Any] | None = None
) -> list[Hashable]:
    """The task of each row, as plain Python objects.

    ``known`` (when scoring) are the tasks of the model: one label then serves for all rows, None
    means the only task there is, and an unknown one is an error.
    """
    if groups is None:
        if known is None:
            return [ONLY] * rows
        if len(known) > 1:
            raise ValueError(
                f"groups: missing, while the model has {len(known)} tasks ({_some(known)}); pass "
                "the task of each row."
            )
        return list(known) * rows
    names = _labels(groups, rows, one_for_all=known is not None)
    for row, name in enumerate(names):
        if is_no_label(name):
            raise ValueError(f"groups: row {row} has no task ({name!r}); every row needs one.")
        try:
            hash(name)
        except TypeError:
            raise ValueError(
                f"groups: row {row} has {name!r}; expected names or numbers."
            ) from None
    if known is not None:
        unknown = list(dict.fromkeys(name for name in names if name not in known))
        if unknown:
            raise ValueError(
                f"groups: unknown task(s) {_some(unknown)}; the model knows {_some(known)}. Add a "
                "task by enroll(X, group)."
            )
    return names


def _labels(groups: Any, rows: int, *, one_for_all: bool) -> list[Any]:
    if one_for_all and (isinstance(groups, str) or np.ndim(groups) == 0):
        item = getattr(groups, "item", None)  # NumPy's scalars become plain ones
        return [item() if callable(item) else groups] * rows
    array = np.asarray(groups) if not isinstance(groups, list | tuple) else _objects(groups)
    if array.ndim != 1 or len(array) != rows:
        raise ValueError(
            f"groups: got shape {array.shape}; expected the task of each of the {rows} rows."
        )
    return list(array.tolist())


def _objects(values: Any) -> Any:
    """A one-dimensional array of what is there: mixed lists would all turn into strings."""
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value.item() if isinstance(value, np.generic) else value
    return out


def group_rows(names: list[Hashable]) -> dict[Hashable, Indices]:
    """Rows of each task, in order of first appearance."""
    rows: dict[Hashable, list[int]] = {}
    for i, name in enumerate(names):
        rows.setdefault(name, []).append(i)
    return {name: np.array(index, dtype=np.intp) for name, index in rows.items()}


def check_sizes(sizes: Mapping[Hashable, int]) -> None:
    """Every task needs at least three rows."""
    small = {name: size for name, size in sizes.items() if size < 3}
    if small:
        shown = ", ".join(f"{name!r} ({size})" for name, size in list(small.items())[:5])
        raise ValueError(
            f"groups: each task needs at least 3 rows (of positive weight); too few in {shown}. "
            "Leave these out, or enroll them once there are more rows."
        )


def _some(names: Any) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")


def varying_views(
    X: Array, tasks: list[Indices], views: Mapping[str, Indices], hosts: Collection[str]
) -> Mapping[str, Indices]:
    """The views that vary within at least one task, see `joined`."""
    constant = np.logical_and.reduce([constant_columns(X[rows]) for rows in tasks])
    return joined(views, constant, hosts, "within every task")


def table_tasks(
    table: Array,
    rows: Mapping[Hashable, Indices],
    weight: Array | None,
    views: Mapping[str, Indices],
    **options: Any,
) -> dict[Hashable, TaskKernels]:
    """Tasks of the rows of a table, each with scaling and widths of its own.

    ``rows`` has those of each task, all of positive weight; weights have mean one within a task;
    ``options`` are ``kernels``, ``widths`` and ``scaling``.
    """
    weights = {name: None if weight is None else weight[index] for name, index in rows.items()}
    options["drop_constant"] = False  # seen to for all tasks at once: they share their kernels
    sets = {
        name: KernelSet.fit(table[index], views, sample_weight=weights[name], **options)
        for name, index in rows.items()
    }
    return {
        name: TaskKernels(TableKernels(own), weights[name], table[rows[name]])
        for name, own in sets.items()
    }

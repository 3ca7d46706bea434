"""Related tasks that share kernel weights: a dict of models, learned together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from kernull._fields import Apart, Checked, Range, Shape, stored
from kernull._typing import Array, Indices
from kernull.detector.calibration import is_no_label, relative_weights
from kernull.detector.cautions import warn_of_views
from kernull.detector.evidence import EvidenceRule
from kernull.detector.fisher import FisherMethod, warn_of_one_kernel
from kernull.detector.learning import Fitted
from kernull.detector.model import Certificate, KernelModel, RidgeSystem, RuleFit
from kernull.detector.rows import ModelKernels, Rows, Settings, TableKernels, Training
from kernull.detector.sum import FisherRule
from kernull.mkl.problems import FisherProblem, JointFisherProblem
from kernull.mkl.solvers import solve
from kernull.mkl.solvers.base import iterations_logged
from kernull.views.kernel_set import joined
from kernull.views.scaling import constant_columns


@dataclass(frozen=True, eq=False)
class Task:
    """A task before it is learned."""

    rows: Rows
    weight: Array | None = None
    """Of its rows, positive; None where all are one."""


@stored
@dataclass(frozen=True, eq=False)
class JointModel(Checked):
    """All that a joint fit has learned: one model for each task, with weights in common."""

    tasks: Annotated[Mapping[Hashable, KernelModel], Apart(("J", "d"))]
    certificate: Certificate
    views: Mapping[str, Annotated[Indices, Shape("_"), Range(low=0)]] | None = None
    """Columns of the views, for tasks that enrol; None for given kernels."""

    def contradiction(self) -> str | None:
        """What does not fit together."""
        if not self.tasks or not isinstance(self.first.rule, FisherRule | EvidenceRule):
            return "no tasks, or rules of another method"
        same = all(
            np.array_equal(task.rule.weights, self.weights)
            and task.decides_by_evidence == self.decides_by_evidence
            and task.kernels.names == self.kernels.names
            for task in self.tasks.values()
        )
        return None if same else "tasks that do not share their kernels and weights"

    def restored(self) -> JointModel:
        """The model of a file, with what is derived."""
        return replace(self, tasks={name: task.restored() for name, task in self.tasks.items()})

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
    tasks: Mapping[Hashable, Task],
    method: FisherMethod,
    settings: Settings,
    *,
    views: Mapping[str, Indices] | None = None,
) -> tuple[JointModel, dict[Hashable, Array]]:
    """Learn the shared weights and each task.

    Parameters
    ----------
    tasks : mapping of label to Task
    method : FisherMethod
        How weights are learned.
    settings : Settings
    views : mapping, optional
        Columns of the views, kept for tasks that enrol.

    Returns
    -------
    model : JointModel
    scores : dict
        Scores of each task's rows by models without their fold.
    """
    ready = [_ready(task, method, settings) for task in tasks.values()]
    problem = JointFisherProblem([problem for _, problem, _ in ready])
    ball = method.ball(ready[0][0].kernels)
    if problem.J == 1:
        warn_of_one_kernel(method.solver)
    shown = f"{problem.n} rows of {len(ready)} tasks, {problem.J} kernels"
    callback = iterations_logged(shown, method.solver)
    result = solve(problem, ball, method.solver, callback=callback)
    certificate, b = Certificate.of(result), result.weights
    # Exact coefficients: the solver's are as good as its certificate asks.
    parts = zip(tasks, ready, problem.solutions(b), strict=True)
    fitted = {name: _fitted(part, b, a, certificate, method, settings) for name, part, a in parts}
    models = {name: task.model for name, task in fitted.items()}
    first = next(iter(models.values()))
    if isinstance(first.rule, EvidenceRule) and isinstance(first.kernels, TableKernels):
        warn_of_views(first.rule, first.kernels.views)
    scores = {name: task.row_scores() for name, task in fitted.items()}
    return JointModel(models, certificate, views), scores


def enrolled(
    model: JointModel, task: Task, method: FisherMethod, settings: Settings
) -> KernelModel:
    """A new task with the shared weights: one linear solve.

    Parameters
    ----------
    model : JointModel
        With the shared weights.
    task : Task
        Rows of the new task.
    method : FisherMethod
        How coefficients are learned.
    settings : Settings
    """
    ready, b = _ready(task, method, settings), model.weights
    coef = ready[1].solution(b)
    return _fitted(ready, b, coef, model.certificate, method, settings).model


#: Kernels of a task, its Fisher problem, and the weights of its rows.
_Ready = tuple[Training, FisherProblem, Array | None]


def _ready(task: Task, method: FisherMethod, settings: Settings) -> _Ready:
    settings = replace(settings, storage="dense", drop_constant=False)
    weight = relative_weights(task.weight)
    training = task.rows.training(weight, settings)
    ridge = method.delta * training.rows.n
    return training, FisherProblem(training.stack, ridge, row_weight=weight), weight


def _fitted(
    ready: _Ready,
    weights: Array,
    coef: Array,
    certificate: Certificate,
    method: FisherMethod,
    settings: Settings,
) -> Fitted:
    """The model of a task."""
    training, problem, row_weight = ready
    p = float(getattr(method.ball(training.kernels), "p", np.nan))
    system = RidgeSystem(p, method.delta, problem.ridge, row_weight)
    fit = RuleFit(FisherRule(weights, coef, method.score_type), certificate, system)
    rows = training.rows
    index = np.arange(rows.n)
    return Fitted(method, settings, training, fit, rows, index, rows, row_weight)


# -- Related tasks: which rows belong to which, the views they share, and their kernels. --


#: The name of the only task where no groups are given.
ONLY = "all"


def read_task_labels(
    groups: Any, rows: int, known: Mapping[Any, Any] | None = None
) -> list[Hashable]:
    """The task of each row, as plain Python objects.

    ``known`` (when scoring) are the tasks of the model: one label then serves for all rows, None
    means the only task there is, and an unknown one is an error.

    Parameters
    ----------
    groups : array of shape (m,), label or None
        Tasks as passed.
    rows : int
        Number of rows, m.
    known : mapping, optional
        Tasks of the model.

    Returns
    -------
    list of length m
    """
    if groups is None:
        if known is None:
            return [ONLY] * rows
        if len(known) > 1:
            raise ValueError(
                f"groups: missing, while the model has {len(known)} tasks ({_shown(known)}); pass "
                "the task of each row."
            )
        return list(known) * rows
    if known is not None and np.ndim(groups) == 0:  # one label for all rows
        groups = [groups] * rows
    shape = np.shape(groups) if isinstance(groups, np.ndarray) else (len(groups),)
    if shape != (rows,):
        raise ValueError(
            f"groups: got shape {shape}; expected the task of each of the {rows} rows."
        )
    names = [label.item() if isinstance(label, np.generic) else label for label in groups]
    for row, name in enumerate(names):
        if is_no_label(name):
            raise ValueError(f"groups: row {row} has no task ({name!r}); every row needs one.")
        if not isinstance(name, Hashable):
            raise ValueError(f"groups: row {row} has {name!r}; expected names or numbers.")
    unknown = [] if known is None else [name for name in dict.fromkeys(names) if name not in known]
    if unknown:
        raise ValueError(
            f"groups: unknown task(s) {_shown(unknown)}; the model knows {_shown(known)}. Add a "
            "task by enroll(X, group)."
        )
    return names


def group_rows(names: list[Hashable]) -> dict[Hashable, Indices]:
    """Rows of each task, in order of first appearance.

    Parameters
    ----------
    names : list of length n
        Task of each row.

    Returns
    -------
    dict
        Rows of each task.
    """
    rows: dict[Hashable, list[int]] = {}
    for i, name in enumerate(names):
        rows.setdefault(name, []).append(i)
    return {name: np.array(index, dtype=np.intp) for name, index in rows.items()}


def check_sizes(sizes: Mapping[Hashable, int]) -> None:
    """Every task needs at least three rows.

    Parameters
    ----------
    sizes : mapping
        Number of rows of each task.
    """
    small = {name: size for name, size in sizes.items() if size < 3}
    if small:
        shown = ", ".join(f"{name!r} ({size})" for name, size in list(small.items())[:5])
        raise ValueError(
            f"groups: each task needs at least 3 rows (of positive weight); too few in {shown}. "
            "Leave these out, or enroll them once there are more rows."
        )


def _shown(names: Any) -> str:
    return ", ".join(map(repr, list(names)[:5])) + (", ..." if len(names) > 5 else "")


def varying_views(
    X: Array, tasks: list[Indices], views: Mapping[str, Indices], hosts: Collection[str]
) -> Mapping[str, Indices]:
    """The views that vary within at least one task, see `joined`.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows of all tasks.
    tasks : list of integer arrays
        Rows of each task.
    views : mapping
    hosts : collection of str
        Views that may take the columns of others.

    Returns
    -------
    mapping
        Columns of each view that varies.
    """
    constant = np.logical_and.reduce([constant_columns(X[rows]) for rows in tasks])
    return joined(views, constant, hosts, "within every task")

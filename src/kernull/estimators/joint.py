"""Joint one-class learning of related tasks that share their kernel weights."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from kernull._typing import Array
from kernull.calibration import left_out_projections
from kernull.errors import InvalidKernelError
from kernull.estimators._arrays import as_numpy, cuda_device_of, host
from kernull.estimators._atomic import rollback_on_error
from kernull.estimators._base import OneClassKernelEstimator
from kernull.estimators._enrolment import EnrolmentMixin
from kernull.estimators._inputs import (
    check_names,
    check_number,
    names_of_kernels,
    read_precomputed,
    read_table,
    read_weights,
)
from kernull.estimators._leaks import leaking_view, warn_of_leak
from kernull.estimators._task_scores import TaskScoringMixin
from kernull.estimators._tasks import (
    Task,
    check_sizes,
    group_rows,
    joint_problem,
    own_stack,
    pooled_bank,
    read_groups,
    varying_views,
)
from kernull.estimators._weights import weight_ball
from kernull.solvers import Result, solve
from kernull.stacks import KernelSet, check_memory, parse_memory_limit
from kernull.views import resolve_views

__all__ = ["JointMultiKernelFisherNull"]


class JointMultiKernelFisherNull(  # type: ignore[misc]
    EnrolmentMixin, TaskScoringMixin, OneClassKernelEstimator
):
    r"""Related one-class tasks that share kernel weights (the paper's joint lp MK-FN).

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \sum_c \max_{a_c} \;
       2 a_c'1 - \delta n_c\, a_c'a_c - a_c' \Big(\sum_j b_j K^c_j\Big) a_c

    One task a person, a machine, a camera: each has its own rows, coefficients and threshold;
    which views matter is learned from all of them together. A new task enrols by one linear solve.

    Parameters
    ----------
    kernels, views, scaling, widths, p, delta, solver, tol, max_iter, score_type : object
        As in `MultiKernelFisherNull`.
    false_alarm_rate, storage, memory_limit, dtype, drop_constant, r, kernel_groups : object
        As in `MultiKernelFisherNull`. ``delta`` is relative to the rows of each task.
    pooled : bool, default=False
        Whether scaling and widths are learned from all tasks together, each about its own mean,
        and kept for tasks that enrol. By default each task has those of its own rows. Pooling
        pays where tasks have few rows and many columns, above all with ``scaling="whiten"``; it
        costs where columns that never vary in a task are what gives outliers away.
    n_jobs : int, optional
        Threads that solve tasks side by side; None: one after the other, -1: all cores. Given
        tensors on a GPU, tasks are solved there in batches of like size instead.

    Attributes
    ----------
    weights_ : array of shape (J,)
        Kernel weights b of all tasks.
    tasks_ : list
        Names of the tasks.
    coef_ : dict of name -> array of shape (n_c,)
        Coefficients of each task.
    threshold_ : dict of name -> float
        Score below which rows of a task are flagged.
    offset_ : dict of name -> float, or float
        The same; the number itself where there is one task, as in scikit-learn.
    false_alarm_rate_ : dict of name -> float
        The rate that each threshold stands for.
    calibration_ : dict of name -> Calibration
        Leave-one-out scores of each task.
    gap_ : float
        Relative duality gap of the weights for the joint problem.
    n_iter_, history_, solver_, kernel_names_
        As in `MultiKernelFisherNull`.

    Notes
    -----
    Methods take ``groups``, the task of each row. `fit`, `predict` and `decision_function`
    request it from scikit-learn's metadata routing without being told.

    With ``kernels="precomputed"``, `fit` takes a mapping of name -> kernels (J, n_c, n_c), or one
    stack (J, n, n) with ``groups``; scoring takes a mapping of name -> (J, m, n_c) and gives a
    mapping of scores, or one array of rows (J, m, n_c) for one task, or, where one stack was
    fitted, (J, m, n) with ``groups``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.datasets import load_wine_views
    >>> from kernull.views import join_views
    >>> data = load_wine_views()
    >>> X, views = join_views(data.views)
    >>> known = data.y < 2
    >>> model = JointMultiKernelFisherNull(views=views)
    >>> model = model.fit(X[known], groups=data.y[known])
    >>> sorted(model.tasks_)
    [0, 1]
    >>> model = model.enroll(X[data.y == 2], 2)
    >>> scores = model.score_samples(X, groups=2)
    >>> bool(scores[data.y == 2].mean() > scores[data.y != 2].mean())
    True
    """

    # One entry a task, where other estimators have a single value.
    calibration_: Any
    threshold_: Any
    offset_: Any
    false_alarm_rate_: Any

    # Rows are nothing without their task: ask meta-estimators for it by default.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        scaling: Any = "standard",
        widths: Any = 0.5,
        p: float = 2.0,
        delta: float = 1e-2,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        score_type: str = "projection",
        false_alarm_rate: float = 0.05,
        storage: str = "auto",
        memory_limit: Any = None,
        dtype: Any = "float64",
        drop_constant: bool = True,
        r: float | None = None,
        kernel_groups: Any = None,
        pooled: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.views = views
        self.scaling = scaling
        self.widths = widths
        self.p = p
        self.delta = delta
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.score_type = score_type
        self.false_alarm_rate = false_alarm_rate
        self.storage = storage
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.drop_constant = drop_constant
        self.r = r
        self.kernel_groups = kernel_groups
        self.pooled = pooled
        self.n_jobs = n_jobs

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn the shared weights and every task.

        Parameters
        ----------
        X : table of shape (n, d), or precomputed kernels (see the notes of the class)
            Training rows of all tasks, all taken to be normal for their task.
        y : ignored
            Present for scikit-learn's interface.
        sample_weight : array of shape (n,), optional
            Trust in each row, as in `MultiKernelFisherNull`.
        groups : array of shape (n,), optional
            The task of each row; None: one task.

        Returns
        -------
        self
        """
        device = self._device_for(X)
        with rollback_on_error(self):
            self._fit(host(X), as_numpy(sample_weight), as_numpy(groups), device)
        return self

    def _fit(self, X: Any, sample_weight: Any, groups: Any, device: Any) -> None:
        delta = check_number("delta", self.delta, "a positive number (relative to n)", 0.0)
        self._check_choices()
        if self._pairwise:
            tasks = self._precomputed_tasks(X, sample_weight, groups)
        else:
            tasks = self._table_tasks(X, sample_weight, groups)
        self._tasks = {name: replace(task, ridge=delta * task.size) for name, task in tasks.items()}
        self._learn_tasks(None, device)
        self._training_rows = group_rows(self._row_names)
        self._fitted_stack_rows = len(self._row_names)

    def _table_tasks(self, X: Any, sample_weight: Any, groups: Any) -> dict[Hashable, Task]:
        table = read_table(self, X, reset=True)
        weight = read_weights(sample_weight, X)
        self._row_names = read_groups(groups, len(table))
        rows = group_rows(self._row_names)
        kept = rows if weight is None else {c: i[weight[i] > 0] for c, i in rows.items()}
        check_sizes({name: len(index) for name, index in kept.items()})
        views = resolve_views(self.views, table.shape[1], getattr(self, "feature_names_in_", None))
        index = list(kept.values())
        self._views = varying_views(table, index, views) if self.drop_constant else views
        if self.pooled:
            options = self._kernel_options()
            shared = pooled_bank(table, index, weight, views=self._views, **options)
            banks = [shared.with_rows(table[rows]) for rows in index]
        else:
            banks = [self._own_bank(table, rows, weight) for rows in index]
            smallest = min(banks, key=lambda bank: bank.n)
            leak = leaking_view(smallest, smallest.n)
            # Small tasks are what this is for: standardised, their thresholds are a little off.
            if leak is not None and leak.scaler.kind != "standard":
                warn_of_leak(leak, smallest.n)
        self.bank_ = banks[0]
        self.kernel_names_ = np.array(self.bank_.kernel_names, dtype=object)
        self._check_room([len(rows) for rows in index], self.bank_.J)
        return {
            name: Task(name, np.nan, bank=bank, row_weight=None if weight is None else weight[rows])
            for (name, rows), bank in zip(kept.items(), banks, strict=True)
        }

    def _own_bank(self, table: Array, rows: Any, weight: Array | None) -> KernelSet:
        """A task's kernels with scaling and widths by its own rows."""
        own = None if weight is None else weight[rows]
        # Constant views are seen to for all tasks at once: they share their kernels.
        return KernelSet.fit(
            table[rows],
            self._views,
            sample_weight=own,
            drop_constant=False,
            **self._kernel_options(),
        )

    def _kernel_options(self) -> dict[str, Any]:
        return {"kernels": self.kernels, "widths": self.widths, "scaling": self.scaling}

    def _precomputed_tasks(self, X: Any, sample_weight: Any, groups: Any) -> dict[Hashable, Task]:
        if sample_weight is not None:
            raise ValueError("sample_weight: not supported with precomputed kernels of tasks.")
        dtype = self._value_type()
        self.bank_ = None
        if isinstance(X, Mapping):
            if groups is not None:
                raise ValueError("groups: got groups next to a mapping, which names its tasks.")
            stacks = {name: own_stack(name, K, dtype) for name, K in X.items()}
            if not stacks:
                raise ValueError("X: got an empty mapping; expected kernels of at least one task.")
            self._row_names = [name for name, stack in stacks.items() for _ in range(stack.n)]
            columns: dict[Hashable, Any] = dict.fromkeys(stacks)
        else:
            whole = read_precomputed(X, dtype=dtype)
            self._row_names = read_groups(groups, whole.n)
            columns = dict(group_rows(self._row_names))
            check_sizes({name: len(index) for name, index in columns.items()})
            stacks = {name: whole[np.ix_(index, index)] for name, index in columns.items()}
            self.n_features_in_ = whole.n
        counts = {stack.J for stack in stacks.values()}
        if len(counts) > 1:
            raise InvalidKernelError(
                f"kernels: tasks have {sorted(counts)} kernels; expected as many for each."
            )
        named = [stack for stack in stacks.values() if stack.names is not None]
        self.kernel_names_ = names_of_kernels(named[0] if named else next(iter(stacks.values())))
        for stack in named:
            check_names(stack, self.kernel_names_)
        return {
            name: Task(name, np.nan, stack=stack, columns=columns[name])
            for name, stack in stacks.items()
        }

    def _learn_tasks(self, init: Array | None, device: Any = None) -> None:
        """Learn weights, coefficients and thresholds of the tasks in ``_tasks``."""
        tol = check_number("tol", self.tol, "a positive number", 0.0)
        J = len(self.kernel_names_)
        ball = weight_ball(self.p, self.r, self.kernel_groups, self.bank_, J)
        tasks = list(self._tasks.values())
        problem = joint_problem(tasks, self._value_type(), self.n_jobs, device)
        result: Result = solve(
            problem, ball, self.solver, tol=tol, max_iter=self.max_iter, init=init
        )
        # Exact coefficients: the solver's are as good as its certificate asks, and leaving rows
        # out magnifies what they lack.
        solutions = problem.solutions(result.weights)
        self.weights_ = result.weights
        self.gap_ = result.gap
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.solver_ = result.solver
        self._publish(
            {
                task.name: self._finished(task, coef, task.unscaled(diagonal))
                for task, (coef, diagonal) in zip(tasks, solutions, strict=True)
            }
        )

    def _finished(self, task: Task, coef: Array, inverse_diagonal: Array) -> Task:
        left_out = left_out_projections(
            inverse_diagonal, coef, task.ridge, row_weight=task.row_weight
        )
        return task.learned(coef, self._of_projection(left_out), self.false_alarm_rate)

    def _publish(self, tasks: dict[Hashable, Task]) -> None:
        self._tasks = tasks
        self.tasks_ = list(tasks)
        self.coef_ = {name: task.coef for name, task in tasks.items()}
        self.calibration_ = {name: task.calibration for name, task in tasks.items()}
        self.threshold_ = {name: task.threshold for name, task in tasks.items()}
        # scikit-learn's number where there is but one task.
        several = len(tasks) > 1
        self.offset_ = self.threshold_ if several else next(iter(self.threshold_.values()))
        self.false_alarm_rate_ = {name: task.false_alarm_rate for name, task in tasks.items()}

    # -- small things ------------------------------------------------------------------------

    def _device_for(self, X: Any) -> Any:
        """The GPU on which the tasks' systems are solved, in batches; None: the host."""
        return cuda_device_of(X)

    def _check_choices(self) -> None:
        if self.score_type not in ("projection", "distance"):
            raise ValueError(
                f"score_type: got {self.score_type!r}; expected 'projection' or 'distance'."
            )
        if self.storage not in ("auto", "dense"):
            raise ValueError(f"storage: got {self.storage!r}; expected 'auto' or 'dense'.")

    def _check_room(self, sizes: list[int], J: int) -> None:
        """Refuse stacks of all tasks that do not fit, before they are allocated."""
        side = math.ceil(math.sqrt(sum(size * size for size in sizes)))
        limit = parse_memory_limit(self.memory_limit)
        check_memory(J, side, np.dtype(self._value_type()).itemsize, limit)

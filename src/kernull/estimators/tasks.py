"""What users of a joint estimator pass, as tasks with their kernels."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._containers import as_numpy, host
from kernull.detector import GivenKernels, TableKernels
from kernull.detector.calibration import trust, trusted
from kernull.detector.joint import (
    TaskKernels,
    check_sizes,
    group_rows,
    read_task_labels,
    table_tasks,
    varying_views,
)
from kernull.errors import InvalidKernelError
from kernull.estimators.inputs import read_dtype, read_table, read_weights
from kernull.operators import DenseStack, check_memory, parse_memory_limit
from kernull.operators.dense import check_names, names_of_kernels, read_precomputed
from kernull.views import check_views, knows_unseen, resolve_views


def read_table_tasks(estimator: Any, X: Any, sample_weight: Any, groups: Any) -> Any:
    """Tasks of a table, the rows of each, and the views that they share."""
    table = read_table(estimator, X, reset=True)
    weight = read_weights(sample_weight, X)
    rows = group_rows(read_task_labels(groups, len(table)))
    kept = rows if weight is None else {c: i[weight[i] > 0] for c, i in rows.items()}
    weight = None if weight is None else trusted(weight, kept.values())
    check_sizes({name: len(index) for name, index in kept.items()})
    views = resolve_views(
        estimator.views, table.shape[1], getattr(estimator, "feature_names_in_", None)
    )
    check_views(views, estimator.scaling, estimator.kernels)
    index = list(kept.values())
    if estimator.drop_constant:
        hosts = [view for view in views if knows_unseen(estimator.scaling, view)]
        views = dict(varying_views(table, index, views, hosts))
    tasks = table_tasks(table, kept, weight, views, **_kernel_options(estimator))
    first = next(iter(tasks.values())).kernels
    check_room(estimator, [len(rows) for rows in index], len(first.names))
    return tasks, rows, views


def _kernel_options(estimator: Any) -> dict[str, Any]:
    return {"kernels": estimator.kernels, "widths": estimator.widths, "scaling": estimator.scaling}


def read_given_tasks(estimator: Any, X: Any, sample_weight: Any, groups: Any) -> Any:
    """Tasks of kernels that the user computed, and the rows of each."""
    _refuse_weights(sample_weight)
    dtype = read_dtype(estimator.dtype)
    columns: dict[Hashable, Any]
    if isinstance(X, Mapping):
        if groups is not None:
            raise ValueError("groups: got groups next to a mapping, which names its tasks.")
        stacks = {name: _own_stack(name, K, dtype) for name, K in X.items()}
        if not stacks:
            raise ValueError("X: got an empty mapping; expected kernels of at least one task.")
        columns, total = dict.fromkeys(stacks), sum(stack.n for stack in stacks.values())
        rows = group_rows([name for name, stack in stacks.items() for _ in range(stack.n)])
    else:
        whole = read_precomputed(X, dtype=dtype)
        rows = group_rows(read_task_labels(groups, whole.n))
        columns, total = dict(rows), whole.n
        check_sizes({name: len(index) for name, index in rows.items()})
        stacks = {name: whole[np.ix_(index, index)] for name, index in rows.items()}
        estimator.n_features_in_ = whole.n
    counts = {stack.J for stack in stacks.values()}
    if len(counts) > 1:
        raise InvalidKernelError(
            f"kernels: tasks have {sorted(counts)} kernels; expected as many for each."
        )
    named = [stack for stack in stacks.values() if stack.names is not None]
    names = tuple(names_of_kernels(named[0] if named else next(iter(stacks.values()))))
    for stack in named:
        check_names(stack, names)
    tasks = {
        name: TaskKernels(_given_kernels(stack, names, columns[name], total))
        for name, stack in stacks.items()
    }
    return tasks, rows


def read_new_task(estimator: Any, name: Hashable, X: Any, sample_weight: Any) -> TaskKernels:
    """The task to be."""
    shared, weights = estimator.model_.kernels, estimator.model_.weights
    if not isinstance(shared, TableKernels):
        _refuse_weights(sample_weight)
        stack = _own_stack(name, X, read_dtype(estimator.dtype))
        check_names(stack.validate(stack.n, len(weights)), shared.names)
        return TaskKernels(_given_kernels(stack, shared.names, None, stack.n))
    size = _num_samples(X)
    if size < 3:
        raise ValueError(f"X: got {size} row(s) for the task {name!r}; expected at least 3.")
    table = read_table(estimator, X, reset=False)
    weight = read_weights(sample_weight, X)
    if weight is not None:
        table, weight = table[weight > 0], trust(weight[weight > 0], int((weight > 0).sum()))
    check_room(estimator, [len(table)], len(weights))
    views = estimator.model_.views
    assert views is not None
    rows = {name: np.arange(len(table))}
    return table_tasks(table, rows, weight, views, **_kernel_options(estimator))[name]


def tasks_asked(estimator: Any, X: Any, groups: Any) -> dict[Hashable, Any]:
    """For each task asked for: its model, kernels of its rows, these rows, their places."""
    check_is_fitted(estimator)
    X, groups = host(X), as_numpy(groups)
    tasks, dtype = estimator.model_.tasks, read_dtype(estimator.dtype)
    is_table = isinstance(estimator.model_.kernels, TableKernels)
    if isinstance(X, Mapping):
        if is_table or groups is not None:
            raise ValueError(
                "X: a mapping of name -> kernels is for models of precomputed kernels, and "
                "names its tasks itself (no groups)."
            )
        read_task_labels(list(X), len(X), tasks)
        return {n: (tasks[n], tasks[n].kernels.cross(K, dtype), None, None) for n, K in X.items()}
    if is_table:
        source: Any = read_table(estimator, X, reset=False)
    else:
        source = X if isinstance(X, DenseStack) else DenseStack(np.asarray(X))
    rows = group_rows(read_task_labels(groups, len(source), tasks))
    return {
        name: (
            tasks[name],
            tasks[name].kernels.cross(source[index], dtype),
            source[index] if is_table else None,
            index,
        )
        for name, index in rows.items()
    }


def check_room(estimator: Any, sizes: list[int], J: int) -> None:
    """Refuse stacks of all tasks that do not fit, before they are allocated."""
    side = math.ceil(math.sqrt(sum(size * size for size in sizes)))
    limit = parse_memory_limit(estimator.memory_limit)
    check_memory(J, side, np.dtype(read_dtype(estimator.dtype)).itemsize, limit)


def _refuse_weights(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight: not supported with precomputed kernels of tasks.")


def _given_kernels(stack: DenseStack, names: Any, columns: Any, total: int) -> GivenKernels:
    return GivenKernels(names, stack.scale, stack.n, total, learned=columns, square=stack)


def _own_stack(name: Hashable, X: Any, dtype: Any) -> DenseStack:
    """A task's own square kernels, or an error that names the task."""
    try:
        return read_precomputed(X, dtype=dtype)
    except InvalidKernelError as error:
        raise InvalidKernelError(f"task {name!r}: {error}") from None

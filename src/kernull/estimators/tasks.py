"""What users of a joint estimator pass, as tasks with their kernels."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._containers import as_numpy, host
from kernull._typing import Indices
from kernull.detector import GivenRows, TableKernels, TableRows
from kernull.detector.calibration import trust, trusted
from kernull.detector.joint import (
    Task,
    check_sizes,
    group_rows,
    read_task_labels,
    varying_views,
)
from kernull.errors import InvalidKernelError
from kernull.estimators.inputs import read_dtype, read_table, read_weights
from kernull.operators import DenseStack, check_memory, parse_memory_limit
from kernull.operators.dense import check_names, read_precomputed
from kernull.views import check_views, knows_unseen, resolve_views
from kernull.views.kernel_set import Recipe


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
    recipe = recipe_of(estimator, views)
    check_room(estimator, [len(rows) for rows in index], recipe)
    tasks = {
        name: Task(TableRows(table[some], recipe), None if weight is None else weight[some])
        for name, some in kept.items()
    }
    return tasks, rows, views


def recipe_of(estimator: Any, views: Mapping[str, Indices]) -> Recipe:
    """How views and kernels are made of rows."""
    return Recipe(views, estimator.kernels, estimator.widths, estimator.scaling)


def read_given_tasks(estimator: Any, X: Any, sample_weight: Any, groups: Any) -> Any:
    """Tasks of kernels that the user computed, and the rows of each."""
    _refuse_weights(sample_weight)
    dtype = read_dtype(estimator.dtype)
    places: dict[Hashable, Any]
    if isinstance(X, Mapping):
        if groups is not None:
            raise ValueError("groups: got groups next to a mapping, which names its tasks.")
        stacks = {name: _own_stack(name, K, dtype) for name, K in X.items()}
        if not stacks:
            raise ValueError("X: got an empty mapping; expected kernels of at least one task.")
        places = dict.fromkeys(stacks)
        rows = group_rows([name for name, stack in stacks.items() for _ in range(stack.n)])
    else:
        whole = read_precomputed(X, dtype=dtype)
        places = rows = group_rows(read_task_labels(groups, whole.n))
        check_sizes({name: len(index) for name, index in rows.items()})
        stacks = dict.fromkeys(rows, whole)
        estimator.n_features_in_ = whole.n
    counts = {stack.J for stack in stacks.values()}
    if len(counts) > 1:
        raise InvalidKernelError(
            f"kernels: tasks have {sorted(counts)} kernels; expected as many for each."
        )
    names = next((stack.names for stack in stacks.values() if stack.names is not None), None)
    tasks = {name: Task(GivenRows(_named(K, names), places[name])) for name, K in stacks.items()}
    return tasks, rows


def _named(stack: DenseStack, names: Sequence[str] | None) -> DenseStack:
    """The stack with the names that some task has; an error where it has others."""
    if names is None:
        return stack
    check_names(stack, names)
    return DenseStack(stack.kernels, stack.scale, stack.own_diagonal, tuple(names))


def read_new_task(estimator: Any, name: Hashable, X: Any, sample_weight: Any) -> Task:
    """The task to be."""
    shared, weights = estimator.model_.kernels, estimator.model_.weights
    if not isinstance(shared, TableKernels):
        _refuse_weights(sample_weight)
        stack = _own_stack(name, X, read_dtype(estimator.dtype))
        check_names(stack.validate(stack.n, len(weights)), shared.names)
        return Task(GivenRows(_named(stack, shared.names)))
    size = _num_samples(X)
    if size < 3:
        raise ValueError(f"X: got {size} row(s) for the task {name!r}; expected at least 3.")
    table = read_table(estimator, X, reset=False)
    weight = read_weights(sample_weight, X)
    if weight is not None:
        table, weight = table[weight > 0], trust(weight[weight > 0], int((weight > 0).sum()))
    views = estimator.model_.views
    assert views is not None
    recipe = recipe_of(estimator, views)
    check_room(estimator, [len(table)], recipe)
    return Task(TableRows(table, recipe), weight)


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


def check_room(estimator: Any, sizes: list[int], recipe: Recipe) -> None:
    """Refuse stacks of all tasks that do not fit, before they are allocated."""
    side = math.ceil(math.sqrt(sum(size * size for size in sizes)))
    limit = parse_memory_limit(estimator.memory_limit)
    check_memory(recipe.J, side, np.dtype(read_dtype(estimator.dtype)).itemsize, limit)


def _refuse_weights(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight: not supported with precomputed kernels of tasks.")


def _own_stack(name: Hashable, X: Any, dtype: Any) -> DenseStack:
    """A task's own square kernels, or an error that names the task."""
    try:
        return read_precomputed(X, dtype=dtype)
    except InvalidKernelError as error:
        raise InvalidKernelError(f"task {name!r}: {error}") from None

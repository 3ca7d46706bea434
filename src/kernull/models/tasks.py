"""Related tasks: which rows belong to which, the views they share, and their kernels."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration.rows import is_no_label
from kernull.models.joint import TaskKernels
from kernull.models.kernels import TableKernels
from kernull.stacks import KernelSet
from kernull.stacks.kernel_set import joined
from kernull.views.scaling import constant_columns

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

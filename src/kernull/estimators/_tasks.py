"""Tasks of a joint model: who they are, which rows are theirs, and what each has learned."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration import Calibration
from kernull.errors import ConstantViewWarning, InvalidKernelError
from kernull.estimators._inputs import read_precomputed
from kernull.kernels.widths import mean_distance
from kernull.problems import FisherProblem, JointFisherProblem
from kernull.stacks import DenseStack, KernelSet

__all__ = [
    "ONLY",
    "Task",
    "check_sizes",
    "group_rows",
    "joint_problem",
    "own_stack",
    "pooled_bank",
    "read_groups",
    "varying_views",
]

#: The name of the only task where no groups are given.
ONLY = "all"


@dataclass(frozen=True, eq=False)
class Task:
    """One task of a joint model."""

    name: Hashable
    ridge: float
    bank: KernelSet | None = None
    """Kernels on the task's training rows, or None where they are precomputed."""
    stack: DenseStack | None = None
    """The task's own precomputed kernels (J, n_c, n_c), or None."""
    columns: Indices | None = None
    """Positions of the task's rows in the one precomputed stack of the fit, if there was one."""
    row_weight: Array | None = None
    coef: Array | None = None
    left_out: Array | None = None
    """Leave-one-out score of each training row."""
    calibration: Calibration | None = None
    threshold: float = np.nan
    false_alarm_rate: float = np.nan

    @property
    def n(self) -> int:
        """Number of training rows."""
        source = self.bank if self.bank is not None else self.stack
        assert source is not None
        return source.n

    @property
    def size(self) -> float:
        """Number of rows; a row of weight w counts as w."""
        return float(self.n) if self.row_weight is None else float(self.row_weight.sum())

    def kernels(self, dtype: Any, device: Any = None) -> Any:
        """The task's training stack, on a torch device if there is one."""
        if device is not None:
            return _device_stack(self, dtype, device)
        if self.stack is not None:
            return self.stack
        assert self.bank is not None
        return self.bank.stack(dtype)

    def problem(self, dtype: Any, device: Any = None) -> FisherProblem:
        """The task's own Fisher problem."""
        return FisherProblem(self.kernels(dtype, device), self.ridge, row_weight=self.row_weight)

    def unscaled(self, diagonal: Array) -> Array:
        """The diagonal of (rho W^-1 + K_b)^-1 from that of the scaled problem."""
        return diagonal if self.row_weight is None else self.row_weight * diagonal

    def learned(self, coef: Array, scores: Array, rate: float) -> Task:
        """The task with its coefficients and the threshold of its leave-one-out scores."""
        calibration = Calibration.of(scores, self.row_weight, smooth=True)
        threshold, certified = calibration.threshold(rate)
        return replace(
            self,
            coef=coef,
            left_out=scores,
            calibration=calibration,
            threshold=threshold,
            false_alarm_rate=certified,
        )


def joint_problem(
    tasks: Iterable[Task], dtype: Any, n_jobs: int | None = None, device: Any = None
) -> JointFisherProblem:
    """The problem that tasks share: on the host, or on a torch device in batches."""
    problems = [task.problem(dtype, device) for task in tasks]
    if device is None:
        return JointFisherProblem(problems, n_jobs)
    from kernull.problems.torch_joint import BatchedJointFisherProblem

    return BatchedJointFisherProblem(problems)


def _device_stack(task: Task, dtype: Any, device: Any) -> Any:
    import torch

    from kernull.stacks.torch_tiled import TorchDenseStack, TorchTiledStack

    kind = torch.float32 if np.dtype(dtype) == np.float32 else torch.float64
    if task.bank is not None:
        return TorchTiledStack.from_bank(task.bank, device, kind).dense()
    assert task.stack is not None
    return TorchDenseStack(torch.as_tensor(task.stack.kernels).to(device, kind), task.stack.scale)


def own_stack(name: Hashable, X: Any, dtype: Any) -> DenseStack:
    """A task's own square kernels, or an error that names the task."""
    try:
        return read_precomputed(X, dtype=dtype)
    except InvalidKernelError as error:
        raise InvalidKernelError(f"task {name!r}: {error}") from None


def read_groups(groups: Any, rows: int, known: Mapping[Any, Any] | None = None) -> list[Hashable]:
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
        if name is None or name != name:  # NaN differs from itself
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
    """Every task needs at least two rows."""
    small = {name: size for name, size in sizes.items() if size < 2}
    if small:
        shown = ", ".join(f"{name!r} ({size})" for name, size in list(small.items())[:5])
        raise ValueError(
            f"groups: each task needs at least 2 rows (of positive weight); too few in {shown}. "
            "Leave these out, or enroll them once there are more rows."
        )


def varying_views(
    X: Array, tasks: list[Indices], views: Mapping[str, Indices]
) -> dict[str, Indices]:
    """The views that vary within at least one task; the others are dropped with a warning."""
    kept = {
        name: columns
        for name, columns in views.items()
        if any((np.ptp(X[np.ix_(rows, columns)], axis=0) > 0).any() for rows in tasks)
    }
    if not kept:
        raise ValueError(
            "X: every view is constant within every task; there is nothing to learn from."
        )
    dropped = [repr(name) for name in views if name not in kept]
    if dropped:
        warnings.warn(
            f"dropped constant view(s) {', '.join(dropped)}: a kernel that is constant within "
            "every task says nothing about normality and would attract weight.",
            ConstantViewWarning,
            stacklevel=2,
        )
    return kept


def pooled_bank(
    X: Array,
    tasks: list[Indices],
    sample_weight: Array | None,
    *,
    views: Mapping[str, Indices],
    **options: Any,
) -> KernelSet:
    """Scaling and widths that all tasks share, learned from all of their rows.

    Every task is moved to the common mean first, and widths are factors of the mean distance
    between rows of one task: kernels only ever compare rows of one task, so differences between
    tasks must not count.
    """
    options["drop_constant"] = False  # seen to for all tasks at once
    rows = np.concatenate(tasks)
    weight = None if sample_weight is None else sample_weight[rows]
    if len(tasks) == 1:
        return KernelSet.fit(X[rows], views, sample_weight=weight, **options)
    centre = np.average(X[rows], axis=0, weights=weight)
    moved = np.concatenate([_deviations(X, index, sample_weight) for index in tasks]) + centre
    bank = KernelSet.fit(moved, views, sample_weight=weight, **options)
    ends = np.cumsum([len(index) for index in tasks])[:-1]
    return _with_widths(bank, np.split(np.arange(len(rows)), ends), weight)


def _deviations(X: Array, rows: Indices, sample_weight: Array | None) -> Array:
    part = X[rows]
    weight = None if sample_weight is None else sample_weight[rows]
    out = part - np.average(part, axis=0, weights=weight)
    out[:, np.ptp(part, axis=0) == 0] = 0.0  # exactly: rounding must not count as variance
    return np.asarray(out)


def _with_widths(bank: KernelSet, tasks: list[Indices], sample_weight: Array | None) -> KernelSet:
    """Widths as factors of the mean distance over all pairs of rows of one task."""
    views = []
    for view in bank.views:
        means: dict[str, float] = {}
        for metric in {k.metric for k in view.kernels if k.metric is not None}:
            parts = [_distance_and_pairs(view.train[t], metric, sample_weight, t) for t in tasks]
            total = sum(pairs for _, pairs in parts)
            means[metric] = sum(d * pairs for d, pairs in parts) / total if total else 0.0
        kernels = tuple(
            k
            if k.metric is None or k.factor is None
            else replace(k, width=k.factor * (means[k.metric] or 1.0))
            for k in view.kernels
        )
        views.append(replace(view, kernels=kernels))
    return replace(bank, views=tuple(views))


def _distance_and_pairs(
    X: Array, metric: str, sample_weight: Array | None, rows: Indices
) -> tuple[float, float]:
    weight = None if sample_weight is None else sample_weight[rows]
    total = float(len(X)) if weight is None else float(weight.sum())
    return mean_distance(X, metric, weight), max(total * (total - 1.0), 0.0)


def _some(names: Any) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")

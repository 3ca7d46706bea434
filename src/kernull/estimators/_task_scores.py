"""Scores of rows by the task that each belongs to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array
from kernull.calibration import discoveries
from kernull.estimators._arrays import as_numpy, cuda_device_of, host, like
from kernull.estimators._inputs import check_names, read_precomputed, read_table, with_scale
from kernull.estimators._tasks import Task, group_rows, read_groups
from kernull.stacks import CrossKernels, DenseStack, KernelSet
from kernull.stacks.cross import device_cross

__all__ = ["TaskScoringMixin"]


class TaskScoringMixin:
    """Adds scoring by task to an estimator with ``weights_``, ``bank_`` and ``_tasks``."""

    bank_: KernelSet | None
    weights_: Array
    score_type: str
    _tasks: dict[Hashable, Task]
    _fitted_stack_rows: int

    def score_samples(self, X: Any, groups: Any = None) -> Any:
        """Score rows by their own task; higher is more normal.

        Parameters
        ----------
        X : table of shape (m, d), or precomputed kernels (see the notes of the class)
        groups : array of shape (m,) or one label for all rows, optional
            The task that each row claims to belong to; may be left out where there is only one.

        Returns
        -------
        array of shape (m,), or a mapping of these where X is one
        """
        check_is_fitted(self)
        return like(self._by_task(X, groups, self._task_score), X)

    def decision_function(self, X: Any, groups: Any = None) -> Any:
        """Score minus the threshold of the row's task: negative where a row is flagged."""
        check_is_fitted(self)
        values = self._by_task(
            X, groups, lambda task, cross: self._task_score(task, cross) - task.threshold
        )
        return like(values, X)

    def predict(self, X: Any, groups: Any = None) -> Any:
        """+1 for rows that are normal for their task, -1 for flagged ones."""
        values = self.decision_function(X, groups)
        if isinstance(values, Mapping):
            return {name: np.where(part >= 0, 1, -1) for name, part in values.items()}
        return like(np.where(as_numpy(values) >= 0, 1, -1), X)

    def contributions(self, X: Any, groups: Any = None) -> Any:
        """Contribution of each kernel to the projection of each row, of shape (m, J)."""
        check_is_fitted(self)
        return like(self._by_task(X, groups, self._task_contributions), X)

    def p_values(self, X: Any, groups: Any = None) -> Any:
        """Conformal p-value of each row among the leave-one-out scores of its task."""
        check_is_fitted(self)

        def judge(task: Task, cross: DenseStack | CrossKernels) -> Array:
            assert task.calibration is not None
            return task.calibration.p_values(self._task_score(task, cross))

        return like(self._by_task(X, groups, judge), X)

    def detect(self, X: Any, fdr: float = 0.1, groups: Any = None) -> Any:
        """Flag rows of one batch, whatever their tasks; see `MultiKernelFisherNull.detect`."""
        values = self.p_values(X, groups)
        if not isinstance(values, Mapping):
            return like(discoveries(as_numpy(values), fdr), X)
        together = discoveries(np.concatenate(list(values.values())), fdr)
        ends = np.cumsum([len(part) for part in values.values()])[:-1]
        return dict(zip(values, np.split(together, ends), strict=True))

    def _by_task(self, X: Any, groups: Any, call: Any) -> Any:
        device, X, groups = cuda_device_of(X), host(X), as_numpy(groups)
        if isinstance(X, Mapping):
            if self.bank_ is not None or groups is not None:
                raise ValueError(
                    "X: a mapping of name -> kernels is for models of precomputed kernels, and "
                    "names its tasks itself (no groups)."
                )
            read_groups(list(X), len(X), self._tasks)
            return {
                name: call(self._tasks[name], self._precomputed_cross(self._tasks[name], K))
                for name, K in X.items()
            }
        source: Any = (
            read_table(self, X, reset=False) if self.bank_ is not None else _cross_stack(X)
        )
        rows = group_rows(read_groups(groups, len(source), self._tasks))
        out: Array | None = None
        for name, index in rows.items():
            task = self._tasks[name]
            if task.bank is not None:
                part = call(task, self._table_cross(task.bank, source[index], device))
            else:
                part = call(task, self._precomputed_cross(task, source[index]))
            if out is None:
                out = np.empty((len(source), *part.shape[1:]))
            out[index] = part
        return np.empty(0) if out is None else out

    def _table_cross(self, bank: KernelSet, rows: Array, device: Any) -> Any:
        if device is None:
            return CrossKernels(bank, rows)
        return device_cross(bank, rows, device, self._value_type())  # type: ignore[attr-defined]

    def _precomputed_cross(self, task: Task, X: Any) -> DenseStack:
        stack = _cross_stack(X)
        if task.columns is not None and stack.n == self._fitted_stack_rows != task.n:
            stack = stack.columns(task.columns)
        dtype = self._value_type()  # type: ignore[attr-defined]
        stack = read_precomputed(stack, n=task.n, J=len(self.weights_), dtype=dtype)
        assert task.stack is not None
        check_names(stack, self.kernel_names_)  # type: ignore[attr-defined]
        return with_scale(stack, task.stack.scale)

    def _task_contributions(self, task: Task, cross: DenseStack | CrossKernels) -> Array:
        out = np.zeros((len(cross), len(self.weights_)))
        used = self.weights_ > 0  # kernels without weight need not be evaluated
        assert task.coef is not None
        out[:, used] = cross.select(used).products(task.coef).T * self.weights_[used]
        return out

    def _task_score(self, task: Task, cross: DenseStack | CrossKernels) -> Array:
        return self._of_projection(self._task_contributions(task, cross).sum(axis=1))

    def _of_projection(self, projection: Array, centre: float = 1.0) -> Array:
        return projection if self.score_type == "projection" else -np.abs(centre - projection)


def _cross_stack(X: Any) -> DenseStack:
    return X if isinstance(X, DenseStack) else DenseStack(np.asarray(X, dtype=float))

"""Tasks of a joint model that come and go after its fit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._typing import Array, Indices
from kernull.estimators._arrays import as_numpy, cuda_device_of
from kernull.estimators._atomic import rollback_on_error
from kernull.estimators._inputs import check_names, check_number, read_table, read_weights
from kernull.estimators._tasks import Task, joint_problem, own_stack, read_groups
from kernull.problems import ridge_solution
from kernull.stacks import KernelSet, fit_and_combine

__all__ = ["EnrolmentMixin"]


class EnrolmentMixin:
    """Adds enrolment to a fitted model of tasks that share ``weights_``."""

    bank_: KernelSet | None
    weights_: Array
    delta: float
    pooled: bool
    kernel_names_: Any
    _tasks: dict[Hashable, Task]
    _views: Mapping[str, Indices]
    _row_names: list[Hashable]
    _training_rows: dict[Hashable, Indices]
    _check_room: Any
    _finished: Any
    _kernel_options: Any
    _learn_tasks: Any
    _own_bank: Any
    _pairwise: Any
    _publish: Any
    _value_type: Any
    fit: Any
    predict: Any

    def enroll(self, X: Any, group: Hashable, sample_weight: Any = None) -> Self:
        """Add a task with the shared weights: one linear solve, no learning.

        Scaling and widths are those of its own rows, or with ``pooled`` those of the fit; delta is
        relative to the rows given here.

        Parameters
        ----------
        X : table of shape (n_new, d), or kernels of shape (J, n_new, n_new)
            Rows of the new task.
        group : hashable
            Its name; must be new.
        sample_weight : array of shape (n_new,), optional
            Trust in each row; for tables.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        name = read_groups([group], 1)[0]
        if name in self._tasks:
            raise ValueError(
                f"group: the model already has a task {name!r}; forget({name!r}) first, or choose "
                "another name."
            )
        device, X = cuda_device_of(X), as_numpy(X)
        task, kernel = self._new_task(name, X, as_numpy(sample_weight), device)
        if kernel is not None:
            coef, diagonal = ridge_solution(kernel, task.ridge, task.row_weight)
        else:
            problem = joint_problem([task], self._value_type(), device=device)
            ((coef, scaled),) = problem.solutions(self.weights_)
            diagonal = task.unscaled(scaled)
        self._publish({**self._tasks, name: self._finished(task, coef, diagonal)})
        return self

    def _new_task(
        self, name: Hashable, X: Any, sample_weight: Any, device: Any
    ) -> tuple[Task, Array | None]:
        """The task to be, and K_b of its rows unless that is formed on a device."""
        delta = check_number("delta", self.delta, "a positive number (relative to n)", 0.0)
        if self.bank_ is None:
            if sample_weight is not None:
                raise ValueError("sample_weight: not supported with precomputed kernels of tasks.")
            stack = own_stack(name, X, self._value_type())
            check_names(stack.validate(stack.n, len(self.weights_)), self.kernel_names_)
            task = Task(name, delta * stack.n, stack=stack)
            return task, None if device is not None else stack.combine(self.weights_)
        size = _num_samples(X)
        if size < 2:
            raise ValueError(f"X: got {size} row(s) for the task {name!r}; expected at least 2.")
        table = read_table(self, X, reset=False)
        weight = read_weights(sample_weight, X)
        if weight is not None:
            table, weight = table[weight > 0], weight[weight > 0]
        self._check_room([len(table)], 0)
        kernel = None
        if self.pooled:
            bank = self.bank_.with_rows(table)
            kernel = None if device is not None else bank.combine(self.weights_)
        elif device is not None:
            bank = self._own_bank(table, slice(None), weight)
        else:
            bank, kernel = fit_and_combine(
                table,
                self._views,
                self.weights_,
                self.bank_.kernel_names,
                sample_weight=weight,
                **self._kernel_options(),
            )
        task = Task(name, np.nan, bank=bank, row_weight=weight)
        return replace(task, ridge=delta * task.size), kernel

    def forget(self, group: Hashable) -> Self:
        """Remove a task; the shared weights stay."""
        check_is_fitted(self)
        name = read_groups([group], 1, self._tasks)[0]
        if len(self._tasks) == 1:
            raise ValueError(f"group: {name!r} is the only task; a model needs at least one.")
        self._publish({other: task for other, task in self._tasks.items() if other != name})
        return self

    def refit_weights(self) -> Self:
        """Learn the shared weights again on all present tasks, starting from the present ones.

        Scaling, widths and ridges stay.
        """
        check_is_fitted(self)
        if self.bank_ is not None:
            self._check_room([task.n for task in self._tasks.values()], self.bank_.J)
        with rollback_on_error(self):
            self._learn_tasks(self.weights_)
        return self

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and judge each training row by its leave-one-out score in its task."""
        self.fit(X, y, **fit_params)
        X = as_numpy(X)
        weight = None if self._pairwise else read_weights(fit_params.get("sample_weight"), X)
        out = np.empty(len(self._row_names), dtype=int)
        for name, rows in self._training_rows.items():
            task = self._tasks[name]
            assert task.left_out is not None
            kept = rows if weight is None else rows[weight[rows] > 0]
            out[kept] = np.where(task.left_out >= task.threshold, 1, -1)
            if len(kept) < len(rows):  # rows of weight zero are as good as new
                ignored = np.setdiff1d(rows, kept)
                table = read_table(self, X, reset=False)
                out[ignored] = self.predict(table[ignored], groups=name)
        return out

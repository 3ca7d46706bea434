"""One fold: all models of one width trained on its training rows and judged on the rest."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernull._quiet import silenced
from kernull._typing import Array, Indices, Mask
from kernull.calibration import Calibration, leave_one_out
from kernull.errors import ConstantViewWarning, MissingCapabilityError
from kernull.estimators import MultiKernelFisherNull
from kernull.estimators._inputs import read_precomputed, read_table
from kernull.estimators._weights import weight_ball
from kernull.paths import Path, shared_path
from kernull.problems import FisherProblem
from kernull.selection.criteria import Criterion, FoldView
from kernull.stacks import DenseStack
from kernull.views import resolve_views

__all__ = ["FoldTask", "Rows", "evaluate"]


@dataclass(frozen=True)
class Rows:
    """The rows given to fit: a table of numbers, or a stack of kernels between them."""

    table: Array | None
    stack: DenseStack | None
    views: Any
    """Views by column position, since folds are cut from a plain array."""

    @classmethod
    def read(cls, search: Any, X: Any) -> Rows:
        """Check what a search was given and note its features."""
        if search.kernels_are_given:
            stack = read_precomputed(X)
            search.n_features_in_ = stack.n
            return cls(None, stack, search.views)
        table = read_table(search, X, reset=True)
        names = getattr(search, "feature_names_in_", None)
        return cls(table, None, resolve_views(search.views, table.shape[1], names))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.table) if self.table is not None else self._kernels.n

    @property
    def _kernels(self) -> DenseStack:
        assert self.stack is not None
        return self.stack

    def training(self, rows: Indices) -> Any:
        """What an estimator is fitted on."""
        return self._kernels[np.ix_(rows, rows)] if self.table is None else self.table[rows]

    def against(self, rows: Indices, train: Indices) -> Any:
        """What an estimator fitted on ``train`` scores."""
        return self._kernels[np.ix_(rows, train)] if self.table is None else self.table[rows]

    def original(self, X: Any, mask: Mask) -> Any:
        """Some rows of what the user gave, with their column names."""
        rows = np.flatnonzero(mask)
        named = self.table is not None and hasattr(X, "columns")
        return _safe_indexing(X, rows) if named else self.training(rows)


@dataclass(frozen=True)
class FoldTask:
    """One width and one fold."""

    estimator: MultiKernelFisherNull
    train: Indices
    test: Indices
    labels: Indices
    seed: int
    ps: tuple[float, ...]
    deltas: tuple[float, ...]
    tol: float
    leave_one_out: bool


def evaluate(task: FoldTask, rows: Rows, criterion: Criterion) -> tuple[Array, Array]:
    """Statistics (P, D, k) of every model by the criterion, and their certified gaps (P, D)."""
    model = copy(task.estimator)
    # The final fit says which views are constant; folds would repeat it over and over.
    with silenced(ConstantViewWarning):
        stack = model._training_stack(rows.training(task.train), None, slice(None))
    if task.leave_one_out and not hasattr(stack, "combine"):
        raise MissingCapabilityError(
            f"cv='loo' needs factorisations, and {type(stack).__name__} never forms an n x n "
            "matrix; use folds (cv=5), or storage='dense'."
        )
    path = shared_path(
        stack,
        task.ps,
        task.deltas,
        tol=task.tol,
        ball=lambda p: weight_ball(p, model.r, model.kernel_groups, model.bank_, stack.J),
    )
    targets = task.test[task.labels[task.test] == 1]
    outliers = task.test[task.labels[task.test] == -1]

    def score(X: Any) -> Array:
        return model._of_projection(path.scores(model._cross(X)))

    def judge(index: Indices) -> Array:
        if not len(index):
            return np.empty((*path.shape, 0))
        return score(rows.against(index, task.train))

    def models() -> Iterator[tuple[tuple[int, int], MultiKernelFisherNull, Any, Indices]]:
        X = rows.against(task.test, task.train)
        for index in np.ndindex(path.shape):
            yield index, _fitted(model, stack, path, index), X, task.labels[task.test]

    view = FoldView(
        held_out=model._of_projection(_leave_one_out(stack, path))
        if task.leave_one_out
        else judge(targets),
        outliers=judge(outliers),
        training=model._of_projection(_training_projections(stack, path)),
        train_rows=None if rows.table is None else rows.table[task.train],
        score_rows=score,
        seed=task.seed,
        models=None if task.leave_one_out else models,
    )
    return criterion.of_fold(view), path.gaps


def _training_projections(stack: Any, path: Path) -> Array:
    # K_b a = 1 - ridge a: training rows need no pass.
    ridge = np.asarray(path.deltas)[None, :, None] * stack.n
    return np.asarray(1.0 - ridge * path.coef)


def _leave_one_out(stack: Any, path: Path) -> Array:
    out = np.empty_like(path.coef)
    for i, k in np.ndindex(path.shape):
        problem = FisherProblem(stack, path.deltas[k] * stack.n)
        out[i, k] = _left_out(problem, path.weights[i, k])[1]
    return out


def _left_out(problem: FisherProblem, weights: Array) -> tuple[Array, Array]:
    """Exact coefficients at these weights, and leave-one-out projections.

    Those of the path are as good as its certificate asks, and leaving rows out magnifies what
    they lack.
    """
    coef, inverse = problem.solution(weights)
    return coef, leave_one_out(problem, weights, coef, inverse_diagonal=inverse)


def _fitted(
    model: MultiKernelFisherNull, stack: Any, path: Path, index: tuple[int, int]
) -> MultiKernelFisherNull:
    """The estimator that a fit with this p and delta would have given."""
    i, k = index
    one = copy(model)
    one.set_params(p=path.ps[i], delta=path.deltas[k])
    one.weights_, one.gap_ = path.weights[i, k], float(path.gaps[i, k])
    problem = FisherProblem(stack, path.deltas[k] * stack.n)
    one.coef_, projections = _left_out(problem, one.weights_)
    scores = one._of_projection(projections)
    one.calibration_ = Calibration.of(scores, smooth=True)
    one.threshold_, one.false_alarm_rate_ = one.calibration_.threshold(one.false_alarm_rate)
    one.offset_ = one.threshold_
    return one

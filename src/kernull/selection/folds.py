"""One fold: all models of one width trained on its training rows and judged on the rest."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._quiet import silenced
from kernull._typing import Array, Indices
from kernull.errors import ConstantViewWarning, MissingCapabilityError
from kernull.estimators import MultiKernelFisherNull
from kernull.estimators.inputs import read_decision
from kernull.models import GivenRows, TableRows
from kernull.models.evidence import EvidenceMethod
from kernull.models.grid import Evidence, Sums
from kernull.paths import shared_path
from kernull.selection.criteria import Criterion, FoldView


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
    n_features: int


def evaluate(
    task: FoldTask, rows: TableRows | GivenRows, criterion: Criterion
) -> tuple[Array, Array]:
    """Statistics (P, D, k) of every model by the criterion, and their certified gaps (P, D)."""
    model = task.estimator
    settings, method = model.learning_settings(), read_decision(model)
    # The final fit says which views are constant; folds would repeat it over and over.
    with silenced(ConstantViewWarning):
        training = rows.take(task.train).training(None, slice(None), settings)
    kernels, stack = training.kernels, training.stack
    if task.leave_one_out and not hasattr(stack, "combine"):
        raise MissingCapabilityError(
            f"cv='loo' needs factorisations, and {type(stack).__name__} never forms an n x n "
            "matrix; use folds (cv=5), or storage='dense'."
        )

    def ball(p: float) -> Any:
        return replace(method, p=p).ball(kernels)

    path = shared_path(stack, task.ps, task.deltas, tol=task.tol, ball=ball)
    grid: Sums | Evidence = Sums(training, path, method.score_type)
    if isinstance(method, EvidenceMethod):
        grid = Evidence.of(training, path, method)
    targets = task.test[task.labels[task.test] == 1]
    outliers = task.test[task.labels[task.test] == -1]

    def score(X: Any) -> Array:
        return grid.of_rows(kernels.cross(X, settings.dtype))

    def judge(index: Indices) -> Array:
        if not len(index):
            return np.empty((*path.shape, 0))
        return score(rows.against(index, task.train))

    def models() -> Iterator[tuple[tuple[int, int], MultiKernelFisherNull, Any, Indices]]:
        X = rows.against(task.test, task.train)
        for p, d in np.ndindex(path.shape):
            fitted = copy(model).set_params(p=path.ps[p], delta=path.deltas[d])
            fitted.model_ = grid.model((p, d), model.false_alarm_rate)
            fitted.n_features_in_ = task.n_features
            yield (p, d), fitted, X, task.labels[task.test]

    view = FoldView(
        held_out=grid.left_out() if task.leave_one_out else judge(targets),
        outliers=judge(outliers),
        training=grid.of_training(),
        train_rows=rows.table[task.train] if isinstance(rows, TableRows) else None,
        score_rows=score,
        seed=task.seed,
        models=None if task.leave_one_out else models,
    )
    return criterion.of_fold(view), path.gaps

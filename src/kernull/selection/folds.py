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
from kernull.models import FisherRule, GivenRows, KernelModel, TableRows
from kernull.models.evidence import EvidenceMethod
from kernull.models.grid import at_grid_point, evidence_on_grid, left_out_at, scores_by_evidence
from kernull.models.kernels import Training
from kernull.models.rules import EvidenceRule
from kernull.paths import Path, shared_path
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
    grid: _Sums | _Evidence
    if isinstance(method, EvidenceMethod):
        grid = _Evidence(training, path, evidence_on_grid(training, path, method))
    else:
        grid = _Sums(training, path, method.score_type)
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


@dataclass(frozen=True)
class _Sums:
    """Scores (P, D, rows) of all models of a path by the paper's sum."""

    training: Training
    path: Path
    score_type: str

    def of_rows(self, cross: Any) -> Array:
        return self._to_score(self.path.scores(cross))

    def of_training(self) -> Array:
        # K_b a = 1 - ridge a: training rows need no pass.
        ridge = np.asarray(self.path.deltas)[None, :, None] * self.training.stack.n
        return self._to_score(np.asarray(1.0 - ridge * self.path.coef))

    def left_out(self) -> Array:
        out = np.empty_like(self.path.coef)
        for index in np.ndindex(self.path.shape):
            out[index] = left_out_at(self.training.stack, self.path, index)[2]
        return self._to_score(out)

    def model(self, index: tuple[int, int], rate: float) -> KernelModel:
        return at_grid_point(self.training, self.path, index, self.score_type, rate)

    def _to_score(self, projections: Array) -> Array:
        rule = FisherRule(np.ones(0), np.ones(0), self.score_type)
        return rule.projection_to_score(projections)


@dataclass(frozen=True)
class _Evidence:
    """The same by evidence, of which p and delta change nothing but the weights."""

    training: Training
    path: Path
    rule: EvidenceRule

    def of_rows(self, cross: Any) -> Array:
        evidence = self.rule.tails.evidence(self.rule.own_scores(cross))
        return scores_by_evidence(self.rule, evidence, self.path)

    def left_out(self) -> Array:
        return scores_by_evidence(self.rule, self.rule.tails.own, self.path)

    of_training = left_out  # a training row finds itself at distance zero

    def model(self, index: tuple[int, int], rate: float) -> KernelModel:
        return at_grid_point(self.training, self.path, index, "projection", rate, self.rule)

"""Models of a grid of (p, delta) that one shared subspace has solved.

Scores have shape (P, D, rows), those of every model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.calibration import LeftOut, leave_one_out
from kernull.models.evidence import EvidenceMethod, evidence_of, left_out_evidence, with_weights
from kernull.models.kernels import Training
from kernull.models.model import Certificate, KernelModel, RidgeSystem, calibrate
from kernull.models.rules import EvidenceRule, FisherRule
from kernull.paths import Path
from kernull.problems import FisherProblem


@dataclass(frozen=True, eq=False)
class Sums:
    """Models that decide by the paper's sum."""

    training: Training
    path: Path
    score_type: str

    def of_rows(self, cross: Any) -> Array:
        """Scores of new rows."""
        return self._to_score(self.path.scores(cross))

    def of_training(self) -> Array:
        """Scores of the training rows, which need no pass: K_b a = 1 - ridge a."""
        ridge = np.asarray(self.path.deltas)[None, :, None] * self.training.stack.n
        return self._to_score(np.asarray(1.0 - ridge * self.path.coef))

    def left_out(self) -> Array:
        """Scores of the training rows, each left out."""
        out = np.empty_like(self.path.coef)
        for index in np.ndindex(self.path.shape):
            out[index] = self.exact(index)[1]
        return self._to_score(out)

    def exact(self, index: tuple[int, int]) -> tuple[Array, Array]:
        """Exact coefficients and leave-one-out projections of one model.

        The path's own coefficients are as good as its certificate asks, and leaving rows out
        magnifies what they lack.
        """
        stack, weights = self.training.stack, self.path.weights[index]
        problem = FisherProblem(stack, self.path.deltas[index[1]] * stack.n)
        coef, inverse = problem.solution(weights)
        return coef, leave_one_out(problem, weights, coef, inverse_diagonal=inverse)

    def model(self, index: tuple[int, int], rate: float) -> KernelModel:
        """The model that a fit with this p and delta would have given."""
        coef, projections = self.exact(index)
        rule = FisherRule(self.path.weights[index], coef, self.score_type)
        left_out = LeftOut(rule.projection_to_score(projections))
        return _model(self, index, rule, left_out, rate)

    def _to_score(self, projections: Array) -> Array:
        rule = FisherRule(np.ones(0), np.ones(0), self.score_type)
        return rule.projection_to_score(projections)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The same by evidence, of which p and delta change nothing but the weights."""

    training: Training
    path: Path
    rule: EvidenceRule
    """Each kernel's own evidence, with weights of one."""

    @classmethod
    def of(cls, training: Training, path: Path, method: EvidenceMethod) -> Evidence:
        """Learn each kernel's own evidence."""
        unit = FisherRule(np.ones(training.stack.J), _kept_coef(training, path.coef[0, 0]))
        return cls(training, path, evidence_of(training, lambda: unit, None, method.max_rows))

    def of_rows(self, cross: Any) -> Array:
        """Scores of new rows."""
        return self._scores(self.rule.tails.evidence(self.rule.own_scores(cross)))

    def left_out(self) -> Array:
        """Scores of the training rows, each left out."""
        return self._scores(self.rule.tails.own)

    of_training = left_out  # a training row finds itself at distance zero

    def model(self, index: tuple[int, int], rate: float) -> KernelModel:
        """The model that a fit with this p and delta would have given."""
        coef = _kept_coef(self.training, self.path.coef[index])
        rule = with_weights(self.rule, FisherRule(self.path.weights[index], coef), None)
        left_out = left_out_evidence(rule, self.training.stack.n, None)
        return _model(self, index, rule, left_out, rate)

    def _scores(self, evidence: Array) -> Array:
        """From evidence of both scores of each kernel (m, 2J)."""
        rule, out = self.rule, np.empty((*self.path.shape, len(evidence)))
        for index in np.ndindex(self.path.shape):
            projection = replace(rule.projection, weights=self.path.weights[index])
            weighted = replace(rule, projection=projection)
            out[index] = -weighted.of_parts(weighted.parts_of(evidence))
        return out


def _model(
    grid: Sums | Evidence, index: tuple[int, int], rule: Any, left_out: LeftOut, rate: float
) -> KernelModel:
    path, n = grid.path, grid.training.stack.n
    p, delta = float(path.ps[index[0]]), float(path.deltas[index[1]])
    return KernelModel(
        grid.training.kernels,
        rule,
        **calibrate(left_out, rate),
        certificate=Certificate(float(path.gaps[index]), 0, "path"),
        system=RidgeSystem(p, delta, delta * n),
        n_given=n,
    )


def _kept_coef(training: Training, coef: Array) -> Array:
    """Coefficients of the rows that the model keeps: all, or the landmarks."""
    stack: Any = training.stack
    return np.asarray(stack.project(coef)) if hasattr(stack, "project") else coef

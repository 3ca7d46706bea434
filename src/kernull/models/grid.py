"""Models of a grid of (p, delta) that one shared subspace has solved."""

from __future__ import annotations

from dataclasses import replace
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


def evidence_on_grid(training: Training, path: Path, method: EvidenceMethod) -> EvidenceRule:
    """Each kernel's own evidence, with weights of one: it is the same for every p and delta."""
    unit = FisherRule(np.ones(training.stack.J), _kept_coef(training, path.coef[0, 0]))
    return evidence_of(training, lambda: unit, None, method.max_rows)


def _kept_coef(training: Training, coef: Array) -> Array:
    """Coefficients of the rows that the model keeps: all, or the landmarks."""
    stack: Any = training.stack
    return np.asarray(stack.project(coef)) if hasattr(stack, "project") else coef


def scores_by_evidence(rule: EvidenceRule, evidence: Array, path: Path) -> Array:
    """Scores (P, D, m) of every model from evidence of both scores of each kernel (m, 2J)."""
    out = np.empty((*path.shape, len(evidence)))
    for index in np.ndindex(path.shape):
        weighted = replace(rule, projection=replace(rule.projection, weights=path.weights[index]))
        out[index] = -weighted.of_parts(weighted.parts_of(evidence))
    return out


def left_out_at(stack: Any, path: Path, index: tuple[int, int]) -> tuple[float, Array, Array]:
    """Ridge, exact coefficients and leave-one-out projections of one model of a path.

    The path's own coefficients are as good as its certificate asks, and leaving rows out magnifies
    what they lack.
    """
    problem = FisherProblem(stack, path.deltas[index[1]] * stack.n)
    coef, inverse = problem.solution(path.weights[index])
    left_out = leave_one_out(problem, path.weights[index], coef, inverse_diagonal=inverse)
    return problem.ridge, coef, left_out


def at_grid_point(
    training: Training,
    path: Path,
    index: tuple[int, int],
    score_type: str,
    rate: float,
    evidence: EvidenceRule | None = None,
) -> KernelModel:
    """The model that a fit with this p and delta would have given.

    By the sum, or by ``evidence``, that of `evidence_on_grid`.
    """
    stack = training.stack
    p, delta = float(path.ps[index[0]]), float(path.deltas[index[1]])
    if evidence is None:
        ridge, coef, projections = left_out_at(stack, path, index)
        rule: Any = FisherRule(path.weights[index], coef, score_type)
        left_out = LeftOut(rule.projection_to_score(projections))
    else:
        ridge = delta * stack.n
        projection = FisherRule(path.weights[index], _kept_coef(training, path.coef[index]))
        rule = with_weights(evidence, projection, None)
        left_out = left_out_evidence(rule, stack.n, None)
    return KernelModel(
        training.kernels,
        rule,
        **calibrate(left_out, rate),
        certificate=Certificate(float(path.gaps[index]), 0, "path"),
        system=RidgeSystem(p, delta, ridge),
        n_given=stack.n,
    )

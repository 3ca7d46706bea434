"""Models of a grid of (p, delta) that one shared subspace has solved."""

from __future__ import annotations

from typing import Any

from kernull._typing import Array
from kernull.calibration import LeftOut, leave_one_out
from kernull.models.kernels import Training
from kernull.models.model import Certificate, KernelModel, RidgeSystem
from kernull.models.rules import FisherRule
from kernull.paths import Path
from kernull.problems import FisherProblem

__all__ = ["at_grid_point", "left_out_at"]


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
    training: Training, path: Path, index: tuple[int, int], score_type: str, rate: float
) -> KernelModel:
    """The model that a fit with this p and delta would have given."""
    ridge, coef, left_out = left_out_at(training.stack, path, index)
    rule = FisherRule(path.weights[index], coef, score_type)
    p, delta = path.ps[index[0]], path.deltas[index[1]]
    return KernelModel.of(
        training.kernels,
        rule,
        LeftOut(rule.projection_to_score(left_out)),
        rate,
        certificate=Certificate(float(path.gaps[index]), 0, "path"),
        system=RidgeSystem(float(p), float(delta), ridge),
        n_given=training.stack.n,
    )

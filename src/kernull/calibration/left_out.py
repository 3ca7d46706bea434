"""Leave-one-out of a solved problem, whichever way its kernels are kept."""

from __future__ import annotations

from typing import NamedTuple

from kernull._typing import Array, Indices
from kernull.calibration.loo import leave_one_out
from kernull.calibration.sampled import sampled_leave_one_out
from kernull.problems import FisherProblem
from kernull.solvers import Result

__all__ = ["LeftOut", "left_out"]


class LeftOut(NamedTuple):
    """What `left_out` returns."""

    coef: Array
    """Coefficients of the model."""
    projections: Array
    """Leave-one-out projection of each row, of shape (n,)."""
    rows: Indices | None
    """Rows to calibrate with, whose 1 - y is certified to a hundredth; None for all, exactly."""


def left_out(
    problem: FisherProblem,
    result: Result,
    row_weight: Array | None = None,
    *,
    rows: int | None = None,
) -> LeftOut:
    """Projections of the training rows by models that did not see them, at fixed weights.

    Where an n x n matrix can be had, one factorisation gives all of them in closed form, and the
    exact coefficients too, where the solver may have stopped at such as are good enough for its
    certificate. Where it cannot, they are certified to a hundredth on a sample of rows and
    estimated elsewhere.
    ``rows`` is the number of rows, from the first on, that are targets (all by default): those
    after them, of target value 0, take part in the model and are not calibrated with.
    """
    weights, coef = result.weights, result.coef
    if hasattr(problem.stack, "combine"):
        coef, inverse = problem.solution(weights)
        projections = leave_one_out(
            problem, weights, coef, row_weight=row_weight, inverse_diagonal=inverse
        )
        return LeftOut(coef, projections[:rows], None)
    sampled = sampled_leave_one_out(
        problem, weights, coef, result.basis, row_weight=row_weight, targets=rows
    )
    return LeftOut(coef, sampled.projections[:rows], sampled.index)

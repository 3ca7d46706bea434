"""What a solver returns, and the bookkeeping that all solvers share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernull._typing import Array
from kernull.balls import Ball
from kernull.problems import Evaluation, Problem

__all__ = ["Record", "Result", "Tracker", "not_higher", "starting_weights"]


class Record(NamedTuple):
    """One line of a solver's history."""

    value: float
    """F (or an upper bound of it) at this point."""
    gap: float
    """Certified relative gap at this point."""
    change: float
    """Euclidean change of the coefficients since the point before (nan at the first)."""


@dataclass(frozen=True)
class Result:
    """Weights with their certificate."""

    weights: Array
    coef: Array
    value: float
    gap: float
    n_iter: int
    converged: bool
    solver: str
    history: tuple[Record, ...] = field(repr=False)
    n_evaluations: int = 0

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return (
            f"Result({self.solver!r}, {state}: value={self.value:.6g}, gap={self.gap:.1e}, "
            f"n_iter={self.n_iter}, J={len(self.weights)})"
        )

    basis: Any = field(default=None, repr=False, compare=False)
    """The subspace that was built, for warm starts and leave-one-out (subspace solver only)."""


@dataclass
class Tracker:
    """Keeps the history and the best point seen.

    "Best" is the point with the lowest certified upper bound: for a solver that may climb, such
    as the paper's, this is what should be returned.
    """

    ball: Ball
    tol: float
    callback: Callable[[Record], None] | None = None
    history: list[Record] = field(default_factory=list)
    best: Evaluation | None = None
    _best_gap: float = np.inf
    _coef: Array | None = None

    def see(self, point: Evaluation, support: float | None = None) -> float:
        """Record a point; returns its certified relative gap."""
        gap = point.gap(self.ball.support(point.u) if support is None else support)
        change = np.nan if self._coef is None else float(np.linalg.norm(point.coef - self._coef))
        record = Record(float(point.value), float(gap), change)
        self.history.append(record)
        self._coef = point.coef
        self.keep(point, gap)
        if self.callback is not None:
            self.callback(record)
        return gap

    def keep(self, point: Evaluation, gap: float) -> None:
        """Let a point be the result if it is the best, without a step in the history."""
        if self.best is None or point.value <= self.best.value or gap <= self.tol:
            self.best, self._best_gap = point, gap

    def result(
        self,
        solver: str,
        n_evaluations: int = 0,
        *,
        warn: bool = True,
        advice: str = "Raise max_iter, or use solver='auto'.",
    ) -> Result:
        """The best point as a result; warns, with advice, when its gap is above the tolerance.

        A solver inside another one does not ``warn``: the outer certificate speaks for the whole.
        (Filters would not do: they belong to the process, and threads would undo each other's.)
        """
        assert self.best is not None
        converged = self._best_gap <= self.tol
        if warn and not converged:
            warnings.warn(
                f"solver={solver!r} stopped after {len(self.history)} iterations with a relative "
                f"duality gap of {self._best_gap:.2g}, above tol={self.tol:.2g}: the weights are "
                f"not optimal. {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return Result(
            weights=self.best.weights,
            coef=self.best.coef,
            value=float(self.best.value),
            gap=float(self._best_gap),
            n_iter=len(self.history),
            converged=converged,
            solver=solver,
            history=tuple(self.history),
            n_evaluations=n_evaluations,
        )


def starting_weights(ball: Ball, J: int, init: Array | None) -> Array:
    """The user's starting weights on the boundary of the ball, or the uniform ones."""
    if init is None:
        return ball.uniform(J)
    init = np.asarray(init, dtype=float)
    if init.shape != (J,) or not np.isfinite(init).all() or (init < 0).any() or not init.any():
        raise ValueError(
            f"init: got {init!r}; expected {J} finite non-negative weights that are not all zero."
        )
    return ball.normalise(init)


def not_higher(problem: Problem, trial: Evaluation, point: Evaluation) -> bool:
    """Whether F at the trial is no higher than at the point, as far as the problem can tell.

    A problem may say how exactly it knows F by an attribute ``precision``; a line search that
    took its rounding for a rise would never end.
    """
    precision: float = getattr(problem, "precision", 1e-14)
    return trial.value <= point.value + precision * abs(point.value)

"""The front door `solve`, what solvers share, and what a long fit shows while it runs.

A solver is the function ``solve(run)`` of the module of this package that has its name, imported
when it is first used.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from numbers import Integral
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernull import errors
from kernull._typing import Array
from kernull.errors import MissingCapabilityError
from kernull.mkl.balls import Ball
from kernull.mkl.problems import Evaluation, Problem

#: What ``"auto"`` may stand for; see `pick`.
AUTOMATIC = ("newton", "subspace", "cutting-plane", "frank-wolfe")


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
class Run:
    """What a solver is given, its history, and the best point it saw.

    "Best" is the point with the lowest certified upper bound, the result of a solver that may
    climb. (Algorithm 1 returns its last point, as printed, and keeps the best one beside it.)
    """

    problem: Any
    ball: Any
    weights: Array
    """Where it starts."""
    max_iter: int
    tol: float
    callback: Callable[[Record], None] | None = None
    inner: bool = False
    """Whether it is part of another run, whose certificate speaks for the whole.

    It does not warn then. (Filters would not do: they belong to the process, and threads would
    undo each other's.)
    """
    history: list[Record] = field(default_factory=list)
    best: Evaluation | None = None
    best_gap: float = np.inf
    _coef: Array | None = None

    def see(self, point: Evaluation, *, step: bool = True) -> float:
        """Let a point be the result if it is the best, and a step of the history; its gap."""
        gap = relative_gap(point, self.ball.support(point.u))
        if self.best is None or point.value <= self.best.value or gap <= self.tol:
            self.best, self.best_gap = point, gap
        if not step:
            return gap
        change = np.nan if self._coef is None else float(np.linalg.norm(point.coef - self._coef))
        record = Record(float(point.value), float(gap), change)
        self.history.append(record)
        self._coef = point.coef
        if self.callback is not None:
            self.callback(record)
        return gap

    def result(
        self, solver: str, *, advice: str | None = None, n_iter: int | None = None
    ) -> Result:
        """The best point as a result; warns, with advice, when its gap is above the tolerance.

        Each point seen is an iteration unless ``n_iter`` says otherwise.
        """
        assert self.best is not None
        converged = self.best_gap <= self.tol
        n_iter = len(self.history) if n_iter is None else n_iter
        if not self.inner and not converged:
            if advice is None:
                other = "" if solver in AUTOMATIC else ", or use solver='auto'"
                advice = f"Raise max_iter, tol or delta{other}."
            errors.warn(
                f"solver={solver!r} stopped after {n_iter} iterations with a relative "
                f"duality gap of {self.best_gap:.2g}, above tol={self.tol:.2g}: the weights are "
                f"not optimal. {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return Result(
            weights=self.best.weights,
            coef=self.best.coef,
            value=float(self.best.value),
            gap=float(self.best_gap),
            n_iter=n_iter,
            converged=converged,
            solver=solver,
            history=tuple(self.history),
        )


def relative_gap(point: Evaluation, support: float) -> float:
    """(U - L) / max(|U|, |L|) of a point's bounds U and L, clipped at zero against rounding.

    The certificate: in [0, 1] for problems whose value is positive. ``support`` is that of the
    ball at the point's u.
    """
    upper, lower = point.value, point.lower_bound(support)
    scale = max(abs(upper), abs(lower))
    return max(upper - lower, 0.0) / scale if scale > 0 else 0.0


def starting_weights(ball: Ball, J: int, init: Any) -> Array:
    """The user's starting weights on the boundary of the ball."""
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


@dataclass(frozen=True)
class Solver:
    """A solver: what it does, how long it may run by default, and what it needs."""

    summary: str
    max_iter: int
    ball_needs: tuple[str, ...] = ()
    problem_needs: tuple[str, ...] = ("evaluate",)

    def lacks(self, problem: Problem, ball: Ball) -> list[str]:
        """Names of what this solver needs and does not find."""
        needs: list[tuple[Any, str]] = [(ball, f"ball.{name}") for name in self.ball_needs]
        needs += [(problem, f"problem.{name}") for name in self.problem_needs]
        return [name for owner, name in needs if not hasattr(owner, name.partition(".")[2])]


#: Every solver by name.
SOLVERS: dict[str, Solver] = {
    "newton": Solver("second order; certified for every p", 100, ("minimise_model",)),
    "subspace": Solver(
        "one pass over the kernels per iteration; no n x n matrix", 500,
        problem_needs=("restrict", "products", "certify"),
    ),
    "paper": Solver("Algorithm 1 as printed, its last iterate; may cycle for ever", 200),
    "paper-cvx": Solver(
        "Algorithm 1 with its weight step solved by cvxpy (the paper's MK-FN-CVX)", 200,
        ("cvxpy_constraints",),
    ),
    "slim": Solver(
        "Newton with a line search that favours many support vectors", 50,
        ("minimise_model",), ("evaluate", "nu"),
    ),
    "cutting-plane": Solver(
        "Newton, then cutting planes where F has kinks (support vectors, p = 1)", 300,
        ("minimise_model",), ("evaluate", "plane"),
    ),
    "kloft": Solver("Kloft's closed-form update; monotone, slow near p = 1", 2000, ("kloft",)),
    "frank-wolfe": Solver("line search, away steps on polyhedral sets", 5000),
    "gradient": Solver(
        "gradient ascent on the dual (the paper's supplement V)", 50_000,
        problem_needs=("products", "certify"),
    ),
    "cvxpy": Solver(
        "the whole programme at once by a conic solver; small n only", 100,
        ("cvxpy_constraints",), ("stack", "certify"),
    ),
}  # fmt: skip

#: From this many rows on, passes over the kernels are cheaper than factorisations.
SUBSPACE_ROWS = 600


def pick(problem: Problem, ball: Ball) -> str:
    """The solver that ``"auto"`` stands for."""
    stack = getattr(problem, "stack", None)
    # Tasks side by side are factorised one by one: what counts is the largest.
    rows = 0 if stack is None else max(block.n for block in getattr(stack, "blocks", [stack]))
    long = stack is not None and (not hasattr(stack, "combine") or rows >= SUBSPACE_ROWS)
    if long and not SOLVERS["subspace"].lacks(problem, ball):
        return "subspace"
    if ball.polyhedral and not SOLVERS["cutting-plane"].lacks(problem, ball):
        return "cutting-plane"
    return "newton" if not SOLVERS["newton"].lacks(problem, ball) else "frank-wolfe"


def solve(
    problem: Problem,
    ball: Ball,
    solver: str = "auto",
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    init: Array | None = None,
    callback: Callable[[Record], None] | None = None,
    **options: Any,
) -> Result:
    """Minimise a problem over a ball: weights and coefficients with their certificate.

    Parameters
    ----------
    problem : Problem
        For example `FisherProblem`.
    ball : Ball
        For example `LpBall`.
    solver : str
        A name of `SOLVERS`, or ``"auto"``.
    tol : float
        Certified relative duality gap to stop at. ``"paper"`` stops at its own rule instead, a
        relative change of the coefficients of at most ``tol``.
    max_iter : int, optional
        Limit of iterations; by default each solver's own.
    init : array of shape (J,), optional
        Starting weights.
    callback : callable, optional
        Called with each `Record` as it is made.
    **options
        Options of the solver.
    """
    name = pick(problem, ball) if isinstance(solver, str) and solver == "auto" else solver
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(f"solver: got {solver!r}; expected 'auto' or one of {sorted(SOLVERS)}.")
    entry = SOLVERS[name]
    missing = entry.lacks(problem, ball)
    if missing:
        raise MissingCapabilityError(
            f"solver={name!r} needs {', '.join(missing)}, which {type(problem).__name__} on "
            f"{ball!r} does not offer; try solver='auto'."
        )
    limit = entry.max_iter if max_iter is None else max_iter
    if isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1:
        raise ValueError(f"max_iter: got {max_iter!r}; expected a whole number, at least 1.")
    module = import_module(f"{__package__}.{name.replace('-', '_')}")
    known, before = init is not None, problem.n_evaluations
    weights = starting_weights(ball, problem.J, init) if known else ball.uniform(problem.J)
    run = Run(problem, ball, weights, int(limit), tol, callback)
    result: Result = module.solve(run, **options)
    return replace(result, n_evaluations=problem.n_evaluations - before)


#: Every iteration of every fit is told to this logger, at level INFO.
LOGGER = logging.getLogger("kernull")


@contextmanager
def iterations_shown(
    verbose: Any, what: str, tol: float
) -> Iterator[Callable[[Record], None] | None]:
    """A callback for `solve` that tells how far the gap is, and None where nobody listens.

    With ``verbose=0`` only the logger ``kernull`` hears of it; with 1 there is a line on stderr,
    renewed with each iteration on a terminal, and a line per iteration elsewhere.
    """
    if not isinstance(verbose, bool | int) or verbose < 0:
        raise ValueError(f"verbose: got {verbose!r}; expected 0 (silent) or 1 (show progress).")
    if not verbose and not LOGGER.isEnabledFor(logging.INFO):
        yield None
        return
    count, start = 0, monotonic()

    def line(record: Record) -> str:
        nonlocal count
        count += 1
        return f"{what}: iteration {count}, gap {record.gap:.1e} (until {tol:.0e})"

    if not verbose:
        yield lambda record: LOGGER.info("%s", line(record))
        return
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    with console.status(f"{what}: first iteration") as status:

        def tell(record: Record) -> None:
            text = line(record)
            LOGGER.info("%s", text)
            if console.is_terminal:
                status.update(text)
            else:
                console.print(text)

        yield tell
    console.print(f"{what}: {count} iterations in {monotonic() - start:.1f} s")

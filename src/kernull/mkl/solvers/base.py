"""The front door `solve`, what solvers share, and what a long fit logs while it runs.

A solver is a function of a `Run`, named in `SOLVERS` with what it needs and imported when it is
first used, or an object of the user's with a method ``solve(run)``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from numbers import Integral
from typing import Annotated, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernull import errors
from kernull._fields import ANY, stored
from kernull._typing import Array
from kernull.errors import MissingCapabilityError
from kernull.mkl.balls import Ball
from kernull.mkl.problems import Evaluation, Problem
from kernull.operators import Budget

#: What ``"auto"`` may stand for; see `_pick`.
AUTOMATIC = ("newton", "subspace", "cutting-plane", "frank-wolfe")


@stored
class Record(NamedTuple):
    """One line of a solver's history."""

    value: Annotated[float, ANY]
    """F (or an upper bound of it) at this point."""
    gap: Annotated[float, ANY]
    """Certified relative gap at this point."""
    change: Annotated[float, ANY]
    """Euclidean change of the coefficients since the point before (nan at the first)."""


@dataclass(frozen=True)
class Result:
    """Weights with their certificate.

    Attributes
    ----------
    weights : array of shape (J,)
        Kernel weights b.
    coef : array of shape (n,)
        The inner solution a at b.
    value : float
        F(b), or an upper bound of it: what weights minimise.
    gap : float
        Certified relative duality gap, in [0, 1]: 0 is optimal.
    n_iter : int
        Iterations.
    converged : bool
        Whether the gap is at most the tolerance.
    solver : str
        Its name.
    history : tuple of Record
        Value, gap and change of the coefficients of every point.
    n_evaluations : int
        Evaluations of F from scratch.
    """

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
    """One run of a solver: problem, ball, start and limits; then its history and its best point.

    A solver evaluates points, hands each to `see`, stops once the gap that comes back is at most
    ``tol``, and returns `result`. "Best" is the point with the lowest certified upper bound.
    (Algorithm 1 returns its last point, as printed, and its result has the best one too.)
    """

    problem: Any
    ball: Any
    weights: Array
    """Where it starts."""
    max_iter: int
    tol: float
    callback: Callable[[Record], None] | None = None
    inner: bool = False
    """Whether it is part of another run, whose certificate covers the whole.

    It does not warn then. (Filters would not do: they belong to the process, and threads would
    undo each other's.)
    """
    budget: Budget = field(default_factory=Budget)
    """What it may keep in memory on top of the kernels."""
    history: list[Record] = field(default_factory=list)
    best: Evaluation | None = None
    best_gap: float = np.inf
    _coef: Array | None = None

    def see(self, point: Evaluation, *, step: bool = True) -> float:
        """Let a point be the result if it is the best, and a step of the history; its gap.

        Parameters
        ----------
        point : Evaluation
            Value and u at a point.
        step : bool
            Whether it is a step of the history.
        """
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

        Parameters
        ----------
        solver : str
            Name of the solver.
        advice : str, optional
            What to do, for the warning.
        n_iter : int, optional
            Number of iterations, where it is not that of the points seen.
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


def _starting_weights(ball: Ball, J: int, init: Any) -> Array:
    """The user's starting weights on the boundary of the ball."""
    init = np.asarray(init, dtype=float)
    if init.shape != (J,) or not np.isfinite(init).all() or (init < 0).any() or not init.any():
        raise ValueError(
            f"init: got {init!r}; expected {J} finite non-negative weights that are not all zero."
        )
    return ball.normalise(init)


@dataclass(frozen=True)
class Algorithm:
    """A solver by name: where it is, how long it may run, and what it needs."""

    home: str
    """Module of this package and its function of a `Run`."""
    max_iter: int
    ball_needs: tuple[str, ...] = ()
    problem_needs: tuple[str, ...] = ("evaluate",)

    def lacks(self, problem: Problem, ball: Ball) -> list[str]:
        """Names of what this solver needs and problem and ball, which may be a user's, lack."""
        needs: list[tuple[Any, str]] = [(ball, f"ball.{name}") for name in self.ball_needs]
        needs += [(problem, f"problem.{name}") for name in self.problem_needs]
        return [name for owner, name in needs if not hasattr(owner, name.partition(".")[2])]


#: Newton's method needs of a ball that it minimises quadratic models.
_MODELS = ("minimise_model", "exponent")

#: Every solver by name.
SOLVERS: dict[str, Algorithm] = {
    # Second order; certified for every p.
    "newton": Algorithm("newton.solve", 100, _MODELS),
    # One pass over the kernels per iteration; no n x n matrix.
    "subspace": Algorithm("subspace.solve", 500, problem_needs=("restrict", "products", "certify")),
    # Algorithm 1 as printed, its last iterate; may cycle for ever.
    "paper": Algorithm("paper.solve", 200),
    # Algorithm 1 with its weight step solved by cvxpy (the paper's MK-FN-CVX).
    "paper-cvx": Algorithm("paper.solve_by_cvxpy", 200, ("cvxpy_constraints",)),
    # Newton with a line search that favours many support vectors.
    "slim": Algorithm("slim.solve", 50, _MODELS, ("evaluate", "nu")),
    # Newton, then cutting planes where F has kinks (support vectors, p = 1).
    "cutting-plane": Algorithm("cutting_plane.solve", 300, _MODELS, ("evaluate", "plane")),
    # Kloft's closed-form update; monotone, slow near p = 1.
    "kloft": Algorithm("paper.solve_by_kloft", 2000, ("kloft",)),
    # Line search, away steps on polyhedral sets.
    "frank-wolfe": Algorithm("first_order.frank_wolfe", 5000),
    # Gradient ascent on the dual (the paper's supplement V).
    "gradient": Algorithm("first_order.dual_ascent", 50_000, problem_needs=("products", "certify")),
}


@stored
@dataclass(frozen=True)
class Solver:
    """A solver with its tolerance, to pass in place of a name.

    An object of another class serves as well: ``solve(run)`` is all that is asked of it, and its
    ``tol`` and ``max_iter`` are those of the call.

    Parameters
    ----------
    name : str, default="auto"
        A name of `SOLVERS`, or "auto".
    tol : float, default=1e-6
        Certified relative duality gap to stop at.
    max_iter : int, optional
        Limit of iterations; by default that of the solver.
    options : mapping, optional
        Options of that solver, by name.

    Examples
    --------
    >>> from kernull import FisherProblem, KernelStack, LpBall, solve
    >>> stack = KernelStack(np.stack([np.eye(4), np.full((4, 4), 0.5) + np.eye(4) / 2]))
    >>> result = solve(FisherProblem(stack, 0.1), LpBall(2), Solver("newton", tol=1e-10))
    >>> result.gap <= 1e-10
    True
    """

    name: str = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tol, limit = self.tol, self.max_iter
        if isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not tol > 0:
            raise ValueError(f"tol: got {tol!r}; expected a positive number.")
        whole = isinstance(limit, Integral) and not isinstance(limit, bool)
        if limit is not None and not (whole and limit >= 1):
            raise ValueError(f"max_iter: got {limit!r}; expected a whole number, at least 1.")

    def _prepared(self, problem: Problem, ball: Ball) -> tuple[Callable[..., Result], int]:
        """The function of a `Run` for a problem on a ball, and how long it may run by default."""
        is_auto = isinstance(self.name, str) and self.name == "auto"
        name = _pick(problem, ball) if is_auto else self.name
        if not isinstance(name, str) or name not in SOLVERS:
            raise ValueError(
                f"solver: got {self.name!r}; expected 'auto' or one of {sorted(SOLVERS)}, or an "
                "object with a method solve(run)."
            )
        missing = SOLVERS[name].lacks(problem, ball)
        if missing:
            raise MissingCapabilityError(
                f"solver={name!r} needs {', '.join(missing)}, which {type(problem).__name__} on "
                f"{ball!r} does not offer; try solver='auto'."
            )
        module, _, function = SOLVERS[name].home.partition(".")
        return getattr(import_module(f"{__package__}.{module}"), function), SOLVERS[name].max_iter


#: From this many rows on, passes over the kernels are cheaper than factorisations.
SUBSPACE_ROWS = 600
#: Iterations of a user's solver where none are asked for: those of "frank-wolfe".
USER_MAX_ITER = 5000


def _pick(problem: Problem, ball: Ball) -> str:
    """The solver that ``"auto"`` stands for."""
    stack = problem.stack
    long = stack is not None and (not stack.can_combine or problem.factor_rows >= SUBSPACE_ROWS)
    if long and not SOLVERS["subspace"].lacks(problem, ball):
        return "subspace"
    if ball.polyhedral and not SOLVERS["cutting-plane"].lacks(problem, ball):
        return "cutting-plane"
    return "newton" if not SOLVERS["newton"].lacks(problem, ball) else "frank-wolfe"


def solve(
    problem: Problem,
    ball: Ball,
    solver: Any = "auto",
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    init: Array | None = None,
    callback: Callable[[Record], None] | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> Result:
    """Minimise a problem over a ball: weights and coefficients with their certificate.

    Parameters
    ----------
    problem : Problem
        For example `FisherProblem`.
    ball : Ball
        For example `LpBall`.
    solver : str, Solver, or object with a method ``solve(run)``
        A name of `SOLVERS`, or ``"auto"``; a `Solver`, whose tolerance, limit and options then
        take the place of those here; or a solver of the user's, which gets a `Run` and returns
        what `Run.result` makes of it: the certificate is ours whoever found the weights.
    tol : float
        Certified relative duality gap to stop at. ``"paper"`` stops by its rule instead, a
        relative change of the coefficients of at most ``tol``.
    max_iter : int, optional
        Limit of iterations; by default that of the solver.
    init : array of shape (J,), optional
        Starting weights.
    callback : callable, optional
        Called with each `Record` as it is made.
    budget : Budget, optional
        What the solver may keep in memory, as `kernull.operators.plan` found it.
    **options
        Options of the solver.
    """
    of_user = callable(getattr(solver, "solve", None))
    chosen = solver
    if not isinstance(solver, Solver):
        chosen = Solver("auto" if of_user else solver, tol, max_iter, options)
    function, limit = (solver.solve, USER_MAX_ITER) if of_user else chosen._prepared(problem, ball)
    before = problem.n_evaluations
    weights = ball.uniform(problem.J) if init is None else _starting_weights(ball, problem.J, init)
    limit = int(chosen.max_iter or limit)
    run = Run(problem, ball, weights, limit, chosen.tol, callback, budget=budget or Budget())
    result: Result = function(run, **chosen.options)
    return replace(result, n_evaluations=problem.n_evaluations - before)


#: Logger of every iteration of every fit, at level INFO.
LOGGER = logging.getLogger("kernull")


def iterations_logged(what: str, solver: Any) -> Callable[[Record], None] | None:
    """A callback for `solve` that logs the gap of each iteration; None where nothing listens."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return None
    count, tol = 0, float(getattr(solver, "tol", np.nan))

    def log(record: Record) -> None:
        nonlocal count
        count += 1
        LOGGER.info("%s: iteration %d, gap %.1e (until %.0e)", what, count, record.gap, tol)

    return log

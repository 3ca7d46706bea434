"""The registry of solvers and the front door `solve`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any

from kernull._typing import Array
from kernull.balls import Ball
from kernull.errors import MissingCapabilityError
from kernull.problems import Problem
from kernull.solvers.base import Record, Result

__all__ = ["SOLVERS", "Solver", "solve"]


@dataclass(frozen=True)
class Solver:
    """A solver: where it lives, what it needs, and how long it may run by default."""

    module: str
    max_iter: int
    ball_needs: tuple[str, ...] = ()
    problem_needs: tuple[str, ...] = ()
    summary: str = ""

    def load(self) -> Callable[..., Result]:
        """Import the solver's module and return its ``solve``."""
        return import_module(self.module).solve  # type: ignore[no-any-return]

    def lacks(self, problem: Problem, ball: Ball) -> list[str]:
        """Names of what this solver needs and does not find."""
        missing = [f"ball.{name}" for name in self.ball_needs if not hasattr(ball, name)]
        return missing + [
            f"problem.{name}" for name in self.problem_needs if not hasattr(problem, name)
        ]


#: Every solver by name.
SOLVERS: dict[str, Solver] = {
    "newton": Solver(
        "kernull.solvers.newton",
        max_iter=100,
        ball_needs=("minimise_model",),
        problem_needs=("evaluate",),
        summary="second order; certified for every p",
    ),
    "subspace": Solver(
        "kernull.solvers.subspace",
        max_iter=500,
        problem_needs=("restrict", "products", "certify"),
        summary="one pass over the kernels an iteration; no n x n matrix",
    ),
    "paper": Solver(
        "kernull.solvers.paper",
        max_iter=200,
        problem_needs=("evaluate",),
        summary="Algorithm 1 as printed; may oscillate for ever",
    ),
    "paper-cvx": Solver(
        "kernull.solvers.paper_cvx",
        max_iter=200,
        ball_needs=("cvxpy_constraints",),
        problem_needs=("evaluate",),
        summary="Algorithm 1 with its weight step solved by cvxpy (the paper's MK-FN-CVX)",
    ),
    "slim": Solver(
        "kernull.solvers.slim",
        max_iter=50,
        ball_needs=("minimise_model",),
        problem_needs=("evaluate", "nu"),
        summary="Newton with a line search that favours many support vectors",
    ),
    "cutting-plane": Solver(
        "kernull.solvers.cutting_plane",
        max_iter=300,
        ball_needs=("minimise_model",),
        problem_needs=("evaluate", "plane"),
        summary="Newton, then cutting planes where F has kinks (support vectors, p = 1)",
    ),
    "kloft": Solver(
        "kernull.solvers.kloft",
        max_iter=2000,
        ball_needs=("kloft",),
        problem_needs=("evaluate",),
        summary="Kloft's closed-form update; monotone, slow near p = 1",
    ),
    "frank-wolfe": Solver(
        "kernull.solvers.frank_wolfe",
        max_iter=5000,
        problem_needs=("evaluate",),
        summary="line search, away steps on polyhedral sets",
    ),
    "gradient": Solver(
        "kernull.solvers.gradient",
        max_iter=50_000,
        problem_needs=("products", "certify"),
        summary="gradient ascent on the dual (the paper's supplement V)",
    ),
    "cvxpy": Solver(
        "kernull.solvers.convex",
        max_iter=100,
        ball_needs=("cvxpy_constraints",),
        problem_needs=("stack", "certify"),
        summary="the whole programme at once by a conic solver; small n only",
    ),
}

#: From this many rows on, passes over the kernels are cheaper than factorisations.
SUBSPACE_ROWS = 600


def pick(problem: Problem, ball: Ball) -> str:
    """The solver that ``"auto"`` stands for."""
    stack = getattr(problem, "stack", None)
    # Tasks side by side are factorised one by one: what counts is the largest.
    rows = 0 if stack is None else max(block.n for block in getattr(stack, "blocks", [stack]))
    long = stack is not None and (not hasattr(stack, "combine") or rows >= SUBSPACE_ROWS)
    long = long and not getattr(problem, "batched", False)  # factorises tasks together
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
    """Minimise a problem over a ball.

    Parameters
    ----------
    problem : Problem
        For example `FisherProblem`.
    ball : Ball
        For example `LpBall`.
    solver : str
        A name of `SOLVERS`, or ``"auto"``.
    tol : float
        Certified relative duality gap to stop at.
    max_iter : int, optional
        Limit of iterations; by default each solver's own.
    init : array of shape (J,), optional
        Starting weights.
    callback : callable, optional
        Called with each `Record` as it is made.
    **options
        Options of the solver.

    Returns
    -------
    Result
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
    limit = entry.max_iter if max_iter is None else _whole_number(max_iter)
    run = entry.load()
    return run(problem, ball, tol=tol, max_iter=limit, init=init, callback=callback, **options)


def _whole_number(max_iter: Any) -> int:
    if isinstance(max_iter, bool) or not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"max_iter: got {max_iter!r}; expected a whole number, at least 1.")
    return int(max_iter)

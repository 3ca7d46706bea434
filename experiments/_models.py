"""What several experiments share: splits, kernels at every width, models over a grid, choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernull import mkl
from kernull._typing import Array, Indices
from kernull.mkl import Path
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from kernull.paper.protocol import SplitRows as Split
from kernull.paper.protocol import aucs, split_rows
from kernull.views import KernelSet, join_views, resolve_views

__all__ = [
    "LAST",
    "LOWEST",
    "NEXT",
    "READINGS",
    "Member",
    "OneKernel",
    "Split",
    "aucs",
    "cycle_at_p_1",
    "kernels_by_width",
    "path_scores",
    "periods_of",
    "printed_at_p_1",
    "printed_scores",
    "split_rows",
]


def kernels_by_width(
    widths: Sequence[float],
    views: Mapping[str, Any],
    split: Split,
    dtype: Any = np.float64,
    scaling: str = "standard",
) -> Iterator[tuple[float, DenseStack, DenseStack]]:
    """Training kernels, and those of validation and test rows (in this order), for each width.

    One rbf kernel per view, scaled by the statistics of the training targets. The kernels of half a
    width are the fourth power of those of the whole: two products instead of an exponential.

    Yields
    ------
    (width, DenseStack of shape (J, n, n), DenseStack of shape (J, m, n)), widest first
    """
    table, columns = join_views(views)
    rows = table[np.concatenate([split.validation, split.test])]
    stack = cross = DenseStack(np.empty((0, 0, 0)))
    last = 0.0
    for width in sorted(widths, reverse=True):
        halvings = np.log2(last / width) if last else np.nan
        if halvings == np.round(halvings):
            for _ in range(2 * int(halvings)):
                np.square(stack.kernels, out=stack.kernels)
                np.square(cross.kernels, out=cross.kernels)
        else:
            bank = KernelSet.fit(
                table[split.train],
                resolve_views(columns, table.shape[1]),
                widths=width,
                scaling=scaling,
            )
            stack = DenseStack.of(bank, dtype)
            values = np.empty((bank.J, len(rows), bank.n), dtype=dtype)
            for j, K in bank.matrices(rows):
                values[j] = K
            cross = DenseStack(values)
        last = width
        yield width, stack, cross


def path_scores(
    stack: DenseStack,
    cross: DenseStack,
    ps: tuple[float, ...],
    deltas: tuple[float, ...],
    tol: float,
) -> tuple[Array, Path]:
    """Scores of the rows of ``cross`` by every model of a (p, delta) grid: (P, D, m)."""
    path = mkl.path(stack, ps, deltas, tol=tol)
    return path.scores(cross), path


def printed_scores(
    stack: DenseStack,
    cross: DenseStack,
    ps: Sequence[float],
    deltas: Sequence[float],
    updates: int | None = None,
) -> Array:
    """Scores by Algorithm 1 as printed, its last iterate, of a (p, delta) grid: (P, D, m).

    It ends where the relative change of a is below 1e-6, or after so many updates of the weights
    (None: the solver's own limit, 200).
    """
    out = np.empty((len(ps), len(deltas), len(cross)))
    for i, p in enumerate(ps):
        for k, delta in enumerate(deltas):
            result = solve(
                FisherProblem(stack, delta * stack.n), LpBall(p), "paper", max_iter=updates
            )
            out[i, k] = result.weights @ cross.products(result.coef)
    return out


#: Readings of Algorithm 1 at p = 1, where every iterate is a single kernel and most runs end in a
#: cycle of a few: its last iterate, as printed; the member of the cycle that follows it; and the
#: member of lowest objective.
LAST, NEXT = "p = 1 (Algorithm 1)", "p = 1 (Algorithm 1, one step more)"
LOWEST = "p = 1 (lowest objective of the cycle)"
READINGS = (LAST, NEXT, LOWEST)


class Member(NamedTuple):
    """A point of the cycle in which Algorithm 1 ends at p = 1."""

    kernel: int
    """The one that has all the weight."""
    coef: Array
    value: float


def cycle_at_p_1(problem: Any) -> list[Member]:
    """The members of the cycle in order, the returned one last; one where there is no cycle."""
    result: Any = solve(problem, LpBall(1.0), "paper")
    found = []
    for weights in result.iterates[-max(result.cycle, 1) :]:
        known = [x for x in (result, result.best) if np.array_equal(x.weights, weights)]
        point = known[0] if known else problem.evaluate(weights)
        found.append(Member(int(np.argmax(weights)), point.coef, float(point.value)))
    return found


class OneKernel(NamedTuple):
    """Scores by a reading of Algorithm 1 at p = 1."""

    scores: Array
    """For every delta: (D, m)."""
    kernels: Indices
    """The one that has all the weight: (D,)."""
    members: list[Array]
    """For every delta, the scores of all members of the cycle: (period, m)."""


def printed_at_p_1(
    stack: DenseStack, cross: DenseStack, deltas: Sequence[float]
) -> dict[str, OneKernel]:
    """Scores by each reading of Algorithm 1 at p = 1, for every delta."""
    cycles = [cycle_at_p_1(FisherProblem(stack, d * stack.n)) for d in deltas]
    scores = [
        np.array([cross.scale[m.kernel] * (cross.kernels[m.kernel] @ m.coef) for m in cycle])
        for cycle in cycles
    ]
    chosen = {
        LAST: [len(cycle) - 1 for cycle in cycles],
        NEXT: [0 for _ in cycles],
        LOWEST: [int(np.argmin([member.value for member in cycle])) for cycle in cycles],
    }
    return {
        name: OneKernel(
            np.array([s[k] for s, k in zip(scores, index, strict=True)]),
            np.array([cycle[k].kernel for cycle, k in zip(cycles, index, strict=True)]),
            scores,
        )
        for name, index in chosen.items()
    }


def periods_of(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """How many runs of Algorithm 1 end at one point, in a cycle of two, and in a longer one."""
    found = np.array([row["period"] for row in rows])
    return [int((found == 1).sum()), int((found == 2).sum()), int((found > 2).sum())]

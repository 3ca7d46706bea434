"""What several experiments share: splits, kernels at every width, models over a grid, choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kernull import mkl
from kernull._typing import Array
from kernull.balls import LpBall
from kernull.mkl import Path
from kernull.paper.protocol import Split, aucs, split_rows
from kernull.problems import FisherProblem
from kernull.solvers import solve
from kernull.stacks import DenseStack, KernelSet
from kernull.views import join_views, resolve_views

__all__ = ["Split", "aucs", "kernels_by_width", "one_hot_scores", "path_scores", "split_rows"]


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
            stack = bank.stack(dtype)
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


def one_hot_scores(
    stack: DenseStack, cross: DenseStack, deltas: tuple[float, ...], tol: float
) -> tuple[Array, Array]:
    """Scores by Algorithm 1 at p = 1 for every delta, (D, m), and the kernel it locks onto, (D,).

    Its first step from uniform weights already gives one kernel everything, and every later one
    does so again, so the iteration walks among J single kernels. Of those visited, the one with
    the lowest objective is taken.
    """
    ball = LpBall(1.0)
    scores, chosen = [], []
    for delta in deltas:
        problem = FisherProblem(stack, delta * stack.n)
        first = ball.oracle(problem.evaluate(ball.uniform(stack.J)).u)
        result = solve(problem, ball, "paper", tol=tol, init=first)
        j = int(np.argmax(result.weights))
        chosen.append(j)
        scores.append(cross.scale[j] * (cross.kernels[j] @ result.coef))
    return np.array(scores), np.array(chosen)

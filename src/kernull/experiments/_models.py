"""What several experiments share: splits, kernels at every width, models over a grid, choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kernull._typing import Array, Indices
from kernull.balls import LpBall
from kernull.paths import Path, shared_path
from kernull.problems import FisherProblem
from kernull.solvers import solve
from kernull.stacks import DenseStack, KernelBank
from kernull.views import join_views, resolve_views

__all__ = ["TOLERANCE", "Split", "kernels_at", "one_hot_scores", "path_scores", "split_rows"]

#: Certified relative gap of every model in the experiments.
TOLERANCE = 1e-6


class Split(NamedTuple):
    """Rows of a one-class experiment."""

    train: Indices
    """Targets to learn from."""
    validation: Indices
    test: Indices


def split_rows(labels: Any, rng: np.random.Generator) -> Split:
    """Targets 60/20/20; outliers half to validation, half to test.

    Parameters
    ----------
    labels : array of shape (n,)
        +1 for targets, -1 for outliers.
    rng : numpy.random.Generator

    Returns
    -------
    Split
    """
    targets = rng.permutation(np.flatnonzero(np.asarray(labels) == 1))
    outliers = rng.permutation(np.flatnonzero(np.asarray(labels) != 1))
    first = round(0.6 * len(targets))
    second = first + round(0.2 * len(targets))
    half = len(outliers) // 2
    return Split(
        targets[:first],
        np.concatenate([targets[first:second], outliers[:half]]),
        np.concatenate([targets[second:], outliers[half:]]),
    )


def kernels_at(
    width: float, views: Mapping[str, Any], split: Split
) -> tuple[DenseStack, DenseStack]:
    """Training kernels, and those of validation and test rows (in this order) against them.

    One rbf kernel a view, columns standardised on the training targets.
    """
    table, columns = join_views(views)
    bank = KernelBank.fit(
        table[split.train], resolve_views(columns, table.shape[1]), widths=width
    )
    rows = table[np.concatenate([split.validation, split.test])]
    cross = np.stack([K for _, K in bank.matrices(rows)])
    return bank.stack(), DenseStack(cross)


def path_scores(
    stack: DenseStack, cross: DenseStack, ps: tuple[float, ...], deltas: tuple[float, ...]
) -> tuple[Array, Path]:
    """Scores of the rows of ``cross`` by every model of a (p, delta) grid: (P, D, m)."""
    path = shared_path(stack, ps, deltas, tol=TOLERANCE)
    return path.scores(cross), path


def one_hot_scores(
    stack: DenseStack, cross: DenseStack, deltas: tuple[float, ...]
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
        result = solve(problem, ball, "paper", tol=TOLERANCE, init=first)
        j = int(np.argmax(result.weights))
        chosen.append(j)
        scores.append(cross.scale[j] * (cross.kernels[j] @ result.coef))
    return np.array(scores), np.array(chosen)

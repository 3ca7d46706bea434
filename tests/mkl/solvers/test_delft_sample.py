"""A sample of the Delft grid: one data set, one width, every p and delta of the paper.

The whole grid, 1,701 cells, is a command of its own (``make grid``).
"""

from __future__ import annotations

import numpy as np
import pytest

from experiments.datasets import load_delft
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from tests.oracles import fisher_gap

P = [1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 1e6]
DELTAS = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2]


@pytest.fixture(scope="module")
def kernels(delft_home):
    """One rbf kernel a feature of wine, width D/2, written out."""
    data = load_delft("wine", target=1, home=delft_home)
    X = data.X[data.y == 1]
    X = (X - X.mean(0)) / X.std(0)
    out = []
    for x in X.T:
        d = np.abs(x[:, None] - x[None])
        width = 0.5 * d.sum() / (len(x) * (len(x) - 1))
        out.append(np.exp(-((d / width) ** 2) / 2))
    return np.stack(out)


@pytest.mark.parametrize("p", P, ids=lambda p: f"p={p:.4g}")
@pytest.mark.parametrize("delta", DELTAS)
def test_the_default_solver_is_certified_in_few_factorisations(kernels, p, delta):
    ridge = delta * kernels.shape[1]
    problem = FisherProblem(DenseStack(kernels), ridge)
    result = solve(problem, LpBall(p))
    assert fisher_gap(kernels, result.weights, ridge, p) <= 1e-6
    assert result.n_evaluations <= (15 if p == 1 else 10)

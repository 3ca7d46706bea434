"""Fisher problems for the tests of solvers, and the solvers that serve them."""

from __future__ import annotations

import numpy as np

from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import SOLVERS
from kernull.operators import DenseStack

#: Solvers that serve the Fisher problem on any lp ball.
FOR_FISHER = sorted(
    name
    for name, solver in SOLVERS.items()
    if not solver.lacks(FisherProblem(DenseStack(np.eye(2)[None]), 1.0), LpBall(2))
)


def problem_of(kernels, ridge):
    return FisherProblem(DenseStack(kernels), ridge)

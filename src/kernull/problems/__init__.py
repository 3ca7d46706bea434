"""Problems: given weights b, the value F, the gradient -u, the curvature, the coefficients a."""

from kernull.problems.base import Evaluation, Problem, relative_gap
from kernull.problems.fisher import FisherProblem

__all__ = ["Evaluation", "FisherProblem", "Problem", "relative_gap"]

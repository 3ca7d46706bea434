"""Problems: given weights b, the value F, the gradient -u, the curvature, the coefficients a."""

from kernull.problems.base import Evaluation, Problem, relative_gap
from kernull.problems.fisher import FisherProblem
from kernull.problems.ocsvm import OneClassSVMProblem
from kernull.problems.svdd import SVDDProblem

__all__ = [
    "Evaluation",
    "FisherProblem",
    "OneClassSVMProblem",
    "Problem",
    "SVDDProblem",
    "relative_gap",
]

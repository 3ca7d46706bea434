"""Problems: given weights b, the value F, the gradient -u, the curvature, the coefficients a."""

from kernull.problems.base import Evaluation, Problem
from kernull.problems.fisher import FisherProblem
from kernull.problems.joint import JointFisherProblem
from kernull.problems.machines import OneClassSVMProblem, SVDDProblem, check_nu

__all__ = [
    "Evaluation", "FisherProblem", "JointFisherProblem", "OneClassSVMProblem", "Problem",
    "SVDDProblem", "check_nu",
]  # fmt: skip

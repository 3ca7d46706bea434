"""Problems: given weights b, the value F, the gradient -u, the curvature, the coefficients a."""

from kernull.mkl.problems.base import Evaluation, Problem
from kernull.mkl.problems.fisher import FisherProblem
from kernull.mkl.problems.joint import JointFisherProblem
from kernull.mkl.problems.machines import OneClassSVMProblem, SVDDProblem, check_nu

__all__ = [
    "Evaluation", "FisherProblem", "JointFisherProblem", "OneClassSVMProblem", "Problem",
    "SVDDProblem", "check_nu",
]  # fmt: skip

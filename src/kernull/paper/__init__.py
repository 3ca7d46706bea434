"""The system of the paper, arXiv:2008.08642, by its names; a map is docs/explanations/paper.md.

Only `kernull.files` imports it, for files of its models.

- `kernull.paper.algorithms`: Algorithms 1 and 2 as printed, and what the paper compares them
  with: gradient ascent (lp MK-FN-Grad), the update of Kloft et al., lp MK-FN-CVX.
- `kernull.paper.fused`: FN, GP and KPCA on one kernel, the average or the product of several.
- `kernull.paper.machines`: MK-SVDD and MK-OCSVM, and their slim variants, which are ours.
- `kernull.paper.methods`: every method by its name in the paper's tables.
- `kernull.paper.protocol`: 60/20/20, the grid and the choice over it, the two scores of a row.
- `kernull.paper.metrics`: error rates of presentation attack detection, and the equal error rate.
"""

from kernull.paper.algorithms import (
    PrintedResult,
    Result,
    algorithm1,
    algorithm2,
    cvx,
    gradient,
    kloft,
)
from kernull.paper.fused import FisherNull, GaussianProcessOneClass, KernelPCANovelty
from kernull.paper.machines import MultiKernelOneClassSVM, MultiKernelSVDD
from kernull.paper.methods import METHODS, method
from kernull.paper.protocol import Choice, aucs, choose, novelty_score, split_rows

__all__ = [
    "METHODS", "Choice", "FisherNull", "GaussianProcessOneClass", "KernelPCANovelty",
    "MultiKernelOneClassSVM", "MultiKernelSVDD", "PrintedResult", "Result", "algorithm1",
    "algorithm2", "aucs", "choose", "cvx", "gradient", "kloft", "method", "novelty_score",
    "split_rows",
]  # fmt: skip

"""The paper's system by its names: what is compared in arXiv:2008.08642, and how it is judged.

Nothing else in the package needs it; only `kernull.io` knows it, for files of its models.
"""

from kernull.paper.fused import FisherNull, GaussianProcessOneClass, KernelPCANovelty
from kernull.paper.machines import MultiKernelOneClassSVM, MultiKernelSVDD
from kernull.paper.methods import METHODS, method
from kernull.paper.protocol import Choice, aucs, choose, novelty_score, split_rows

__all__ = [
    "METHODS", "Choice", "FisherNull", "GaussianProcessOneClass", "KernelPCANovelty",
    "MultiKernelOneClassSVM", "MultiKernelSVDD", "aucs", "choose", "method", "novelty_score",
    "split_rows",
]  # fmt: skip

"""Estimators with scikit-learn's interface."""

from kernull.estimators.calibrated import Calibrated
from kernull.estimators.fisher import MultiKernelFisherNull
from kernull.estimators.fused import FisherNull, GaussianProcessOneClass, KernelPCANovelty
from kernull.estimators.joint import JointMultiKernelFisherNull
from kernull.estimators.svm import MultiKernelOneClassSVM, MultiKernelSVDD

__all__ = [
    "Calibrated", "FisherNull", "GaussianProcessOneClass", "JointMultiKernelFisherNull",
    "KernelPCANovelty", "MultiKernelFisherNull", "MultiKernelOneClassSVM", "MultiKernelSVDD",
]  # fmt: skip

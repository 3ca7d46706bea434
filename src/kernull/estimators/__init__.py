"""Estimators with scikit-learn's interface."""

from kernull.estimators.calibrated import Calibrated
from kernull.estimators.fisher import MultiKernelFisherNull
from kernull.estimators.joint import JointMultiKernelFisherNull

__all__ = ["Calibrated", "JointMultiKernelFisherNull", "MultiKernelFisherNull"]

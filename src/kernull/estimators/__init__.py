"""Estimators with scikit-learn's interface."""

from kernull.estimators.fisher import MultiKernelFisherNull

__all__ = ["MultiKernelFisherNull"]

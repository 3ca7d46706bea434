"""Fitted models as values, and the functions that make one from rows or from another model."""

from kernull.detector.sum import FisherRule
from kernull.models.explanation import Explanation
from kernull.models.kernels import (
    GivenKernels,
    GivenRows,
    ModelKernels,
    Settings,
    TableKernels,
    TableRows,
)
from kernull.models.learning import learn
from kernull.models.model import Certificate, Fitted, KernelModel, RidgeSystem, view_names

__all__ = [
    "Certificate",
    "Explanation",
    "FisherRule",
    "Fitted",
    "GivenKernels",
    "GivenRows",
    "KernelModel",
    "ModelKernels",
    "RidgeSystem",
    "Settings",
    "TableKernels",
    "TableRows",
    "learn",
    "view_names",
]

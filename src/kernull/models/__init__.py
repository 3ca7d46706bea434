"""Fitted models as values, and the functions that make one from rows or from another model."""

from kernull.models.explanation import Explanation
from kernull.models.kernels import GivenKernels, ModelKernels, TableKernels
from kernull.models.learning import learn
from kernull.models.model import Certificate, Fitted, Growth, KernelModel, RidgeSystem, view_names
from kernull.models.rules import FisherRule
from kernull.models.training import GivenRows, Settings, TableRows

__all__ = [
    "Certificate",
    "Explanation",
    "FisherRule",
    "Fitted",
    "GivenKernels",
    "GivenRows",
    "Growth",
    "KernelModel",
    "ModelKernels",
    "RidgeSystem",
    "Settings",
    "TableKernels",
    "TableRows",
    "learn",
    "view_names",
]

"""Errors and warnings that kernull raises, all in one place."""

from __future__ import annotations

__all__ = [
    "ApproximationWarning",
    "CalibrationWarning",
    "ClusterError",
    "ConstantViewWarning",
    "EdgeOfGridWarning",
    "InvalidKernelError",
    "MemoryLimitError",
    "MissingCapabilityError",
    "MissingDependencyError",
    "ModelFileError",
    "TooFewRowsWarning",
    "ZeroProjectionWarning",
]


class InvalidKernelError(ValueError):
    """A kernel stack is not a stack of symmetric positive semidefinite matrices."""


class MemoryLimitError(MemoryError):
    """A dense allocation was planned that does not fit the memory limit."""


class MissingCapabilityError(TypeError):
    """A solver was asked to run on a problem or a ball that lacks what it needs."""


class MissingDependencyError(ImportError):
    """An optional dependency (an extra) is needed and not installed."""


class ModelFileError(ValueError):
    """A model file is damaged, not of kernull's format, too new, or does not make sense."""


class ClusterError(RuntimeError):
    """A cluster has no workers, or lost them all for good."""


class ApproximationWarning(UserWarning):
    """Kernels were approximated because exact ones would cost too much."""


class CalibrationWarning(UserWarning):
    """Calibration rows were not left out of all that was fitted: thresholds are too strict."""


class ConstantViewWarning(UserWarning):
    """A view is constant on the training rows and was dropped."""


class EdgeOfGridWarning(UserWarning):
    """The best model of a search lies on the edge of its grid."""


class TooFewRowsWarning(UserWarning):
    """There are too few rows: for the false-alarm rate asked for, or to begin a model with."""


class ZeroProjectionWarning(UserWarning):
    """No kernel tells the training rows from the origin: every projection is zero."""

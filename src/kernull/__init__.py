"""kernull: learn what normal looks like from several views of the same things.

Public names are loaded on first use, so that ``import kernull`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kernull._version import __version__

_PUBLIC = {
    "fit_stream": "kernull.estimators.streaming",
    "JointMultiKernelFisherNull": "kernull.estimators",
    "MultiKernelFisherNull": "kernull.estimators",
    "MultiKernelFisherNullCV": "kernull.selection",
    "FisherNull": "kernull.estimators",
    "GaussianProcessOneClass": "kernull.estimators",
    "KernelPCANovelty": "kernull.estimators",
    "MultiKernelOneClassSVM": "kernull.estimators",
    "MultiKernelSVDD": "kernull.estimators",
    "PAPER": "kernull.estimators.parameters",
    "Explanation": "kernull.inspection",
    "explain_columns": "kernull.inspection",
    "load": "kernull.io",
    "save": "kernull.io",
    "to_onnx": "kernull.io",
    "to_monitor": "kernull.calibration",
    "to_nonconform": "kernull.calibration",
    "BoundaryDisplay": "kernull.inspection",
    "ContributionsDisplay": "kernull.inspection",
    "ConvergenceDisplay": "kernull.inspection",
    "ScoresDisplay": "kernull.inspection",
    "WeightsDisplay": "kernull.inspection",
    "BackboneFeatures": "kernull.views.images",
    "ImageViews": "kernull.views.images",
    "load_embeddings": "kernull.views.images",
    "TableViews": "kernull.tables",
    "load_views": "kernull.tables",
    "read_table": "kernull.tables",
    "KernelStack": "kernull.stacks",
    "join_views": "kernull.views",
    "solve": "kernull.solvers",
    "FisherProblem": "kernull.problems",
    "JointFisherProblem": "kernull.problems",
    "OneClassSVMProblem": "kernull.problems",
    "SVDDProblem": "kernull.problems",
    "LpBall": "kernull.balls",
    "MixedBall": "kernull.balls",
    "Simplex": "kernull.balls",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'kernull' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

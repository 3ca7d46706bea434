"""kernull: learn what normal looks like from several views of the same things.

Public names are loaded on first use, so that ``import kernull`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kernull import _removed
from kernull._version import __version__

_HOMES = {
    "balls": ("LpBall", "MixedBall", "Simplex"),
    "calibration": ("Cross", "Split"),
    "detector": ("Evidence", "Nearest", "Projection", "Sum"),
    "estimators": ("Calibrated", "JointMultiKernelFisherNull", "MultiKernelFisherNull"),
    "estimators.parameters": ("PAPER",),
    "inspection": (
        "ConvergenceDisplay", "Explanation", "ScoresDisplay", "WeightsDisplay", "explain_columns",
    ),
    "io": ("load", "save"),
    "problems": ("FisherProblem", "JointFisherProblem", "OneClassSVMProblem", "SVDDProblem"),
    "solvers": ("solve",),
    "stacks": ("KernelStack",),
    "tables": ("TableViews", "load_views", "read_table"),
    "views": ("join_views",),
}  # fmt: skip
#: Modules that hold public names of their own.
_MODULES = ("datasets", "errors", "mkl", "paper", "splitters", *_HOMES)
_PUBLIC = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"kernull.{name}")
    if name in _removed.NAMES:
        raise AttributeError(_removed.said_of(f"kernull.{name}"))
    if name in _removed.TO_PAPER:
        raise AttributeError(
            f"kernull.{name} is now kernull.paper.{name}: from kernull.paper import {name}"
        )
    if name not in _PUBLIC:
        raise AttributeError(f"module 'kernull' has no attribute {name!r}")
    value = getattr(import_module(f"kernull.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""kernull: learn what normal looks like from several views of the same things.

Public names are loaded on first use, so that ``import kernull`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kernull import _removed
from kernull._version import __version__

_HOMES = {
    "detector": ("Evidence", "Nearest", "Projection", "Sum"),
    "detector.calibration": ("Cross", "Split"),
    "estimators": ("Calibrated", "JointMultiKernelFisherNull", "MultiKernelFisherNull"),
    "estimators.fisher": ("PAPER",),
    "explain": (
        "ConvergenceDisplay", "Explanation", "ScoresDisplay", "WeightsDisplay",
    ),
    "files": ("load", "load_views", "save"),
    "judge": ("Judge",),
    "mkl.balls": ("LpBall", "MixedBall", "Simplex"),
    "mkl.problems": ("FisherProblem", "JointFisherProblem", "OneClassSVMProblem", "SVDDProblem"),
    "mkl.solvers": ("Solver", "solve"),
    "operators": ("KernelStack", "Storage"),
    "tables": ("TableViews", "read_table"),
    "views": ("join_views",),
}  # fmt: skip
#: Modules that hold more public names.
_MODULES = (
    "datasets", "detector", "errors", "estimators", "explain", "files", "kernels", "mkl",
    "operators", "paper", "splitters", "tables", "views",
)  # fmt: skip
_PUBLIC = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"kernull.{name}")
    if name in _removed.NAMES:
        raise AttributeError(_removed.message(f"kernull.{name}"))
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

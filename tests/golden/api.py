"""Public names, signatures and learned attributes, as a tree that can be compared."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import kernull
from kernull import paper
from tests.golden.cases import FISHER, JOINT, TRAIN

ESTIMATORS = (
    "MultiKernelFisherNull",
    "JointMultiKernelFisherNull",
    "paper.FisherNull",
    "paper.GaussianProcessOneClass",
    "paper.KernelPCANovelty",
    "paper.MultiKernelSVDD",
    "paper.MultiKernelOneClassSVM",
)


def parameters(function: Any) -> dict[str, str]:
    """Name of each parameter, and its default as text."""
    return {
        name: "required" if p.default is inspect.Parameter.empty else repr(p.default)
        for name, p in inspect.signature(function).parameters.items()
        if name != "self"
    }


def methods(cls: Any) -> dict[str, Any]:
    """Public methods with their parameters, and properties."""
    out: dict[str, Any] = {}
    for name in dir(cls):
        if name.startswith("_"):
            continue
        value = getattr(cls, name)
        if callable(value):
            out[name] = parameters(value)
    return out


def learned(model: Any) -> list[str]:
    """Learned attributes of a fitted estimator."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    return sorted(name for name in names if hasattr(model, name))


def tree() -> dict[str, Any]:
    """The whole public interface."""
    out: dict[str, Any] = {}
    named = {name: getattr(kernull, name) for name in kernull.__all__}
    named |= {f"paper.{name}": getattr(paper, name) for name in paper.__all__}
    for name, value in named.items():
        if inspect.isclass(value):
            out[name] = {"parameters": parameters(value.__init__), "methods": methods(value)}
        elif callable(value):
            out[name] = {"parameters": parameters(value)}
        else:
            out[name] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ESTIMATORS:
            cls = named[name]
            given = {k: v for k, v in (FISHER | JOINT).items() if k in out[name]["parameters"]}
            given.pop("solver", None)  # of other names elsewhere
            model = cls(**given).fit(TRAIN)
            out[name]["learned"] = learned(model)
        model = kernull.Calibrated(paper.FisherNull()).fit(TRAIN)
        out["Calibrated"]["learned"] = learned(model)
    return out

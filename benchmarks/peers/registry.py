"""The registry: the paper's names, and what each stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.peers.detectors import AveragedOneClassSVM, TableDetector, pyod_detector
from kernull import estimators, paper
from kernull.mkl import PAPER_DELTAS, PAPER_PS, PAPER_WIDTHS
from kernull.mkl.solvers import Solver

#: The paper's grids of norms, of ridges relative to n, and of widths.
PS, DELTAS, WIDTHS = PAPER_PS, PAPER_DELTAS, PAPER_WIDTHS
FISHER_GRID: dict[str, tuple[Any, ...]] = {"widths": WIDTHS, "p": PS, "delta": DELTAS}
#: Grid of the SVM methods' nu; the paper names none.
NUS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
#: Ways to make one kernel of several.
FUSIONS = ("average", "product")
#: Grid of the strength of the slim variants.
SLIM_LAMBDAS = (0.0, 0.1, 0.3, 1.0, 3.0)

#: The paper's methods as it has them, whatever the estimator does by default.
KERNELS: dict[str, Any] = {"scaling": "standard", "widths": 0.5}
PLAIN: dict[str, Any] = {**KERNELS, "p": 2.0, "delta": 1e-2}
PLAIN |= {"normalize": "none", "decision": "sum"}

#: Settings of kernels that mean nothing to a detector that takes a table.
KERNEL_SETTINGS = ("kernels", "views", "widths", "storage")


@dataclass(frozen=True)
class Method:
    """A method by its name: how to make it, and over what to tune it.

    Parameters
    ----------
    name : str
        The paper's name.
    build : callable
        The class, or a function, that makes the estimator.
    grid : mapping of parameter -> values
        What to choose from, on a validation set or otherwise.
    fixed : mapping of parameter -> value
        What makes it this method; may be overridden all the same.
    kind : {"fused", "weights", "table", "tasks"}
        One fused kernel; learned kernel weights; a table instead of kernels; several tasks.
    """

    name: str
    build: Callable[..., Any] = field(repr=False)
    grid: Mapping[str, tuple[Any, ...]] = field(repr=False)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "weights"

    def make(self, **settings: Any) -> Any:
        """A new estimator.

        Parameters
        ----------
        **settings
            Parameters of the estimator, nested ones (``detector__n_neighbors``) included. Those
            about kernels (``kernels, views, widths, storage``) are left aside by detectors that
            take a table, so that one set of settings serves all methods.
        """
        if self.kind == "table":
            if isinstance(settings.get("kernels"), str) and settings["kernels"] == "precomputed":
                raise ValueError(
                    f"{self.name!r} works on a table of features, not on kernels: "
                    "kernels='precomputed' is not for it."
                )
            settings = {k: v for k, v in settings.items() if k not in KERNEL_SETTINGS}
        estimator = self.build(**self.fixed)
        return estimator.set_params(**settings)


def _paper(name: str, kind: str, **grid: tuple[Any, ...]) -> Method:
    """A method that the paper compares with, and its grid."""
    build, fixed = paper.METHODS[name]
    return Method(name, build, {"widths": WIDTHS, **grid}, fixed, kind)


def _fused(name: str, **grid: tuple[Any, ...]) -> list[Method]:
    """A method of one kernel, by both ways to fuse several."""
    return [_paper(f"{name}-{how.capitalize()}", "fused", **grid) for how in FUSIONS]


def _machine(name: str) -> list[Method]:
    """A method of support vectors, and its slim variant."""
    slim = {"nu": NUS, "slim_lambda": SLIM_LAMBDAS}
    return [_paper(f"MK-{name}", "weights", nu=NUS), _paper(f"Slim-MK-{name}", "weights", **slim)]


def _fisher(name: str, norms: tuple[float, ...] = PS, **fixed: Any) -> Method:
    return Method(
        name, estimators.MultiKernelFisherNull, {**FISHER_GRID, "p": norms}, {**PLAIN, **fixed}
    )


def _detector(detector: Any, fixed: dict[str, Any], **grid: tuple[Any, ...]) -> Method:
    name = type(detector).__name__
    return Method(name, lambda **p: TableDetector(clone(detector), **p), grid, fixed, "table")


_ALL = [
    *_fused("FN", delta=(0.0, *DELTAS)),
    *_fused("GP", noise=(1e-4, 1e-3, 1e-2, 1e-1, 1.0)),
    *_fused("KPCA", components=(0.5, 0.7, 0.9, 0.95, 0.99)),
    *_machine("SVDD"),
    *_machine("OCSVM"),
    _fisher("lp MK-FN"),
    _fisher("lp MK-FN (Algorithm 1)", solver="paper"),
    # The dual of the gradient method is not smooth at p = 1.
    _fisher("lp MK-FN-Grad", PS[1:], solver=Solver("gradient", 1e-4)),
    _fisher("lp MK-FN-CVX", solver=Solver("paper-cvx", 1e-4)),
    Method("OneClassSVM", AveragedOneClassSVM, {"widths": WIDTHS, "nu": NUS}, kind="fused"),
    _detector(IsolationForest(), {"random_state": 0}, detector__n_estimators=(100, 300)),
    _detector(LocalOutlierFactor(novelty=True), {}, detector__n_neighbors=(5, 10, 20, 35)),
    Method("Joint lp MK-FN", estimators.JointMultiKernelFisherNull, FISHER_GRID, PLAIN, "tasks"),
]
_METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ALL})


def method_names() -> tuple[str, ...]:
    """Names of all methods; any PyOD detector goes by ``"PyOD NAME"`` besides.

    Examples
    --------
    >>> "FN-Average" in method_names(), "Slim-MK-OCSVM" in method_names()
    (True, True)
    """
    return tuple(_METHODS)


def get_method(name: str) -> Method:
    """A method by its name.

    Parameters
    ----------
    name : str
        One of `method_names`, or ``"PyOD NAME"`` for a detector of PyOD, for example
        ``"PyOD ECOD"``.

    Examples
    --------
    >>> get_method("MK-OCSVM").make(nu=0.2)
    MultiKernelOneClassSVM(nu=0.2, p=1.0, scaling='standard', widths=0.5)
    >>> get_method("MK-OCSVM").grid["nu"]
    (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    """
    if name in _METHODS:
        return _METHODS[name]
    if name.startswith("PyOD "):
        short = name.removeprefix("PyOD ")
        return Method(name, lambda **p: TableDetector(pyod_detector(short), **p), {}, {}, "table")
    raise ValueError(
        f"method: got {name!r}; expected one of {', '.join(map(repr, method_names()))}, or "
        "'PyOD NAME' for a detector of PyOD."
    )

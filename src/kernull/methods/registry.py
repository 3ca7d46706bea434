"""The registry: the paper's names, and what each stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from kernull.estimators import (
    FisherNull,
    GaussianProcessOneClass,
    JointMultiKernelFisherNull,
    KernelPCANovelty,
    MultiKernelFisherNull,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
)
from kernull.methods.peers import AveragedOneClassSVM, TableDetector, pyod_detector
from kernull.paths import PAPER_DELTAS, PAPER_PS, PAPER_WIDTHS

__all__ = [
    "DELTAS",
    "KERNEL_SETTINGS",
    "NUS",
    "PS",
    "WIDTHS",
    "Method",
    "get_method",
    "method_names",
]

#: The paper's grids of norms, of ridges relative to n, and of widths.
PS, DELTAS, WIDTHS = PAPER_PS, PAPER_DELTAS, PAPER_WIDTHS
#: Grid of the SVM methods' nu; the paper names none.
NUS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
#: Grid of the strength of the slim variants.
SLIM_LAMBDAS = (0.0, 0.1, 0.3, 1.0, 3.0)

#: The paper's methods as it has them, whatever the estimator does by default.
KERNELS: dict[str, Any] = {"scaling": "standard", "widths": 0.5}
PLAIN: dict[str, Any] = {**KERNELS, "p": 2.0, "delta": 1e-2}
PLAIN |= {"normalize": "none", "decision": "sum"}

#: Settings of kernels that mean nothing to a detector that takes a table.
KERNEL_SETTINGS = (
    "kernels",
    "views",
    "widths",
    "storage",
    "memory_limit",
    "dtype",
    "drop_constant",
)


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
    timed : bool
        Whether the paper times it.
    """

    name: str
    build: Callable[..., Any] = field(repr=False)
    grid: Mapping[str, tuple[Any, ...]] = field(repr=False)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "weights"
    timed: bool = False

    def make(self, **settings: Any) -> Any:
        """A new estimator.

        Parameters
        ----------
        **settings
            Parameters of the estimator, nested ones (``detector__n_neighbors``) included. Those
            about kernels (``kernels, views, widths, storage, memory_limit, dtype,
            drop_constant``) are left aside by detectors that take a table, so that one set of
            settings serves all methods.
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


def _isolation_forest(**params: Any) -> TableDetector:
    return TableDetector(IsolationForest(), **params)


def _local_outlier_factor(**params: Any) -> TableDetector:
    return TableDetector(LocalOutlierFactor(novelty=True), **params)


def _entries() -> list[Method]:
    out = []
    for fusion in ("average", "product"):
        suffix, fixed = fusion.capitalize(), {"fusion": fusion, **KERNELS}
        out += [
            Method(
                f"FN-{suffix}",
                FisherNull,
                {"widths": WIDTHS, "delta": (0.0, *DELTAS)},
                fixed,
                "fused",
            ),
            Method(
                f"GP-{suffix}",
                GaussianProcessOneClass,
                {"widths": WIDTHS, "noise": (1e-4, 1e-3, 1e-2, 1e-1, 1.0)},
                fixed,
                "fused",
            ),
            Method(
                f"KPCA-{suffix}",
                KernelPCANovelty,
                {"widths": WIDTHS, "components": (0.5, 0.7, 0.9, 0.95, 0.99)},
                fixed,
                "fused",
            ),
        ]
    out.sort(key=lambda m: ("FN", "GP", "KPCA").index(m.name.split("-")[0]))
    for name, build in (("SVDD", MultiKernelSVDD), ("OCSVM", MultiKernelOneClassSVM)):
        grid: dict[str, tuple[Any, ...]] = {"widths": WIDTHS, "nu": NUS}
        fixed = KERNELS if name == "SVDD" else {**KERNELS, "p": 1.0}
        out += [
            Method(f"MK-{name}", build, grid, fixed, timed=True),
            Method(
                f"Slim-MK-{name}",
                build,
                {**grid, "slim_lambda": SLIM_LAMBDAS},
                {**fixed, "slim": True},
                timed=True,
            ),
        ]
    # The dual of the gradient method is not smooth at p = 1.
    solvers: list[tuple[str, dict[str, Any], tuple[float, ...]]] = [
        ("lp MK-FN", {}, PS),
        ("lp MK-FN (Algorithm 1)", {"solver": "paper"}, PS),
        ("lp MK-FN-Grad", {"solver": "gradient", "tol": 1e-4}, PS[1:]),
        ("lp MK-FN-CVX", {"solver": "paper-cvx", "tol": 1e-4}, PS),
    ]
    for name, solver, norms in solvers:
        grid = {"widths": WIDTHS, "p": norms, "delta": DELTAS}
        timed = "Algorithm" not in name
        out.append(Method(name, MultiKernelFisherNull, grid, {**PLAIN, **solver}, timed=timed))
    out += [
        Method("OneClassSVM", AveragedOneClassSVM, {"widths": WIDTHS, "nu": NUS}, kind="fused"),
        Method(
            "IsolationForest",
            _isolation_forest,
            {"detector__n_estimators": (100, 300)},
            {"random_state": 0},
            "table",
        ),
        Method(
            "LocalOutlierFactor",
            _local_outlier_factor,
            {"detector__n_neighbors": (5, 10, 20, 35)},
            {},
            "table",
        ),
    ]
    return out


_METHODS: Mapping[str, Method] = MappingProxyType({m.name: m for m in _entries()})


def _joint() -> Method:
    """The joint method."""
    grid = {"widths": WIDTHS, "p": PS, "delta": DELTAS}
    return Method("Joint lp MK-FN", JointMultiKernelFisherNull, grid, PLAIN, "tasks")


def method_names() -> tuple[str, ...]:
    """Names of all methods; any PyOD detector goes by ``"PyOD NAME"`` besides.

    Examples
    --------
    >>> "FN-Average" in method_names(), "Slim-MK-OCSVM" in method_names()
    (True, True)
    """
    return (*_METHODS, _joint().name)


def get_method(name: str) -> Method:
    """A method by its name.

    Parameters
    ----------
    name : str
        One of `method_names`, or ``"PyOD NAME"`` for a detector of PyOD (extra ``pyod``), for
        example ``"PyOD ECOD"``.

    Examples
    --------
    >>> get_method("MK-OCSVM").make(nu=0.2)
    MultiKernelOneClassSVM(nu=0.2, p=1.0, scaling='standard', widths=0.5)
    >>> get_method("MK-OCSVM").grid["nu"]
    (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    """
    if name in _METHODS:
        return _METHODS[name]
    if name == "Joint lp MK-FN":
        return _joint()
    if name.startswith("PyOD "):
        short = name.removeprefix("PyOD ")
        return Method(name, lambda **p: TableDetector(pyod_detector(short), **p), {}, {}, "table")
    raise ValueError(
        f"method: got {name!r}; expected one of {', '.join(map(repr, method_names()))}, or "
        "'PyOD NAME' for a detector of PyOD."
    )

"""The methods of the paper by the names of its tables.

Every method of one fused kernel comes by "average" (the arithmetic mean of the kernels) and by
"product" (their element-wise geometric mean), under the names FN, GP and KPCA.
"""

from __future__ import annotations

from typing import Any

from kernull.estimators import JointMultiKernelFisherNull, MultiKernelFisherNull
from kernull.estimators.fisher import PAPER
from kernull.mkl import PAPER_WIDTHS
from kernull.mkl.balls import MixedBall
from kernull.mkl.solvers import Solver
from kernull.paper.fused import FisherNull, GaussianProcessOneClass, KernelPCANovelty
from kernull.paper.machines import MultiKernelOneClassSVM, MultiKernelSVDD

#: The kernels of the paper: one rbf kernel a view of standardised columns, of width D/2.
PAPER_KERNELS: dict[str, Any] = {name: PAPER[name] for name in ("kernels", "scaling", "widths")}
_FUSED: dict[str, Any] = {"FN": FisherNull, "GP": GaussianProcessOneClass, "KPCA": KernelPCANovelty}
#: Estimator and parameters of each method. The slim variants are ours, see `MultiKernelSVDD`; the
#: mixed (r, p) norm, the paper's future work, has r = 4/3 within the widths of a view.
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    **{
        f"{name}-{fusion.capitalize()}": (estimator, {**PAPER_KERNELS, "fusion": fusion})
        for name, estimator in _FUSED.items()
        for fusion in ("average", "product")
    },
    "MK-SVDD": (MultiKernelSVDD, PAPER_KERNELS),
    "Slim-MK-SVDD": (MultiKernelSVDD, {**PAPER_KERNELS, "slim": True}),
    "MK-OCSVM": (MultiKernelOneClassSVM, {**PAPER_KERNELS, "p": 1.0}),
    "Slim-MK-OCSVM": (MultiKernelOneClassSVM, {**PAPER_KERNELS, "p": 1.0, "slim": True}),
    "lp MK-FN": (MultiKernelFisherNull, PAPER),
    "Joint lp MK-FN": (JointMultiKernelFisherNull, PAPER),
    "lp MK-FN-Grad": (MultiKernelFisherNull, {**PAPER, "solver": Solver("gradient", 1e-4)}),
    "lp MK-FN-CVX": (MultiKernelFisherNull, {**PAPER, "solver": Solver("paper-cvx", 1e-4)}),
    "lp MK-FN, Kloft": (MultiKernelFisherNull, {**PAPER, "solver": "kloft"}),
    "(r, p) MK-FN": (
        MultiKernelFisherNull,
        {**PAPER, "p": MixedBall(2.0, 4 / 3), "widths": PAPER_WIDTHS},
    ),
}


def method(name: str, **parameters: Any) -> Any:
    """A method of the paper by its name there.

    Parameters
    ----------
    name : str
        A name of `METHODS`, such as ``"FN-Product"`` or ``"Joint lp MK-FN"``.
    **parameters
        Parameters of the estimator, in place of those of the method.

    Returns
    -------
    estimator
        Not fitted.

    Examples
    --------
    >>> method("FN-Product", views="features", delta=0.1)
    FisherNull(delta=0.1, fusion='product', scaling='standard', views='features',
               widths=0.5)
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = method("Slim-MK-OCSVM", views="features", nu=0.2).fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).mean() > 0.8)
    True
    """
    if name not in METHODS:
        raise ValueError(f"name: got {name!r}; expected one of {', '.join(METHODS)}.")
    estimator, usual = METHODS[name]
    return estimator(**{**usual, **parameters})

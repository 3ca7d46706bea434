"""The protocol of E4, fixed before its run: target classes, splits, grids, score.

Nothing in this file may change after the full run whose tables stand in ``docs/results/E4``.

- Target classes: those of `kernull.datasets.load_delft`, fixed beforehand by the repository's
  customary problems; every other class of every set is reported as well.
- Split, ten random repeats: targets 60/20/20, outliers half to validation and half to test.
- One rbf kernel a feature, exp(-d^2 / (2 s^2)), s = width x the mean pairwise distance of that
  feature; columns standardised on the training targets; constant columns dropped.
- Selection: every method over its own grid by validation AUC; of equal ones the first in the order
  of the grid, widest kernels first. Test AUC is reported.
- Score: y(x), higher is more normal. For lp MK-FN also -|1 - y|, and the choice that uses no
  outliers, each as a separate line.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = [
    "GRIDS",
    "MAIN",
    "PAPER_METHODS",
    "PEERS",
    "PSEUDO_KIND",
    "PSEUDO_ROWS",
    "REPEATS",
    "WIDTHS",
]

Grid: TypeAlias = dict[str, tuple[float, ...]]

REPEATS = 10
WIDTHS = (1.0, 0.5, 0.25)
PS = (1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 1e6)
DELTAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
NUS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
LAMBDAS = (0.0, 0.1, 0.3, 1.0, 3.0)

MAIN = "lp MK-FN"
#: The eleven methods of the paper's table, in its order.
PAPER_METHODS = (
    "FN-Average",
    "FN-Product",
    "GP-Average",
    "GP-Product",
    "KPCA-Average",
    "KPCA-Product",
    "MK-SVDD",
    "Slim-MK-SVDD",
    "MK-OCSVM",
    "Slim-MK-OCSVM",
    MAIN,
)
#: Detectors of scikit-learn and PyOD: OneClassSVM on the mean of the kernels, the others on the
#: standardised table.
PEERS = ("OneClassSVM", "IsolationForest", "LocalOutlierFactor", "PyOD ECOD", "PyOD KNN")

_FN: Grid = {"delta": (0.0, *DELTAS)}
_GP: Grid = {"noise": (1e-4, 1e-3, 1e-2, 1e-1, 1.0)}
_KPCA: Grid = {"components": (0.5, 0.7, 0.9, 0.95, 0.99)}
_SVM: Grid = {"nu": NUS}
_SLIM: Grid = {"nu": NUS, "slim_lambda": LAMBDAS}
#: What each method is tuned over, besides the width (for methods on kernels).
GRIDS: dict[str, Grid] = {
    "FN-Average": _FN,
    "FN-Product": _FN,
    "GP-Average": _GP,
    "GP-Product": _GP,
    "KPCA-Average": _KPCA,
    "KPCA-Product": _KPCA,
    "MK-SVDD": _SVM,
    "Slim-MK-SVDD": _SLIM,
    "MK-OCSVM": _SVM,
    "Slim-MK-OCSVM": _SLIM,
    MAIN: {"p": PS, "delta": DELTAS},
    "OneClassSVM": _SVM,
    "IsolationForest": {"detector__n_estimators": (100, 300)},
    "LocalOutlierFactor": {"detector__n_neighbors": (5, 10, 20, 35)},
    "PyOD ECOD": {},
    "PyOD KNN": {},
}

#: The choice without outliers: AUC of the validation targets against pseudo-outliers drawn around
#: the training targets (columns permuted, points jittered, pairs extrapolated).
PSEUDO_KIND = "mixed"
PSEUDO_ROWS = 500

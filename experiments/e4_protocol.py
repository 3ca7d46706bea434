"""The protocol of E4, fixed before its run: target classes, splits, grids, score.

Nothing in this file may change after the full run whose tables stand in ``docs/results/E4``.

- Target classes: those of `experiments.datasets.load_delft`, fixed beforehand by the repository's
  customary problems; every other class of every set is reported as well.
- Split, ten random repeats: targets 60/20/20, outliers half to validation and half to test.
- One rbf kernel a feature, exp(-d^2 / (2 s^2)), s = width x the mean pairwise distance of that
  feature; columns standardised on the training targets; constant columns dropped.
- Selection: every method over its own grid by validation AUC; of equal ones the first in the order
  of the grid, widest kernels first. Test AUC is reported.
- Score: y(x), higher is more normal. For lp MK-FN also -|1 - y|, and the choice that uses no
  outliers, each as a separate line.

Hypotheses about the gap to the published figures (lp MK-FN: 77.0 here, 79.8 there), written down
before any of them was run by this code; they are run by `E4-hypotheses` and touch nothing above.
An exploratory probe, made elsewhere before this was written, had 77.0 for the choice in each
repeat, 77.7 for H1 and 78.4 for the choice by mean test AUC. Each is reported whatever comes.

- H1: one (p, delta, width) per data set, chosen by the mean validation AUC over the ten repeats
  (of equal ones the first, widest kernels first), instead of one choice per repeat.
- H2: D is literally "the average pairwise Euclidean distance between training samples", of whole
  rows, the same for every feature's kernel; three scalings of the rows: raw, min-max (by the
  training targets), and rows of unit length.
- H3: the rbf kernel is exp(-d^2 / s^2), without the 2; the widths span twice as many octaves,
  {1/8, 1/4, 1/2, 1, 2} x D; and both at once.
- H4: the paper's own algorithm instead of the exact optimum. Algorithm 1 as printed on the kernels
  of E4: from J^(-1/p), until the relative change of a is at most 1e-6 or the weights were updated
  200 times, the last iterate. It is judged with both choices, and no other (p, delta, width),
  score or number of iterations is tried. Written after the other hypotheses were run and before it
  was run by this code; an independent computation with the last of 30 iterations had 77.4 and six
  sets for the choice in each repeat, 78.2 and seven sets for H1.
- Each kernel of H2 and H3 is judged with both choices, per repeat and H1. The choice by mean test
  AUC is printed as a bound and is no result.
- The null-space distance, minus the distance of a row's response from that of the targets, for
  every method: from 1 where the method regresses on 1 (FN, GP, lp MK-FN), from the mean response
  of the training rows otherwise. Validation chooses by the same score.
- What is compared: the mean test AUC of each of the nine fixed classes, its average, differences
  from E4's own choice paired over the nine sets (Wilcoxon), and how many sets lie within one
  published standard deviation. Splits are those of E4. A hypothesis counts as an explanation if
  its average is within 0.5 of 79.8 and at least seven sets lie within one standard deviation.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = [
    "GRIDS",
    "HYPOTHESES",
    "MAIN",
    "PAPER_METHODS",
    "PEERS",
    "PRINTED",
    "PSEUDO_KIND",
    "PSEUDO_ROWS",
    "REPEATS",
    "WIDE_WIDTHS",
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
#: The same problem by Algorithm 1 as printed, its last iterate.
PRINTED = "lp MK-FN (Algorithm 1)"
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
    PRINTED: {"p": PS, "delta": DELTAS},
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

#: Widths of H3, relative to D: twice as many octaves as E4's.
WIDE_WIDTHS = (2.0, 1.0, 0.5, 0.25, 0.125)
#: Kernels of the hypotheses by name: D of each feature ("own") or of whole rows scaled in a way,
#: the divisor c of exp(-d^2 / (c s^2)), and the widths.
HYPOTHESES: dict[str, tuple[str, float, tuple[float, ...]]] = {
    "E4": ("own", 2.0, WIDTHS),
    "H2 raw": ("raw", 2.0, WIDTHS),
    "H2 min-max": ("min-max", 2.0, WIDTHS),
    "H2 unit length": ("unit length", 2.0, WIDTHS),
    "H3 no 2": ("own", 1.0, WIDTHS),
    "H3 wide": ("own", 2.0, WIDE_WIDTHS),
    "H3 both": ("own", 1.0, WIDE_WIDTHS),
}

"""From rows to scores that a threshold can be taken from; `kernull.detector.calibration` takes it.

Scalings, kernels and scores are learned again without the rows that they judge. Kernel weights, the
factors of the gate and the least distance come from all rows.

A row is ranked twice: each of its scores among the left-out scores of rows (`tails`), which gives
evidence, and the length of its evidence among those of rows left out
(`kernull.detector.calibration.Calibration`), which gives its p-value and the flag.

`recipe`
    The columns of each view, and how their scaling and kernels are fitted.
`scores`, `given`
    What the kernels of one view say about a row: projection, and distance to the nearest row.
`cross_fit`
    Folds by the content of rows; scores of rows by fits without their fold.
`tails`
    From scores to evidence: how small the p-value among left-out scores is.
`gate`
    Views, and the whole, count by the odds that mixed rows are told from rows.
`evidence`
    The whole rule: evidence of each score, weights, the length of both.
`sum`
    The paper's rule, a sum over kernels.
"""

from kernull.detector.calibration import Calibration, Cross, Split
from kernull.detector.cross_fit import assign_folds, cross_fit
from kernull.detector.learning import Fitted, learn
from kernull.detector.model import Certificate, KernelModel, RidgeSystem, view_names
from kernull.detector.rows import (
    GivenKernels,
    GivenRows,
    ModelKernels,
    Settings,
    TableKernels,
    TableRows,
)
from kernull.detector.scores import Evidence, Nearest, Projection
from kernull.detector.sum import FisherRule, Sum

__all__ = [
    "Calibration", "Certificate", "Cross", "Evidence", "FisherRule", "Fitted",
    "GivenKernels", "GivenRows", "KernelModel", "ModelKernels", "Nearest", "Projection",
    "RidgeSystem", "Settings", "Split", "Sum", "TableKernels", "TableRows", "assign_folds",
    "cross_fit", "learn", "view_names",
]  # fmt: skip

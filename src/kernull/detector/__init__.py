"""From rows to a model: scores, how odd a row is, how rare, and whether it is flagged.

Scalings, kernels and scores are learned again without the rows that they judge. Kernel weights, the
factors of the gate and the least distance come from all rows.

    rows -> kernels -> weights of kernels (`fisher`)                 from all rows
              `-> scores -> left-out scores (`cross_fit`)            from the other folds
    left-out scores -> evidence (`tails`), weighted -> its length -> threshold, p-value, rarity

`learning`, `joint`
    Where a fit begins and ends, of one task and of several.
`rows`
    Rows of a table or of precomputed kernels, and the kernels that a model keeps.
`scores`, `precomputed`, `nearest`
    Scores of rows by the kernels of one view: projection, and distance to the nearest row.
`cross_fit`
    Folds by the content of rows; scores of rows by fits without their fold.
`tails`
    From scores to evidence: how small the p-value among left-out scores is.
`gate`
    Views, and the whole, count by the odds that mixed rows differ from rows.
`evidence`
    The default rule: evidence of each score, weights, the length of both.
`sum`
    The paper's rule, a sum over kernels.
`calibration`
    From left-out scores of a rule to threshold, p-values and rarity.
"""

from kernull.detector.calibration import Calibration, Cross, Split
from kernull.detector.cross_fit import assign_folds, cross_fit
from kernull.detector.learning import Fitted, learn
from kernull.detector.model import Certificate, KernelModel, RidgeSystem, view_names
from kernull.detector.rows import (
    ModelKernels,
    PrecomputedKernels,
    PrecomputedRows,
    Settings,
    TableKernels,
    TableRows,
)
from kernull.detector.scores import Evidence, Nearest, Projection
from kernull.detector.sum import FisherRule, Sum

__all__ = [
    "Calibration", "Certificate", "Cross", "Evidence", "FisherRule", "Fitted", "KernelModel",
    "ModelKernels", "Nearest", "PrecomputedKernels", "PrecomputedRows", "Projection",
    "RidgeSystem", "Settings", "Split", "Sum", "TableKernels", "TableRows", "assign_folds",
    "cross_fit", "learn", "view_names",
]  # fmt: skip

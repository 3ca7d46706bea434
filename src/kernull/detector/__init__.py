"""From rows to a threshold: scores of each view, left out by folds, turned into evidence.

Whatever is learned from rows is learned again without the rows that it judges.

`recipe`
    How the columns of a view become scaled rows and kernels.
`scores`, `given`
    What the kernels of one view say about a row: projection, and distance to the nearest row.
`cross_fit`
    Folds by the content of rows; scores of rows by fits without their fold.
`tails`
    From scores to evidence: how small the p-value among left-out scores is.
`gate`
    Views whose rows look like rows of mixed cells count less.
`evidence`
    The whole rule: evidence of each score, weights, statistics of a row, its score.
`sum`
    The paper's rule, a sum over kernels.
"""

from kernull.detector.cross_fit import assign_folds, cross_fit
from kernull.detector.evidence import Evidence
from kernull.detector.scores import Nearest, Projection
from kernull.detector.sum import Sum

__all__ = ["Evidence", "Nearest", "Projection", "Sum", "assign_folds", "cross_fit"]

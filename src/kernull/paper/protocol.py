r"""How the paper chooses and judges: 60/20/20, its grid, its two readings of the score.

p, delta and width come from the paper's grid by the AUC on a validation set. Kernels, and with them
the (p, delta) models of one width, are computed once: all models of a width come from one shared
subspace (`kernull.mkl.path`), each certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_array, check_random_state

from kernull._typing import Array, Indices
from kernull.mkl import PAPER_DELTAS, PAPER_PS, PAPER_WIDTHS, path
from kernull.operators import DenseStack
from kernull.views import KernelSet, resolve_views

__all__ = ["Choice", "SplitRows", "aucs", "choose", "novelty_score", "split_rows"]


class SplitRows(NamedTuple):
    """Rows of a one-class experiment: targets to learn from, and both kinds to choose and judge."""

    train: Indices
    validation: Indices
    test: Indices


def split_rows(labels: Any, rng: np.random.Generator | np.random.RandomState) -> SplitRows:
    """Targets 60/20/20; outliers half to validation, half to test.

    The paper says "60% of the data ... for training while 20% is used for validation and the rest
    for testing"; only targets are learned from, so all outliers validate or test.

    Parameters
    ----------
    labels : array of shape (n,)
        +1 for targets, -1 for outliers.
    rng : numpy.random.Generator or RandomState

    Returns
    -------
    SplitRows

    Examples
    --------
    >>> split = split_rows([1] * 10 + [-1] * 4, np.random.default_rng(0))
    >>> [len(rows) for rows in split]
    [6, 4, 4]
    """
    targets = rng.permutation(np.flatnonzero(np.asarray(labels) == 1))
    outliers = rng.permutation(np.flatnonzero(np.asarray(labels) != 1))
    first = round(0.6 * len(targets))
    second = first + round(0.2 * len(targets))
    half = len(outliers) // 2
    return SplitRows(
        targets[:first],
        np.concatenate([targets[first:second], outliers[:half]]),
        np.concatenate([targets[second:], outliers[half:]]),
    )


def aucs(labels: Any, scores: Any) -> Array:
    """AUC of many score vectors at once: (..., m) -> (...).

    The share of (target, outlier) pairs in which the target scores higher, ties counting half:
    what scikit-learn's ``roc_auc_score`` gives, without a loop over the models of a grid.

    Parameters
    ----------
    labels : array of shape (m,)
        +1 for targets; all else is an outlier.
    scores : array of shape (..., m)
        Higher is more normal.

    Examples
    --------
    >>> float(aucs([1, 1, -1], [3.0, 1.0, 2.0]))
    0.5
    """
    positive = np.asarray(labels) == 1
    P, N = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores, axis=-1)
    return np.asarray((ranks[..., positive].sum(axis=-1) - P * (P + 1) / 2) / (P * N))


def novelty_score(projection: Any) -> Array:
    r"""The other reading of the score: :math:`-|1 - y|`, the distance from where targets land.

    The paper does not say how a new row is scored. By its projection y, higher is more normal; the
    null-space papers score by the distance from 1. They rank alike where y <= 1. Estimators
    give it by ``decision=Sum("distance")``.

    Parameters
    ----------
    projection : array
        The projections y(x).

    Examples
    --------
    >>> novelty_score([0.0, 1.0, 1.5])
    array([-1. ,  0. , -0.5])
    """
    return np.asarray(-np.abs(1.0 - np.asarray(projection, dtype=float)))


@dataclass(frozen=True)
class Choice:
    """The point of the grid with the best validation AUC, and what it comes to on the test rows.

    Attributes
    ----------
    p, delta, width : float
        The point; delta relative to the rows learned from, width as a factor of the mean distance.
    validation_auc, test_auc : float
        AUCs at that point.
    weights : array of shape (J,)
        Kernel weights there.
    gap : float
        Their certified relative duality gap.
    split : SplitRows
        The rows that were learned from, that chose, and that judged.
    grid : dict of float to array of shape (P, D)
        Validation AUC of every (p, delta), by width.
    """

    p: float
    delta: float
    width: float
    validation_auc: float
    test_auc: float
    weights: Array = field(repr=False)
    gap: float = field(repr=False)
    split: SplitRows = field(repr=False)
    grid: dict[float, Array] = field(repr=False)

    @property
    def parameters(self) -> dict[str, float]:
        """For an estimator: ``MultiKernelFisherNull(**PAPER | choice.parameters)``."""
        return {"p": self.p, "delta": self.delta, "widths": self.width}


def choose(
    X: Any,
    y: Any,
    views: Any = "features",
    *,
    ps: Sequence[float] = PAPER_PS,
    deltas: Sequence[float] = PAPER_DELTAS,
    widths: Sequence[float] = PAPER_WIDTHS,
    scaling: str = "standard",
    score_type: str = "projection",
    tol: float = 1e-4,
    random_state: Any = 0,
) -> Choice:
    r"""The paper's protocol on one table: split 60/20/20, choose from the grid, judge once.

    Kernels are one rbf kernel a view, :math:`\exp(-d^2 / (2 s^2))`, s = width x the mean pairwise
    distance of that view, views scaled by the training targets. The models are the exact optima;
    for those of Algorithm 1 fit an estimator with what was chosen.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows, targets and outliers.
    y : array of shape (n,)
        +1 for targets, -1 for outliers.
    views : None, "features" or mapping of name -> columns, default="features"
        As in `MultiKernelFisherNull`; the paper has one kernel per feature for tables.
    ps, deltas, widths : sequence of float
        The grid; the paper's.
    scaling : str, default="standard"
        Scaling of each view; the paper names none.
    score_type : {"projection", "distance"}, default="projection"
        The score of a row: ``y``, or ``-|1 - y|``.
    tol : float, default=1e-4
        Certified relative duality gap of every model.
    random_state : int, RandomState or None, default=0
        Seed of the split.

    Returns
    -------
    Choice
        Of equal points, the widest kernels and then the first p and delta are taken.

    Examples
    --------
    >>> from kernull import PAPER, MultiKernelFisherNull
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> found = choose(X, np.where(y == 0, 1, -1), ps=[1, 2], deltas=[1e-3, 1e-2])
    >>> found.test_auc > 0.95
    True
    >>> model = MultiKernelFisherNull(**PAPER | found.parameters, views="features")
    """
    if score_type not in ("projection", "distance"):
        raise ValueError(
            f"score_type: got {score_type!r}; expected 'projection' (y) or 'distance' (-|1 - y|)."
        )
    table, labels = check_array(X, dtype=np.float64), np.asarray(y)
    if labels.shape != (len(table),) or not {-1, 1} == set(labels.tolist()):
        raise ValueError(f"y: expected {len(table)} labels, +1 for targets and -1 for outliers.")
    split = split_rows(labels, check_random_state(random_state))
    rows = np.concatenate([split.validation, split.test])
    m = len(split.validation)
    columns = resolve_views(views, table.shape[1])
    best, grid = dict[str, Any](), dict[float, Array]()
    for width in sorted(widths, reverse=True):
        kernels = KernelSet.fit(table[split.train], columns, widths=width, scaling=scaling)
        found = path(DenseStack.of(kernels), tuple(ps), tuple(deltas), tol=tol)
        cross = DenseStack(np.stack([K for _, K in kernels.matrices(table[rows])]))
        scores = found.scores(cross)
        scores = scores if score_type == "projection" else novelty_score(scores)
        grid[width] = aucs(labels[split.validation], scores[..., :m])
        i, k = (int(at) for at in np.unravel_index(np.argmax(grid[width]), grid[width].shape))
        if not best or grid[width][i, k] > best["validation_auc"]:
            best = {
                "p": float(found.ps[i]), "delta": float(found.deltas[k]), "width": float(width),
                "validation_auc": float(grid[width][i, k]),
                "test_auc": float(aucs(labels[split.test], scores[i, k, m:])),
                "weights": found.weights[i, k], "gap": float(found.gaps[i, k]),
            }  # fmt: skip
    return Choice(**best, split=split, grid=grid)

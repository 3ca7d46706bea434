"""What makes one model of a grid better than another, with labelled outliers and without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import check_scoring, get_scorer_names

from kernull import metrics
from kernull._typing import Array
from kernull.paths.pseudo import PSEUDO, draw_pseudo

#: Pseudo-outliers drawn a fold.
PSEUDO_ROWS = 250
#: The criterion used when there are no outliers; see docs/results/choosing.md.
DEFAULT_CRITERION = "shift"


@dataclass(frozen=True)
class FoldView:
    """All models of one training set, and what a criterion may ask of them.

    Scores have shape (P, D, rows); higher is more normal.
    """

    held_out: Array
    """Scores of targets that were not trained on (or leave-one-out scores)."""
    outliers: Array
    """Scores of labelled outliers (possibly none)."""
    training: Array
    """Scores of the training rows."""
    train_rows: Array | None
    """The training table; None for precomputed kernels."""
    score_rows: Callable[[Array], Array]
    """Scores of any rows of a table."""
    seed: int
    """Seed of this fold; the same for every width, so that all meet the same pseudo-rows."""
    models: Callable[[], Any] | None = None
    """Iterates over (index, fitted estimator, X, y); None where rows were not really held out."""


class Criterion:
    """Judges models fold by fold, then all folds together."""

    needs_outliers = False
    needs_table = False

    def of_fold(self, view: FoldView) -> Array:
        """Statistics of every model on one fold, of shape (P, D, k)."""
        raise NotImplementedError

    def finish(self, folds: list[Array]) -> Array:
        """Scores of shape (folds, P, D), higher is better: by default the one statistic."""
        return np.stack(folds)[..., 0]


def auc_of(targets: Array, outliers: Array) -> Array:
    """AUC along the last axis, for all models at once (ties count half)."""
    m = targets.shape[-1]
    ranks = rankdata(np.concatenate([targets, outliers], axis=-1), axis=-1)[..., :m].sum(axis=-1)
    return np.asarray((ranks - m * (m + 1) / 2) / (m * outliers.shape[-1]))


class OutlierAuc(Criterion):
    """AUC of held-out targets against labelled outliers."""

    needs_outliers = True

    def of_fold(self, view: FoldView) -> Array:
        """AUC of every model."""
        return auc_of(view.held_out, view.outliers)[..., None]


class OutlierAcer(Criterion):
    """Minus the ACER at the threshold of equal error on the fold."""

    needs_outliers = True

    def of_fold(self, view: FoldView) -> Array:
        """Minus ACER of every model."""
        P, D, m = view.held_out.shape
        labels = np.concatenate([np.ones(m), -np.ones(view.outliers.shape[-1])])
        scores = np.concatenate([view.held_out, view.outliers], axis=-1).reshape(P * D, -1)
        out = [metrics.acer(labels, s, metrics.threshold_at_eer(labels, s)) for s in scores]
        return -np.array(out).reshape(P, D, 1)


@dataclass(frozen=True)
class SklearnScorer(Criterion):
    """Any scorer of scikit-learn, called with a fitted estimator for every model."""

    scorer: Callable[..., float]

    def of_fold(self, view: FoldView) -> Array:
        """The scorer's value for every model."""
        if view.models is None:
            raise ValueError("scoring: a scikit-learn scorer needs folds; cv='loo' has none.")
        out = np.empty((*view.held_out.shape[:2], 1))
        for index, model, X, y in view.models():
            out[index] = self.scorer(model, X, y)
        return out


@dataclass(frozen=True)
class PseudoOutliers(Criterion):
    """AUC of held-out targets (or of pseudo-targets) against pseudo-outliers.

    Of several kinds, the mean: where one fails, another may not.
    """

    kinds: list[str]
    needs_table = True

    def of_fold(self, view: FoldView) -> Array:
        """Mean AUC of every model."""
        assert view.train_rows is not None
        found = []
        for kind in self.kinds:
            rng = np.random.default_rng(view.seed)
            rows = draw_pseudo(kind, view.train_rows, PSEUDO_ROWS, rng)
            high = view.held_out if rows.targets is None else view.score_rows(rows.targets)
            found.append(auc_of(high, view.score_rows(rows.outliers)))
        return np.asarray(np.mean(found, axis=0))[..., None]


@dataclass(frozen=True)
class Consistency(Criterion):
    r"""The most complex model that is still consistent (after Tax and Müller 2004).

    A model that accepts all but a share nu of its training rows should reject held-out targets at
    no more than :math:`\nu + 2 \sqrt{\nu (1 - \nu) / m}`. Among such models the most complex one is
    best, complexity being the optimism of the fit: mean training score minus mean held-out score.
    """

    rate: float = 0.1

    def of_fold(self, view: FoldView) -> Array:
        """Rejected held-out targets, their number, optimism."""
        threshold = np.quantile(view.training, self.rate, axis=-1, keepdims=True)
        rejected = (view.held_out < threshold).sum(axis=-1).astype(float)
        count = np.full(rejected.shape, float(view.held_out.shape[-1]))
        optimism = view.training.mean(axis=-1) - view.held_out.mean(axis=-1)
        return np.stack([rejected, count, optimism], axis=-1)

    def finish(self, folds: list[Array]) -> Array:
        """Optimism where consistent, minus the excess of rejections where not."""
        stacked = np.stack(folds)
        rejected, count = stacked[..., 0].sum(axis=0), stacked[..., 1].sum(axis=0)
        allowed = self.rate + 2.0 * np.sqrt(self.rate * (1 - self.rate) / count)
        excess = rejected / count - allowed
        return np.asarray(np.where(excess <= 0, stacked[..., 2], -1.0 - excess))


#: Criteria that need targets only.
TARGETS_ONLY: tuple[str, ...] = (*PSEUDO, "shift+box", "consistency")


def read_scoring(scoring: Any, *, has_outliers: bool) -> tuple[str, Criterion]:
    """The criterion that ``scoring`` stands for, and its name."""
    if scoring is None:
        scoring = "auc" if has_outliers else DEFAULT_CRITERION
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))
    criterion: Criterion
    if name in ("auc", "roc_auc", "acer"):
        if not has_outliers:
            raise ValueError(
                f"scoring={scoring!r} compares targets with outliers, and y has no outliers "
                f"(-1). Give some, or use a scoring that needs targets only: {TARGETS_ONLY}."
            )
        criterion = OutlierAcer() if name == "acer" else OutlierAuc()
    elif name == "consistency":
        criterion = Consistency()
    elif all(kind in PSEUDO for kind in name.split("+")):
        criterion = PseudoOutliers(name.split("+"))
    elif callable(scoring) or name in get_scorer_names():
        criterion = SklearnScorer(check_scoring(scoring=scoring))
    else:
        raise ValueError(
            f"scoring: got {scoring!r}; expected 'auc' or 'acer' (with outliers), one of "
            f"{TARGETS_ONLY} (without), or a scorer of scikit-learn."
        )
    return name, criterion

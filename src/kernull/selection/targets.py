"""One-class training inside scikit-learn's own searches."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._typing import Array
from kernull.paths.pseudo import draw_pseudo
from kernull.selection.criteria import auc_of
from kernull.selection.splitters import read_labels
from kernull.stacks import DenseStack


class TargetsOnly(MetaEstimatorMixin, OutlierMixin, BaseEstimator):
    """Train any one-class estimator on the targets (y = +1) among the rows it is given.

    A search such as ``GridSearchCV`` fits its best model on all rows, labelled outliers included.
    Inside this wrapper it does not.

    Parameters
    ----------
    estimator : one-class estimator
        For example ``sklearn.svm.OneClassSVM()``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import OneClassSVM
    >>> from kernull.selection import OneClassKFold
    >>> X, label = load_wine(return_X_y=True)
    >>> y = (label == 0) * 2 - 1
    >>> search = GridSearchCV(
    ...     TargetsOnly(OneClassSVM()), {"estimator__nu": [0.05, 0.2]},
    ...     cv=OneClassKFold(3, random_state=0), scoring="roc_auc",
    ... ).fit(X, y)
    >>> search.best_estimator_.estimator_.shape_fit_[0] == (y == 1).sum()
    np.True_
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Fit a clone of the estimator on the rows with y = +1 (on all of them if y is None)."""
        rows = np.flatnonzero(read_labels(y, _num_samples(X)) == 1)
        pairwise = get_tags(self.estimator).input_tags.pairwise
        kept = X[np.ix_(rows, rows)] if pairwise else _safe_indexing(X, rows)
        self.rows_ = rows
        self.estimator_ = clone(self.estimator).fit(kept, **fit_params)
        return self

    def _reach(self, X: Any) -> Any:
        """Rows of a pairwise matrix against the rows trained on."""
        check_is_fitted(self)
        if get_tags(self.estimator).input_tags.pairwise:
            if isinstance(X, DenseStack):
                return X.columns(self.rows_)
            return X[np.ix_(np.arange(_num_samples(X)), self.rows_)]
        return X

    def score_samples(self, X: Any) -> Array:
        """Scores of the fitted estimator."""
        return np.asarray(self.estimator_.score_samples(self._reach(X)))

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold of the fitted estimator."""
        return np.asarray(self.estimator_.decision_function(self._reach(X)))

    def predict(self, X: Any) -> Array:
        """+1 for normal rows, -1 for flagged ones."""
        return np.asarray(self.estimator_.predict(self._reach(X)))

    def __sklearn_tags__(self) -> Tags:
        """Slice what the wrapped estimator wants sliced."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = get_tags(self.estimator).input_tags.pairwise
        return tags


def make_pseudo_scorer(kind: str = "shift", *, count: int = 1000, random_state: int = 0) -> Any:
    """A scorer that needs no outliers, for scikit-learn's searches over any estimator.

    It is the AUC of held-out targets against pseudo-outliers drawn around them.

    Parameters
    ----------
    kind : {"box", "sphere", "shift", "mixed"}
        How pseudo-outliers are made; see `MultiKernelFisherNullCV`.
    count : int
        Their number.
    random_state : int
        Seed; all candidates meet the same pseudo-outliers.

    Returns
    -------
    callable (estimator, X, y=None) -> float

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import OneClassSVM
    >>> X, label = load_wine(return_X_y=True)
    >>> search = GridSearchCV(OneClassSVM(), {"nu": [0.05, 0.2]}, scoring=make_pseudo_scorer())
    >>> bool(search.fit(X[label == 0]).best_score_ <= 1)
    True
    """

    def score(estimator: Any, X: Any, y: Any = None) -> float:
        table = np.asarray(X, dtype=float)
        table = table[read_labels(y, len(table)) == 1]
        rows = draw_pseudo(kind, table, count, np.random.default_rng(random_state))
        high = estimator.decision_function(table if rows.targets is None else rows.targets)
        return float(
            auc_of(np.asarray(high), np.asarray(estimator.decision_function(rows.outliers)))
        )

    return score

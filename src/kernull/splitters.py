"""One-class splitters: outliers are for validation, never for training.

Labels are +1 for targets and -1 for outliers, as everywhere in kernull. The splitters work with
every tool of scikit-learn that takes ``cv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._typing import Array, Indices
from kernull.operators import DenseStack

__all__ = ["OneClassKFold", "TargetsOnly"]


def _read_labels(y: Any, n: int) -> Indices:
    """Labels +1 / -1 of n rows; None means that all are targets."""
    if y is None:
        return np.ones(n, dtype=np.intp)
    labels = np.asarray(y).ravel()
    if len(labels) != n:
        raise ValueError(f"y: got {len(labels)} labels for {n} rows.")
    strange = sorted({str(label) for label in labels[~np.isin(labels, (-1, 1))]})
    if strange:
        raise ValueError(
            f"y: got the label(s) {', '.join(strange[:5])}; expected +1 for targets and -1 for "
            "outliers, or y=None when all rows are targets."
        )
    if not (labels == 1).any():
        raise ValueError("y: got no target (+1) at all; there is nothing to learn from.")
    return labels.astype(np.intp)


class OneClassKFold(BaseCrossValidator):
    """K folds of the targets; each outlier is in the validation part of exactly one fold.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Shuffle targets and outliers first.
    random_state : int, RandomState or None
        Seed of the shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1, 1, 1, 1, -1, -1])
    >>> for train, test in OneClassKFold(2, shuffle=False).split(y, y):
    ...     print(train, test)
    [2 3] [0 1 4]
    [0 1] [2 3 5]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits.

        Parameters
        ----------
        X, y, groups : ignored
        """
        return int(self.n_splits)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Yield (train, test) indices: train holds targets only.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows of both kinds.
        y : array of shape (n,), optional
            +1 for targets, -1 for outliers; all targets by default.
        groups : array of shape (n,), optional
            Rows of a group share a fold.

        Returns
        -------
        iterator of (train, test)
            Integer arrays.
        """
        labels = _read_labels(y, _num_samples(X))
        targets, outliers = np.flatnonzero(labels == 1), np.flatnonzero(labels == -1)
        if isinstance(self.n_splits, bool) or not int(self.n_splits) >= 2:
            raise ValueError(f"n_splits: got {self.n_splits!r}; expected an integer of 2 or more.")
        for name, rows in (("target", targets), ("outlier", outliers)):
            if 0 < len(rows) < self.n_splits:
                raise ValueError(
                    f"n_splits={self.n_splits}: got only {len(rows)} {name}(s), so some fold would "
                    f"have none to validate on. Use at most {len(rows)} folds."
                    if len(rows) > 1
                    else f"n_splits={self.n_splits}: got a single {name}; K folds need at least 2."
                )
        if self.shuffle:
            rng = check_random_state(self.random_state)
            targets, outliers = rng.permutation(targets), rng.permutation(outliers)
        folds = (np.array_split(rows, self.n_splits) for rows in (targets, outliers))
        for inner, outer in zip(*folds, strict=True):
            yield np.sort(np.setdiff1d(targets, inner)), np.sort(np.concatenate([inner, outer]))


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
    >>> from kernull.splitters import OneClassKFold
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
        rows = np.flatnonzero(_read_labels(y, _num_samples(X)) == 1)
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
        """Scores of the fitted estimator.

        Parameters
        ----------
        X : array of shape (m, d)
        """
        return np.asarray(self.estimator_.score_samples(self._reach(X)))

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold of the fitted estimator.

        Parameters
        ----------
        X : array of shape (m, d)
        """
        return np.asarray(self.estimator_.decision_function(self._reach(X)))

    def predict(self, X: Any) -> Array:
        """+1 for normal rows, -1 for flagged ones.

        Parameters
        ----------
        X : array of shape (m, d)
        """
        return np.asarray(self.estimator_.predict(self._reach(X)))

    def __sklearn_tags__(self) -> Tags:
        """Slice what the wrapped estimator wants sliced."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = get_tags(self.estimator).input_tags.pairwise
        return tags

"""One-class splitters and scorers: outliers are for validation, never for training.

Labels are +1 for targets and -1 for outliers, as everywhere in kernull. The splitters work with
every tool of scikit-learn that takes ``cv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._typing import Array, Indices
from kernull.estimators.parameters import parameters
from kernull.paths.pseudo import draw_pseudo
from kernull.selection.criteria import auc_of
from kernull.stacks import DenseStack


def read_labels(y: Any, n: int) -> Indices:
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


class _OneClassSplitter(BaseCrossValidator):
    """What the splitters share: their number, and targets and outliers by position."""

    n_splits: int

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits."""
        return int(self.n_splits)

    def _targets_and_outliers(self, X: Any, y: Any) -> tuple[Indices, Indices]:
        labels = read_labels(y, _num_samples(X))
        return np.flatnonzero(labels == 1), np.flatnonzero(labels == -1)


@parameters
class OneClassKFold(_OneClassSplitter):
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

    n_splits: int = field(default=5, kw_only=False)
    shuffle: bool = True
    random_state: Any = None

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Yield (train, test) indices: train holds targets only."""
        targets, outliers = self._targets_and_outliers(X, y)
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


@parameters
class OneClassShuffleSplit(_OneClassSplitter):
    """Random splits of the targets; a random share of the outliers joins each validation part.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    train_size, test_size : float, default=0.6 and 0.2
        Shares of the targets that are trained on and validated on; the paper keeps the last 0.2
        for the test.
    outlier_size : float, default=0.5
        Share of the outliers that is validated on.
    random_state : int, RandomState or None
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1] * 10 + [-1] * 4)
    >>> train, test = next(OneClassShuffleSplit(random_state=0).split(y, y))
    >>> len(train), (y[train] == -1).any(), len(test), int((y[test] == -1).sum())
    (6, np.False_, 4, 2)
    """

    n_splits: int = field(default=10, kw_only=False)
    train_size: float = 0.6
    test_size: float = 0.2
    outlier_size: float = 0.5
    random_state: Any = None

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Yield (train, test) indices: train holds targets only."""
        targets, outliers = self._targets_and_outliers(X, y)
        sizes = (self.train_size, self.test_size, self.outlier_size)
        if not all(0 < size <= 1 for size in sizes) or self.train_size + self.test_size > 1 + 1e-9:
            raise ValueError(
                f"train_size, test_size, outlier_size: got {sizes}; expected shares in (0, 1], of "
                "which the first two add up to at most 1."
            )
        rng = check_random_state(self.random_state)
        n_train = round(self.train_size * len(targets))
        n_test = max(1, round(self.test_size * len(targets)))
        n_outer = min(len(outliers), max(1, round(self.outlier_size * len(outliers))))
        n_train = min(n_train, len(targets) - n_test)
        if n_train < 2:
            raise ValueError(
                f"train_size={self.train_size:g} of {len(targets)} target(s) leaves {n_train} to "
                "train on; expected at least 2."
            )
        for _ in range(self.n_splits):
            inner, outer = rng.permutation(targets), rng.permutation(outliers)[:n_outer]
            test = np.concatenate([inner[n_train : n_train + n_test], outer])
            yield np.sort(inner[:n_train]), np.sort(test)


def one_class_splits(
    cv: Any, labels: Indices, *, need_outliers: bool, random_state: Any = None
) -> list[tuple[Indices, Indices]]:
    """Splits from whatever scikit-learn accepts as ``cv``, checked and without outliers in train.

    None or a number is `OneClassKFold`; ``need_outliers`` asks for some in each validation part.
    """
    if cv is None or (isinstance(cv, int | np.integer) and not isinstance(cv, bool)):
        cv = OneClassKFold(5 if cv is None else int(cv), random_state=random_state)
    placeholder = np.zeros((len(labels), 1))
    splits = []
    for k, (train, test) in enumerate(check_cv(cv).split(placeholder, labels)):
        train, test = np.asarray(train), np.asarray(test)
        train = train[labels[train] == 1]
        if len(train) < 2:
            raise ValueError(f"cv: fold {k} has {len(train)} target(s) to train on; expected 2.")
        if not (labels[test] == 1).any():
            raise ValueError(
                f"cv: the validation part of fold {k} has no targets (y = +1), so nothing can be "
                "judged on it. Use kernull.selection.OneClassKFold."
            )
        if need_outliers and not (labels[test] == -1).any():
            raise ValueError(
                f"cv: the validation part of fold {k} has no outliers (y = -1), which this "
                "scoring needs. Use kernull.selection.OneClassKFold, or a scoring that needs "
                "targets only."
            )
        splits.append((train, test))
    if not splits:
        raise ValueError("cv: got no split at all.")
    return splits


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
        low = estimator.decision_function(rows.outliers)
        return float(auc_of(np.asarray(high), np.asarray(low)))

    return score

"""Outliers never train; every row is validated on as promised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.svm import OneClassSVM

from kernull.operators import DenseStack
from kernull.splitters import OneClassKFold, TargetsOnly
from tests.plain import plain_fisher


@given(
    targets=st.integers(5, 30),
    outliers=st.one_of(st.just(0), st.integers(5, 20)),
    k=st.integers(2, 5),
    shuffle=st.booleans(),
    seed=st.integers(0, 99),
)
def test_k_folds_partition_targets_and_outliers(targets, outliers, k, shuffle, seed):
    y = np.random.default_rng(seed).permutation(np.r_[np.ones(targets), -np.ones(outliers)])
    folds = list(OneClassKFold(k, shuffle=shuffle, random_state=seed).split(y, y))
    assert len(folds) == k
    seen = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(seen), np.arange(len(y)))
    for train, test in folds:
        assert (y[train] == 1).all()
        assert not set(train) & set(test)
        assert len(train) + (y[test] == 1).sum() == targets


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.r_[np.ones(20), -np.ones(3)], "got only 3 outlier"),
        (np.r_[np.ones(3), -np.ones(30)], "got only 3 target"),
        (np.r_[np.ones(20), -np.ones(1)], "a single outlier"),
    ],
)
def test_folds_without_outliers_or_targets_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        next(OneClassKFold(5).split(y, y))


@pytest.mark.parametrize(
    ("y", "message"),
    [([0, 1, 1], "label"), ([-1, -1, -1], "no target"), ([1, 1], "2 labels for 3 rows")],
)
def test_labels_are_checked(y, message):
    with pytest.raises(ValueError, match=message):
        list(OneClassKFold(2).split(np.zeros((3, 1)), y))


def wine():
    X, label = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(label == 0, 1, -1)


def test_searches_of_scikit_learn_train_on_targets_alone():
    X, y = wine()
    seen = []

    class Spy(OneClassSVM):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(X)
            return super().fit(X)

    grid = {"estimator__nu": [0.05, 0.2], "estimator__gamma": [0.01, 0.1]}
    cv = OneClassKFold(3, random_state=0)
    search = GridSearchCV(TargetsOnly(Spy()), grid, cv=cv, scoring="roc_auc").fit(X, y)
    assert search.best_score_ > 0.9
    targets = {row.tobytes() for row in X[y == 1]}
    assert len(seen) == 4 * 3 + 1
    assert all(row.tobytes() in targets for rows in seen for row in rows)
    assert len(seen[-1]) == (y == 1).sum()
    assert search.predict(X).shape == y.shape
    assert search.best_estimator_.score_samples(X).shape == y.shape


def test_searches_slice_stacks_on_both_sides():
    X, y = wine()
    stack = DenseStack(np.exp(-((X[:, None] - X) ** 2)).transpose(2, 0, 1))
    model = TargetsOnly(plain_fisher(kernels="precomputed"))
    cv = OneClassKFold(3, random_state=0)
    search = GridSearchCV(model, {"estimator__p": [1, 2]}, cv=cv, scoring="roc_auc").fit(stack, y)
    assert search.best_score_ > 0.9
    assert len(search.best_estimator_.estimator_.coef_) == (y == 1).sum()
    assert search.decision_function(stack).shape == y.shape

"""Folds by content, and scores of rows by models that did not see them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from kernull.detector import assign_folds, cross_fit

#: Few different values, so that rows repeat.
ROWS = st.integers(1, 30).flatmap(
    lambda n: arrays(float, (n, 2), elements=st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan]))
)
N_FOLDS = st.integers(2, 12)


def differ(a, b):
    """Whether two rows differ in content: one zero, NaN equals NaN."""
    return not np.array_equal(a, b, equal_nan=True)


@given(ROWS, N_FOLDS, st.integers(0, 5))
def test_folds_are_of_equal_size(X, n_folds, seed):
    fold = assign_folds(X, n_folds, random_state=seed)
    sizes = np.bincount(fold)
    assert len(sizes) == min(n_folds, len(X))
    assert sizes.max() - sizes.min() <= 1


@given(ROWS, N_FOLDS)
def test_copies_fall_into_different_folds(X, n_folds):
    fold = assign_folds(X, n_folds)
    for i, row in enumerate(X):
        copies = [k for k in range(len(X)) if not differ(X[k], row)]
        if i == copies[0]:
            sizes = np.bincount(fold[copies], minlength=fold.max() + 1)
            assert sizes.max() - sizes.min() <= 1


@given(ROWS, N_FOLDS, st.randoms(use_true_random=False))
def test_permuting_rows_permutes_folds(X, n_folds, random):
    order = list(range(len(X)))
    random.shuffle(order)
    fold, permuted = assign_folds(X, n_folds), assign_folds(X[order], n_folds)
    for k in range(fold.max() + 1):  # copies may have changed places: each fold has the same rows
        assert sorted(map(str, X[fold == k] + 0.0)) == sorted(
            map(str, X[order][permuted == k] + 0.0)
        )


@given(ROWS, N_FOLDS, st.data())
def test_a_group_shares_a_fold(X, n_folds, data):
    groups = np.array(data.draw(st.lists(st.integers(0, 6), min_size=len(X), max_size=len(X))))
    fold = assign_folds(X, n_folds, groups)
    of_group = [np.unique(fold[groups == g]) for g in np.unique(groups)]
    assert all(len(folds) == 1 for folds in of_group)
    sizes = np.bincount(np.concatenate(of_group))
    assert len(sizes) == min(n_folds, len(of_group))
    assert sizes.max() - sizes.min() <= 1
    renamed = assign_folds(X, n_folds, np.array(["b", "z", "a", "y", "c", "x", "d"])[groups])
    reversed_rows = assign_folds(X[::-1], n_folds, groups[::-1])
    if len({tuple(sorted(map(str, X[groups == g] + 0.0))) for g in np.unique(groups)}) == len(
        of_group
    ):  # else groups are copies, which take folds in order of occurrence
        np.testing.assert_array_equal(renamed, fold)
        np.testing.assert_array_equal(reversed_rows[::-1], fold)


def test_a_seed_draws_the_folds(rng):
    X = rng.normal(size=(50, 3))
    fold = assign_folds(X, 5)
    np.testing.assert_array_equal(assign_folds(X, 5, random_state=0), fold)
    np.testing.assert_array_equal(assign_folds(X, 5, random_state=np.random.RandomState(0)), fold)
    assert (assign_folds(X, 5, random_state=1) != fold).any()
    together = np.mean([assign_folds(X, 5, random_state=s)[0] == fold[1] for s in range(300)])
    assert together == pytest.approx(0.2, abs=0.08)


def test_any_container(rng):
    X = rng.normal(size=(40, 2)).round(1)
    fold = assign_folds(X, 4)
    names = ["a", "b"]
    for same in (X.tolist(), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        np.testing.assert_array_equal(assign_folds(same, 4), fold)
    by_format = [assign_folds(sparse.coo_array(X).asformat(f), 4) for f in ("csr", "csc", "coo")]
    np.testing.assert_array_equal(by_format[0], by_format[1])
    np.testing.assert_array_equal(by_format[0], by_format[2])
    mixed = pd.DataFrame({"number": X[:, 0], "word": rng.choice(["u", "v", None], 40)})
    fold = assign_folds(mixed, 4)
    assert np.bincount(fold).tolist() == [10] * 4
    mixed = mixed.drop_duplicates()
    fold = assign_folds(mixed, 4)
    np.testing.assert_array_equal(assign_folds(mixed[::-1], 4)[::-1], fold)
    assert sorted(assign_folds(["some", "words", "alone"], 3)) == [0, 1, 2]


def test_sparse_rows_are_their_entries():
    stored = sparse.csr_array(([1.0, 0.0, 2.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    clean = sparse.csr_array([[1.0, 0.0], [0.0, 2.0]])
    for seed in range(5):
        np.testing.assert_array_equal(
            assign_folds(stored, 2, random_state=seed), assign_folds(clean, 2, random_state=seed)
        )
    assert stored.nnz == 3  # the caller's matrix is as it was


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_each_row_by_a_refit_without_its_fold(rng, threads):
    X = rng.normal(size=(17, 3))
    for n_folds in (2, 5, 17):
        fold = assign_folds(X, n_folds)
        left_out = cross_fit(
            lambda rows: (X[rows].mean(axis=0), len(rows)),
            lambda model, rows: np.column_stack([X[rows] @ model[0], np.full(len(rows), model[1])]),
            fold,
            threads,
        )
        for i in range(17):
            others = [k for k in range(17) if fold[k] != fold[i]]
            assert left_out[i, 0] == pytest.approx(X[i] @ X[others].mean(axis=0))
            assert left_out[i, 1] == len(others)


def test_an_error_in_a_fold_is_raised_as_it_is():
    def fit(rows):
        raise ValueError("X: too odd.")

    for threads in (1, 2):
        with pytest.raises(ValueError, match="X: too odd"):
            cross_fit(fit, lambda model, rows: rows, np.array([0, 1, 2]), threads)

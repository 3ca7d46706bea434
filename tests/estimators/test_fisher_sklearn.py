"""MultiKernelFisherNull in scikit-learn's world: searches, pipelines, tables, clones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

import kernull
from kernull import KernelStack
from kernull.operators import DenseStack
from tests.plain import VIEWS, plain_fisher


def test_clone_and_pickle(wine, fitted):
    others = wine[1]
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.score_samples(others), fitted.score_samples(others))
    np.testing.assert_array_equal(again.predict(others), fitted.predict(others))
    blank = clone(fitted)
    with pytest.raises(NotFittedError):
        blank.score_samples(others)
    refitted = blank.fit(wine[0])
    np.testing.assert_array_equal(refitted.weights_, fitted.weights_)


def one_class_splits(y, seed=0):
    """Train on normal rows alone, test on normal and other rows."""
    splits = StratifiedKFold(3, shuffle=True, random_state=seed).split(y, y)
    return [(train[y[train] == 1], test) for train, test in splits]


@pytest.mark.filterwarnings("ignore::kernull.errors.CannotFlagWarning")  # of narrow kernels
def test_grid_search_over_a_table(wine):
    X, y = np.concatenate(wine), np.repeat([1, -1], [59, 119])
    grid = {"p": [1.0, 2.0], "delta": [1e-3, 1e-1], "widths": [0.25, (0.25, 1.0)]}
    search = GridSearchCV(
        plain_fisher(views=VIEWS),
        grid,
        scoring="roc_auc",
        cv=one_class_splits(y),
        refit=False,
    ).fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    # One cell by hand.
    train, test = one_class_splits(y)[0]
    params = search.cv_results_["params"][3]
    model = plain_fisher(views=VIEWS, **params).fit(X[train])
    by_hand = roc_auc_score(y[test], model.decision_function(X[test]))
    assert search.cv_results_["split0_test_score"][3] == pytest.approx(by_hand)


def test_grid_search_over_a_stack(wine):
    X, y = np.concatenate(wine), np.repeat([1, -1], [59, 119])
    stack = DenseStack.of(plain_fisher(views=VIEWS).fit(X).kernel_set_)
    grid = {"p": [1.0, 2.0], "delta": [1e-3, 1e-1]}
    splits = one_class_splits(y)
    search = GridSearchCV(
        plain_fisher("precomputed"), grid, scoring="roc_auc", cv=splits, refit=False
    ).fit(KernelStack(stack.kernels), y)
    train, test = splits[1]
    K = stack.kernels
    model = plain_fisher("precomputed", **search.cv_results_["params"][2])
    model.fit(K[:, train][:, :, train])
    by_hand = roc_auc_score(y[test], model.decision_function(K[:, test][:, :, train]))
    assert search.cv_results_["split1_test_score"][2] == pytest.approx(by_hand)


def test_cross_validation_of_a_stack(stacks):
    train = stacks[0]
    model = plain_fisher("precomputed")
    out = cross_val_predict(model, KernelStack(train), cv=3, method="decision_function")
    keep = np.arange(10, 30)
    by_hand = model.fit(train[:, keep][:, :, keep]).decision_function(train[:, :10][:, :, keep])
    np.testing.assert_allclose(out[:10], by_hand)


def test_pipeline(wine):
    X, others = wine
    model = plain_fisher(views=VIEWS)
    pipe = make_pipeline(PowerTransformer(), model).fit(X)
    transformer = PowerTransformer().fit(X)
    by_hand = clone(model).fit(transformer.transform(X))
    np.testing.assert_allclose(
        pipe.score_samples(others), by_hand.score_samples(transformer.transform(others))
    )
    assert set(pipe.predict(others)) <= {-1, 1}
    make_pipeline(StandardScaler(), plain_fisher()).fit_predict(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_keep_their_names(wine, library):
    lib = pytest.importorskip(library)
    names = [f"column {i}" for i in range(13)]
    tables = [lib.DataFrame(dict(zip(names, X.T, strict=True))) for X in wine]
    by_position = plain_fisher(views=VIEWS).fit(wine[0])
    by_name = plain_fisher(
        views={
            "taste": slice("column 0", "column 5"),
            "phenols": ["column 6", "column 7", "column 8"],
            "look": names[9:],
        }
    ).fit(tables[0])
    assert list(by_name.feature_names_in_) == names
    np.testing.assert_allclose(by_name.weights_, by_position.weights_, rtol=1e-12)
    np.testing.assert_allclose(
        by_name.score_samples(tables[1]), by_position.score_samples(wine[1]), rtol=1e-12
    )
    features = plain_fisher(views="features").fit(tables[0])
    assert list(features.kernel_names_) == names
    backwards = tables[1][names[::-1]]
    np.testing.assert_array_equal(
        by_name.score_samples(backwards), by_name.score_samples(tables[1])
    )
    with pytest.raises(ValueError, match="feature names"):  # no view names a column
        plain_fisher().fit(tables[0]).score_samples(backwards)


def test_views_from_join_views(rng):
    parts = {"a": rng.normal(size=(30, 4)), "b": rng.normal(size=(30, 2))}
    table, views = kernull.join_views(parts)
    model = plain_fisher(views=views).fit(table)
    assert list(model.kernel_names_) == ["a", "b"]
    again = plain_fisher(views={"b": slice(4, 6), "a": slice(0, 4)}).fit(table)
    np.testing.assert_allclose(again.weights_, model.weights_[::-1], atol=1e-6)


def test_fitting_twice_forgets_the_first_fit(wine, rng):
    model = plain_fisher(views="features").fit(wine[0])
    model.fit(wine[1][:, :4])
    fresh = plain_fisher(views="features").fit(wine[1][:, :4])
    np.testing.assert_array_equal(model.weights_, fresh.weights_)
    assert model.n_features_in_ == 4


def test_parameters_are_left_alone(wine):
    views = {"a": [0, 1], "b": [2]}
    model = plain_fisher(views=views, widths=[0.5, 1.0]).fit(wine[0])
    assert model.views is views
    assert model.get_params()["widths"] == [0.5, 1.0]
    X = wine[0].copy()
    plain_fisher(scaling="none").fit(X)
    np.testing.assert_array_equal(X, wine[0])

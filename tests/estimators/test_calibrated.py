"""Calibrated: any detector with p-values, against a loop of refits."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.cluster import KMeans
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernull import Calibrated, MultiKernelFisherNull, TableViews
from kernull.detector import assign_folds
from kernull.errors import OutlierLabelsWarning, TooFewRowsWarning

FOREST = IsolationForest(n_estimators=10, random_state=0)

EXPECTED_FAILURES = {
    "check_outliers_fit_predict": (
        "demands fit(X).predict(X) == fit_predict(X); here fit_predict judges each training row by "
        "the model that did not see it, and predict takes the same row as a new one"
    ),
}


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")  # of a dozen rows
@pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")
@parametrize_with_checks(
    [Calibrated(FOREST), Calibrated(LocalOutlierFactor(novelty=True))],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class Given(OutlierMixin, BaseEstimator):
    """The first column is the score: nothing is learned."""

    def fit(self, X, y=None):
        return self

    def score_samples(self, X):
        return X[:, 0]


class Remembers(OutlierMixin, BaseEstimator):
    """1 for rows whose first number was there in fit, else 0."""

    def fit(self, X, y=None):
        self.seen_ = set(X[:, 0].tolist())
        return self

    def decision_function(self, X):
        return np.array([[value in self.seen_] for value in X[:, 0].tolist()])


def column(values):
    return np.asarray(values, dtype=float)[:, None]


def naive(estimator, X, new, folds, groups=None):
    """Left-out scores and p-values in loops."""
    fold = assign_folds(X, folds, groups)
    left_out = np.empty(len(X))
    for i in range(len(X)):
        others = [k for k in range(len(X)) if fold[k] != fold[i]]
        left_out[i] = clone(estimator).fit(X[others]).score_samples(X[[i]])[0]
    groups = list(range(len(X)) if groups is None else groups)
    weight = [1.0 / groups.count(g) for g in groups]
    n, ranked = sum(weight), sorted(zip(left_out, weight, strict=True))
    p = []
    for s in clone(estimator).fit(X).score_samples(new):
        below = [pair for pair in ranked if pair[0] <= s]
        above = [pair for pair in ranked if pair[0] > s]
        rank = 1.0 + sum(w for _, w in below)
        if below and above:  # the last row at or below counts by where s lies
            low, high = below[-1][0], above[0][0]
            rank -= below[-1][1] * (1.0 - max((s - low) / (high - low), 1e-6))
        p.append(rank / (n + 1.0))
    return left_out, np.array(p)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), LocalOutlierFactor(5, novelty=True)),
        make_pipeline(PCA(2), GaussianMixture(1)),
    ],
    ids=["LOF", "PCA"],
)
def test_p_values_are_those_of_a_loop(rng, estimator, grouped):
    X, new = rng.normal(size=(40, 3)), 1.5 * rng.normal(size=(60, 3))
    groups = rng.integers(0, 25, 40) if grouped else None
    left_out, p = naive(estimator, X, new, 7, groups)
    model = Calibrated(estimator, folds=7).fit(X, groups=groups)
    np.testing.assert_allclose(model.left_out_scores_, left_out, rtol=1e-10)
    np.testing.assert_allclose(model.p_values(new), p, rtol=1e-8)
    np.testing.assert_array_equal(model.predict(new) == -1, p <= 0.05)
    assert 0 < (p <= 0.05).sum() < 60
    judged = Calibrated(estimator, folds=7).fit_predict(X, groups=groups)
    np.testing.assert_array_equal(judged == -1, left_out < model.threshold_)


SCORES = st.lists(
    st.floats(-3, 3) | st.sampled_from([0.0, 1.0, np.inf, -np.inf, np.nan, 1e308, -1e308]),
    min_size=2,
    max_size=40,
)


@given(SCORES, st.floats(0.01, 0.9), st.booleans(), st.data())
def test_flags_and_p_values_agree_on_every_score(scores, rate, grouped, data):
    groups = None
    if grouped:
        label = st.integers(0, 9)
        groups = [0, 1, *data.draw(st.lists(label, min_size=len(scores), max_size=len(scores)))]
        scores = [0.5, 0.25, *scores]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows, and of scores that are all equal
        model = Calibrated(Given(), false_alarm_rate=rate).fit(column(scores), groups=groups)
    near = np.array([*scores, model.threshold_, 0.1])
    with np.errstate(over="ignore"):
        near = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
    p, flagged = model.p_values(column(near)), model.predict(column(near)) == -1
    np.testing.assert_array_equal(flagged, p <= model.false_alarm_rate_ * (1 + 1e-12))
    np.testing.assert_array_equal(flagged, model.decision_function(column(near)) < 0)
    order = np.argsort(model.score_samples(column(near)))
    assert (np.diff(p[order]) >= 0).all()
    one_in = model.rarity(column(near))
    assert (np.diff(one_in[order]) <= 0).all()
    assert (one_in >= 1).all()
    assert (one_in <= 100 * model.calibration_.total).all()
    inside = model.score_samples(column(near)) >= model.calibration_.scores[0]
    np.testing.assert_allclose(one_in[inside], 1 / p[inside])
    # As a row that is left out meets the others: at most the share asked for, ties included.
    weight = np.ones(len(scores)) if groups is None else 1 / np.bincount(groups)[groups]
    odd = model.left_out_scores_ < model.threshold_
    assert weight[odd].sum() <= model.false_alarm_rate_ * (weight.sum() + 1) * (1 + 1e-9)


def test_scores_that_are_no_numbers_are_the_oddest(rng):
    model = Calibrated(Given()).fit(column(rng.normal(size=99)))
    odd = column([np.nan, -np.inf, -1e308, -1e3])
    assert (model.predict(odd) == -1).all()
    np.testing.assert_allclose(model.p_values(odd), 0.01)
    np.testing.assert_allclose(model.rarity(odd), 9900)
    assert model.predict(column([np.inf])) == 1
    assert np.isfinite(model.decision_function(odd)).all()
    # Rows outside of all others' support: more of them than the rate, so that none is flagged.
    dense = Calibrated(KernelDensity(kernel="tophat", bandwidth=0.3)).fit(rng.normal(size=(60, 2)))
    assert (dense.predict(50 + rng.normal(size=(5, 2))) == 1).all()


def test_scores_that_are_all_equal():
    with pytest.warns(UserWarning, match="estimator: the left-out scores of all 50 rows are equal"):
        model = Calibrated(Given()).fit(column(np.ones(50)))
    np.testing.assert_array_equal(model.predict(column([0.0, 1.0, 2.0])), [-1, 1, 1])
    np.testing.assert_allclose(model.p_values(column([0.0, 1.0, 2.0])), [1 / 51, 1, 1], rtol=1e-6)
    np.testing.assert_allclose(model.rarity(column([0.0, 1.0])), [51, 1], rtol=1e-6)


def test_rarity_beyond_the_training_rows_by_hand():
    scores = np.arange(100.0)
    model = Calibrated(Given()).fit(column(scores))
    tau = np.mean([scores[10] - s for s in scores[:10]])
    x = np.array([0.1, 3.0, 40.0])
    expected = 101 * (1 + x / (10 * tau)) ** 10
    np.testing.assert_allclose(model.rarity(column(-x)), np.minimum(expected, 10_000))
    assert expected[0] < 10_000 < expected[-1]


def test_rarity_is_kept(rng):
    rare = []
    for _ in range(20):
        model = Calibrated(LocalOutlierFactor(novelty=True)).fit(rng.normal(size=(200, 3)))
        rare.append(model.rarity(rng.normal(size=(1000, 3))) >= 1000)
    assert np.mean(rare) <= 0.003


def test_groups_are_left_out_together():
    X = column(np.repeat(np.arange(30), 3))
    with pytest.warns(UserWarning, match="equal"):
        model = Calibrated(Remembers()).fit(X)
    assert (model.left_out_scores_ == 1).all()  # by copies, in other folds
    with pytest.warns(UserWarning, match="equal"):
        model = Calibrated(Remembers()).fit(X, groups=X[:, 0])
    assert (model.left_out_scores_ == 0).all()
    assert model.calibration_.total == pytest.approx(30)


def test_groups_reach_a_detector_that_takes_them(rng):
    """Else a kernel's width is the distance between copies, and no score tells new rows apart."""
    rows = 2.0 * rng.normal(size=(180, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(180, 6))
    X = np.repeat(rows[:60], 4, axis=0)
    X, groups = X + 1e-3 * rng.normal(size=X.shape), np.repeat(np.arange(60), 4)
    model = Calibrated(make_pipeline(PCA(3), MultiKernelFisherNull())).fit(X, groups=groups)
    inner = MultiKernelFisherNull().fit(PCA(3).fit_transform(X), groups=groups)
    found = model.estimator_[-1].calibration_.scores
    np.testing.assert_allclose(found, inner.calibration_.scores, rtol=1e-8)
    assert (model.predict(rows[60:]) == -1).mean() < 0.15
    assert (model.predict(10 * rows[60:]) == -1).mean() > 0.5


def test_a_group_counts_as_one_row():
    scores, groups = [0.0, 1.0, 1.0, 1.0, 2.0], [0, 1, 1, 1, 2]
    model = Calibrated(Given(), false_alarm_rate=0.3).fit(column(scores), groups=groups)
    np.testing.assert_allclose(
        model.p_values(column([-1.0, 1.0, 1.5, 2.0])), [1 / 4, 2 / 4, 2.5 / 4, 4 / 4], rtol=1e-5
    )


def test_eleven_fits(rng):
    fits = []

    class Counted(Given):
        def fit(self, X, y=None):
            fits.append(len(X))
            return self

    Calibrated(Counted()).fit(rng.normal(size=(100, 2)))
    assert sorted(fits) == [90] * 10 + [100]
    fits.clear()
    with pytest.warns(TooFewRowsWarning):
        Calibrated(Counted()).fit(rng.normal(size=(4, 2)))
    assert sorted(fits) == [3] * 4 + [4]


def test_permuting_the_rows_permutes_the_scores(rng):
    X, new, order = rng.normal(size=(80, 3)), rng.normal(size=(20, 3)), rng.permutation(80)
    detector = make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True))
    one, other = Calibrated(detector).fit(X), Calibrated(detector).fit(X[order])
    np.testing.assert_allclose(other.left_out_scores_, one.left_out_scores_[order], rtol=1e-10)
    np.testing.assert_allclose(other.p_values(new), one.p_values(new), rtol=1e-8)


def test_threads_change_nothing(rng):
    X, new = rng.normal(size=(80, 3)), rng.normal(size=(20, 3))
    for detector in (FOREST, make_pipeline(PCA(2), MultiKernelFisherNull())):
        one, two = (Calibrated(detector, n_jobs=jobs).fit(X) for jobs in (1, 2))
        np.testing.assert_allclose(two.left_out_scores_, one.left_out_scores_, rtol=1e-10)
        np.testing.assert_allclose(two.p_values(new), one.p_values(new), rtol=1e-8)


def test_frames_and_sparse_rows(rng):
    X, new, names = rng.normal(size=(60, 3)), rng.normal(size=(20, 3)), ["a", "b", "c"]
    plain = Calibrated(FOREST).fit(X)
    assert plain.n_features_in_ == 3
    assert not hasattr(plain, "feature_names_in_")
    for frame in (
        lambda rows: pd.DataFrame(rows, columns=names),
        lambda rows: pl.DataFrame(rows, schema=names),
    ):
        model = Calibrated(FOREST).fit(frame(X))
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.p_values(frame(new)), plain.p_values(new))
    for layout in (sparse.csr_array, sparse.coo_array, sparse.csc_matrix):
        model = Calibrated(FOREST).fit(layout(X))
        np.testing.assert_array_equal(model.score_samples(layout(new)), plain.score_samples(new))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.filterwarnings("ignore::kernull.errors.GapsWarning")
def test_tables_of_text_and_gaps_in_a_pipeline(rng, library):
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["u", "v"], 90)
    frame.loc[5, "a"] = None
    table = frame if library == "pandas" else pl.from_pandas(frame)
    model = Calibrated(make_pipeline(TableViews(), MultiKernelFisherNull())).fit(table[:70])
    assert ((model.p_values(table[70:]) > 0) & (model.p_values(table[70:]) <= 1)).all()
    assert model.left_out_scores_.shape == (70,)


def test_a_warning_of_all_rows_is_not_repeated_for_each_fold(rng):
    X = rng.normal(size=(100, 3))
    X[::3, 1] = np.nan
    X[:8, [0, 2]] = 20.0 + rng.normal(size=(8, 2))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        Calibrated(make_pipeline(TableViews(), MultiKernelFisherNull())).fit(X)
    assert sorted(w.category.__name__ for w in told) == ["GapsWarning", "SuspectRowsWarning"]


@pytest.mark.torch
def test_tensors(rng):
    import torch

    X, new = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    expected = Calibrated(FOREST).fit(X).p_values(new)
    found = Calibrated(FOREST).fit(torch.tensor(X)).p_values(torch.tensor(new))
    np.testing.assert_array_equal(found, expected)


def test_parameters_reach_the_detector(rng):
    model = Calibrated(make_pipeline(PCA(2), IsolationForest(random_state=0)))
    model.set_params(estimator__isolationforest__n_estimators=3, folds=4)
    copy = clone(model)
    assert copy.get_params()["estimator__isolationforest__n_estimators"] == 3
    copy.fit(rng.normal(size=(40, 3)))
    assert len(copy.estimator_[-1].estimators_) == 3
    assert not hasattr(copy.estimator[-1], "estimators_")  # the given one is left as it was


def test_a_failed_fit_changes_nothing(rng):
    X = rng.normal(size=(60, 3))
    model = Calibrated(LocalOutlierFactor(novelty=True)).fit(X)
    before = dict(vars(model))
    other = X.copy()
    other[3, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(other)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        Calibrated(FOREST).p_values(X)


@pytest.mark.parametrize(
    "detector",
    [
        FOREST,
        LocalOutlierFactor(novelty=True),
        OneClassSVM(),
        make_pipeline(StandardScaler(), KernelDensity()),
        make_pipeline(PCA(3), MultiKernelFisherNull()),
        EllipticEnvelope(support_fraction=0.9, random_state=0),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_rates_are_kept(detector):
    """Realised rates of single fits vary by two points at 200 rows; the mean of five, by one."""
    for name in ("normal", "lognormal"):
        rates = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            X, new = getattr(rng, name)(size=(200, 5)), getattr(rng, name)(size=(1000, 5))
            rates.append((Calibrated(detector).fit(X).predict(new) == -1).mean())
        assert 0.02 < np.mean(rates) < 0.08


def test_outliers_are_found(rng):
    X = rng.normal(size=(300, 4))
    new = np.vstack([rng.normal(size=(180, 4)), 8 + rng.normal(size=(20, 4))])
    model = Calibrated(LocalOutlierFactor(novelty=True)).fit(X)
    found = model.detect(new, fdr=0.2)
    assert found[180:].all()
    assert found[:180].mean() < 0.1
    assert (model.rarity(new[180:]) > 1000).all()
    with pytest.raises(ValueError, match="fdr"):
        model.detect(new, fdr=2)


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (Calibrated(FOREST, folds=1), {}, ValueError, "folds: got 1"),
        (Calibrated(FOREST, folds=2.5), {}, ValueError, "folds: got 2.5"),
        (Calibrated(FOREST, folds=True), {}, ValueError, "folds: got True"),
        (Calibrated(FOREST, false_alarm_rate=5), {}, ValueError, "false_alarm_rate: got 5"),
        (Calibrated(FOREST), {"groups": [1, 2]}, ValueError, "groups: got shape"),
        (Calibrated(FOREST), {"groups": [1] * 30}, ValueError, "groups: all rows are of one"),
        (Calibrated(IsolationForest), {}, TypeError, "estimator: got <class"),
        (Calibrated("forest"), {}, TypeError, "estimator: got 'forest'"),
        (Calibrated(LocalOutlierFactor()), {}, TypeError, "novelty=True"),
        (Calibrated(KMeans(2)), {}, TypeError, "neither score_samples nor decision_function"),
        (Calibrated(MultiKernelFisherNull("precomputed")), {}, ValueError, "precomputed"),
        (Calibrated(OneClassSVM(kernel="precomputed")), {}, ValueError, "precomputed"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_name_the_argument(rng, model, options, error, message):
    with pytest.raises(error, match=message):
        model.fit(rng.normal(size=(30, 3)), **options)


def test_outliers_marked_in_y_are_told(rng):
    X = rng.normal(size=(30, 3))
    with pytest.warns(OutlierLabelsWarning, match="1 of 30 rows are marked -1"):
        Calibrated(FOREST).fit(X, np.r_[-1, np.ones(29)])
    Calibrated(FOREST).fit(X, np.ones(30))


def test_scores_of_another_shape_are_refused(rng):
    class Two(Given):
        def score_samples(self, X):
            return X[:, :2]

    with pytest.raises(ValueError, match="estimator: Two gave scores of shape"):
        Calibrated(Two()).fit(rng.normal(size=(30, 3)))


def test_pyod_is_the_other_way_round(rng):
    pytest.importorskip("pyod")
    from pyod.models.knn import KNN

    X, far = rng.normal(size=(60, 3)), 9 + rng.normal(size=(5, 3))
    for detector in (KNN(), make_pipeline(StandardScaler(), KNN())):
        with pytest.raises(TypeError, match=r"estimator: got PyOD's KNN.*class Turned\(KNN\)"):
            Calibrated(detector).fit(X)

    class Turned(KNN):
        def score_samples(self, X):
            return -self.decision_function(X)

    for detector in (Turned(), make_pipeline(StandardScaler(), Turned())):
        assert (Calibrated(detector).fit(X).predict(far) == -1).all()

"""Peers in our conventions: their own scores, our thresholds."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from benchmarks.peers import AveragedOneClassSVM, TableDetector, get_method, pyod_detector
from kernull.errors import MissingDependencyError

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(80, 3)), RNG.normal(size=(30, 3)) * 2

HONEST = "the threshold comes from scores of rows left out"


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        TableDetector(IsolationForest(n_estimators=5), calibration_folds=2),
        TableDetector("LocalOutlierFactor", calibration_folds=2),
    ],
    expected_failed_checks=lambda _: {
        "check_outliers_fit_predict": HONEST,
    },
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_averaged_one_class_svm_is_sklearns_on_the_mean():
    kernels = np.stack([rbf_kernel(X, gamma=g) for g in (0.2, 2.0)])
    new = np.stack([rbf_kernel(X_NEW, X, gamma=g) for g in (0.2, 2.0)])
    oracle = OneClassSVM(kernel="precomputed", nu=0.2).fit(kernels.mean(axis=0))
    model = AveragedOneClassSVM("precomputed", nu=0.2).fit(kernels)
    np.testing.assert_allclose(
        model.score_samples(new), oracle.score_samples(new.mean(axis=0)), atol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("IsolationForest", IsolationForest(random_state=0)),
        ("LocalOutlierFactor", LocalOutlierFactor(novelty=True)),
    ],
)
def test_scores_are_the_detectors_own(name, oracle):
    scaler = StandardScaler().fit(X)
    expected = oracle.fit(scaler.transform(X)).score_samples(scaler.transform(X_NEW))
    for model in (
        TableDetector(name, random_state=0, calibration_folds=2),
        get_method(name).make(calibration_folds=2),
    ):
        np.testing.assert_allclose(model.fit(X).score_samples(X_NEW), expected, atol=1e-10)


def test_calibration_is_of_rows_left_out():
    model = TableDetector("LocalOutlierFactor", calibration_folds=80, scaling="none").fit(X)
    left_out = [
        LocalOutlierFactor(novelty=True).fit(np.delete(X, i, 0)).score_samples(X[[i]])[0]
        for i in range(80)
    ]
    np.testing.assert_allclose(model.calibration_.scores, np.sort(left_out), atol=1e-12)


def test_false_alarms_on_fresh_rows_keep_the_rate():
    rng = np.random.default_rng(3)
    model = TableDetector("LocalOutlierFactor", false_alarm_rate=0.1)
    model.fit(rng.normal(size=(300, 2)))
    assert 0.04 < (model.predict(rng.normal(size=(3000, 2))) == -1).mean() < 0.16


def test_unknown_detector():
    with pytest.raises(ValueError, match="detector: got 'Forest'"):
        TableDetector("Forest").fit(X)


class TestPyOD:
    def test_any_detector_by_name(self):
        pyod = pytest.importorskip("pyod.models.knn")
        scaler = StandardScaler().fit(X)
        oracle = pyod.KNN().fit(scaler.transform(X))
        model = get_method("PyOD KNN").make().fit(X)
        np.testing.assert_allclose(
            model.score_samples(X_NEW), -oracle.decision_function(scaler.transform(X_NEW))
        )
        assert model.threshold_ > model.score_samples(np.full((1, 3), 50.0))[0]
        assert pyod_detector("KNN", n_neighbors=3).n_neighbors == 3

    @pytest.mark.filterwarnings("ignore:.*false_alarm_rate")
    def test_fewer_rows_than_neighbours(self):
        pyod = pytest.importorskip("pyod.models.knn")
        oracle = pyod.KNN(n_neighbors=3).fit(X[:4])
        model = TableDetector("PyOD KNN", scaling="none").fit(X[:4])
        np.testing.assert_allclose(model.score_samples(X_NEW), -oracle.decision_function(X_NEW))

    def test_unknown_name(self):
        pytest.importorskip("pyod")
        with pytest.raises(ValueError, match="PyOD has none named 'NoSuch'"):
            pyod_detector("NoSuch")

    def test_without_pyod(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyod", None)
        monkeypatch.setitem(sys.modules, "pyod.models", None)
        with pytest.raises(MissingDependencyError, match="pip install pyod"):
            TableDetector("PyOD ECOD").fit(X)

"""Detectors of scikit-learn and PyOD as a user would call them, on one standardised table.

They are fitted once and score rows; `benchmarks.peers.TableDetector` would refit each ten times for
a threshold that nobody asked for here, and their times would not be theirs.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator
from sklearn.covariance import LedoitWolf, ledoit_wolf_shrinkage
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import KFold
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks.peers import pyod_detector
from experiments.pseudo import pseudo_outliers

NEIGHBOURS = 5


class Standardised(BaseEstimator):
    """A detector behind a standardisation by the training rows; higher scores are more normal."""

    def __init__(self, detector):
        self.detector = detector

    def fit(self, X):
        self.scaler_ = StandardScaler().fit(X)
        self.detector.fit(self.scaler_.transform(X))
        return self

    def score_samples(self, X):
        Z = self.scaler_.transform(X)
        if type(self.detector).__module__.startswith("pyod."):  # there, higher is more abnormal
            return -np.asarray(self.detector.decision_function(Z), dtype=float)
        return np.asarray(self.detector.score_samples(Z), dtype=float)


class RowByRow(BaseEstimator):
    """PyOD's ECOD or COPOD as they score rows that come one by one.

    Both rank new rows among training and new rows taken together. Where most of the new rows are
    outliers, outliers become the norm (on wine, an AUC of 0.5 instead of 0.9). So each row is
    ranked among the training rows and itself: what ``decision_function`` gives for it alone, for
    all rows at once.
    """

    def __init__(self, name):
        self.name = name

    def fit(self, X):
        pyod_detector(self.name)  # where PyOD is not installed, that is said
        self.columns_ = np.sort(X, axis=0)
        self.sums_ = [power.sum(axis=0) for power in (X, X * X, X * X * X)]
        return self

    def score_samples(self, X):
        n = len(self.columns_) + 1
        surprise = -np.log(np.arange(1, n + 1) / n)  # of a tail with so many rows
        left, right = np.empty_like(X), np.empty_like(X)
        for j, column in enumerate(np.ascontiguousarray(self.columns_.T)):
            values = np.ascontiguousarray(X[:, j])
            left[:, j] = surprise[np.searchsorted(column, values, side="right")]
            right[:, j] = surprise[n - 1 - np.searchsorted(column, values, side="left")]
        powers = (X, X * X, X * X * X)
        one, two, three = (s + power for power, s in zip(powers, self.sums_, strict=True))
        mean = one / n
        third = three / n - 3 * mean * two / n + 2 * mean * mean * mean
        # Without spread there is no skew, but rounding would find one.
        third[two / n - mean**2 <= 1e-12 * np.maximum(two / n, 1e-300)] = 0.0
        skew = np.sign(third)
        skewed = left * -np.sign(skew - 1) + right * np.sign(skew + 1)
        tails = np.maximum(left, right) if self.name == "ECOD" else (left + right) / 2
        return -np.maximum(skewed, tails).sum(axis=1)


class MeanNeighbourDistance(BaseEstimator):
    """Minus the mean distance to the nearest neighbours."""

    def __init__(self, neighbours=NEIGHBOURS):
        self.neighbours = neighbours

    def fit(self, X):
        self.index_ = NearestNeighbors(n_neighbors=min(self.neighbours, len(X))).fit(X)
        return self

    def score_samples(self, X):
        return -self.index_.kneighbors(X)[0].mean(axis=1)


class Mahalanobis(BaseEstimator):
    """Minus the squared Mahalanobis distance by the covariance of Ledoit and Wolf.

    With more columns than rows, the shrunk covariance (1 - s) Z'Z / n + t I is inverted by
    Woodbury's identity: what `LedoitWolf` gives, in a hundredth of its time.
    """

    def fit(self, X):
        n, d = X.shape
        self.covariance_ = None
        if d <= n:
            self.covariance_ = LedoitWolf().fit(X)
            return self
        self.mean_ = X.mean(axis=0)
        self.rows_ = X - self.mean_
        shrinkage = ledoit_wolf_shrinkage(X)
        self.floor_ = shrinkage * (self.rows_**2).sum() / (n * d)
        self.share_ = 1 - shrinkage
        inner = self.share_ * (self.rows_ @ self.rows_.T)
        inner.flat[:: n + 1] += self.floor_ * n
        self.factor_ = cho_factor(inner)
        return self

    def score_samples(self, X):
        if self.covariance_ is not None:
            return -self.covariance_.mahalanobis(X)
        Z = X - self.mean_
        cross = self.rows_ @ Z.T
        explained = self.share_ * (cross * cho_solve(self.factor_, cross)).sum(axis=0)
        return -((Z**2).sum(axis=1) - explained) / self.floor_


class TunedOneClassSVM(BaseEstimator):
    """OneClassSVM whose nu and gamma a user chooses without outliers.

    Criterion: AUC of held-out targets (three folds) against pseudo-outliers around all targets
    (columns permuted, rows jittered, pairs extrapolated). ``grid_scores`` gives the scores of every
    model of the grid, for the oracle.
    """

    NUS = (0.01, 0.05, 0.1, 0.2, 0.5)
    FACTORS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
    ROWS = 300

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X):
        rng = np.random.default_rng(self.random_state)
        self.rows_ = X
        variance = X.var()
        # The default, gamma="scale", stands in the middle.
        self.gammas_ = [f / (X.shape[1] * (variance or 1.0)) for f in self.FACTORS]
        pseudo = pseudo_outliers(X, self.ROWS, rng)
        inner = euclidean_distances(X, squared=True)
        outer = euclidean_distances(pseudo, X, squared=True)
        folds = KFold(min(3, len(X)), shuffle=True, random_state=self.random_state)
        found = np.zeros((len(self.gammas_), len(self.NUS)))
        for seen, held in folds.split(X):
            labels = np.r_[np.ones(len(held)), np.zeros(len(pseudo))]
            for g, gamma in enumerate(self.gammas_):
                K = np.exp(-gamma * inner[np.ix_(seen, seen)])
                cross = np.exp(-gamma * np.vstack([inner[np.ix_(held, seen)], outer[:, seen]]))
                for v, nu in enumerate(self.NUS):
                    machine = OneClassSVM(kernel="precomputed", nu=nu).fit(K)
                    found[g, v] += roc_auc_score(labels, machine.score_samples(cross))
        self.best_ = np.unravel_index(int(np.argmax(found)), found.shape)
        self.inner_ = inner
        return self

    def _scores(self, outer, g, nu):
        machine = OneClassSVM(kernel="precomputed", nu=nu)
        machine.fit(np.exp(-self.gammas_[g] * self.inner_))
        return machine.score_samples(np.exp(-self.gammas_[g] * outer))

    def score_samples(self, X):
        g, v = self.best_
        return self._scores(euclidean_distances(X, self.rows_, squared=True), g, self.NUS[v])

    def grid_scores(self, X):
        outer = euclidean_distances(X, self.rows_, squared=True)
        for g in range(len(self.gammas_)):
            for nu in self.NUS:
                yield self._scores(outer, g, nu)


#: Every peer by name: from a seed to an unfitted detector.
PEERS = {
    "OneClassSVM": lambda seed: OneClassSVM(),
    "OneClassSVM, tuned": lambda seed: TunedOneClassSVM(random_state=seed),
    "IsolationForest": lambda seed: IsolationForest(random_state=seed),
    "LocalOutlierFactor": lambda seed: LocalOutlierFactor(novelty=True),
    "5 nearest neighbours": lambda seed: MeanNeighbourDistance(),
    "1 nearest neighbour": lambda seed: MeanNeighbourDistance(1),
    "Mahalanobis": lambda seed: Mahalanobis(),
    "PyOD ECOD": lambda seed: RowByRow("ECOD"),
    "PyOD COPOD": lambda seed: RowByRow("COPOD"),
    "PyOD KNN": lambda seed: pyod_detector("KNN"),
    "PyOD INNE": lambda seed: pyod_detector("INNE", random_state=seed),
}


def peer(name, seed):
    """An unfitted peer behind its standardisation."""
    return Standardised(PEERS[name](seed))

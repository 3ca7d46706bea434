"""Detectors of other libraries, so that they stand in the same tables and give thresholds."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array, Indices
from kernull.detector import assign_folds, cross_fit
from kernull.detector.calibration import Cross, LeftOut
from kernull.detector.model import RuleFit, calibrate
from kernull.detector.rows import Training
from kernull.errors import need
from kernull.estimators.base import OneClassKernelEstimator
from kernull.estimators.inputs import read_rows
from kernull.mkl.problems import check_nu
from kernull.paper._fusion import fuse, fused_blocks
from kernull.views import fit_scaling, read_scalings


class AveragedOneClassSVM(OneClassKernelEstimator):
    r"""scikit-learn's OneClassSVM on one fused kernel.

    .. math:: s(x) = \sum_i a_i k(x_i, x), \qquad 0 \le a_i \le 1,\; 1'a = \nu n

    Parameters
    ----------
    kernels, views, scaling, widths, fusion
        As in `FisherNull`.
    nu : float in (0, 1], default=0.1
        Bound on the share of training rows outside.
    false_alarm_rate, calibration, random_state
        As in `MultiKernelFisherNull`.

    Attributes
    ----------
    machine_ : OneClassSVM
        The fitted machine.
    threshold_, offset_, false_alarm_rate_, kernel_names_
        As in `MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = AveragedOneClassSVM(views="features").fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).mean() > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        scaling: Any = "standard",
        widths: Any = 0.5,
        fusion: str = "average",
        nu: float = 0.1,
        false_alarm_rate: float = 0.05,
        calibration: Any = "cross",
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            kernels,
            views,
            scaling=scaling,
            widths=widths,
            false_alarm_rate=false_alarm_rate,
            calibration=calibration,
            random_state=random_state,
        )
        self.fusion = fusion
        self.nu = nu

    @property
    def machine_(self) -> Any:
        """The fitted machine."""
        check_is_fitted(self)
        return self.model_.rule.machine

    def _method(self) -> FusedMachine:
        """The method with its parameters, checked."""
        return FusedMachine(self.fusion, check_nu(self.nu))


@dataclass(frozen=True, eq=False)
class MachineRule:
    """Scores by scikit-learn's machine on a fused kernel."""

    fusion: str
    machine: OneClassSVM
    times: float = 1.0

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        out = np.empty(len(cross))
        for rows, K in fused_blocks(cross, self.fusion):
            out[rows] = self.machine.score_samples(K)
        return out * self.times


@dataclass(frozen=True)
class FusedMachine:
    """scikit-learn's OneClassSVM on one fused kernel."""

    fusion: str
    nu: float
    total: int | None = None
    """Rows of another machine, on whose scale scores are given."""

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from a dense stack."""
        K = fuse(training.stack, self.fusion)
        machine = OneClassSVM(kernel="precomputed", nu=self.nu).fit(K)
        # Sums of a are nu times the rows learned from.
        times = 1.0 if self.total is None else self.total / len(K)
        rule = MachineRule(self.fusion, machine, times)
        return RuleFit(rule, again=FusedMachine(self.fusion, self.nu, len(K)))


class TableDetector(OutlierMixin, BaseEstimator):
    """A detector of scikit-learn or PyOD on one scaled table of all columns.

    It gets what the kernel methods get: a threshold from scores of rows it did not see, and higher
    scores for what is more normal.

    Parameters
    ----------
    detector : str or detector, default="IsolationForest"
        ``"IsolationForest"``, ``"LocalOutlierFactor"``, ``"PyOD NAME"`` for a detector of PyOD
        or an unfitted detector of either library.
    scaling : {"standard", "whiten", "whiten-raw", "none"}, default="standard"
        Scaling of the table by training statistics.
    calibration_folds : int, default=10
        Folds of the cross-scores that give the threshold.
    false_alarm_rate : float, default=0.05
        Share of normal rows that may be flagged.
    random_state : int or None, default=None
        Seed, for detectors that take one.

    Attributes
    ----------
    detector_ : detector
        The fitted detector.
    scaler_ : transformer
        The scaling of the table.
    cross_scores_ : array of shape (n,)
        Score of each training row by a detector of other folds.
    threshold_, offset_, false_alarm_rate_
        As in `MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TableDetector("LocalOutlierFactor").fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).mean() > 0.9)
    True
    """

    def __init__(
        self,
        detector: Any = "IsolationForest",
        *,
        scaling: Any = "standard",
        calibration_folds: int = 10,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.detector = detector
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit scaling and detector to a table (n, d) of normal rows; calibrate by cross-scores."""
        table = read_rows(self, X, reset=True)
        folds = Cross(self.calibration_folds).count(len(table))
        (scaling,) = read_scalings(self.scaling)
        self.scaler_, _ = fit_scaling(scaling, table)
        rows = self.scaler_.transform(table)
        self.detector_ = self._new_detector(len(rows)).fit(rows)

        def fit(seen: Indices) -> Any:
            return self._new_detector(len(seen)).fit(rows[seen])

        scores = cross_fit(
            fit, lambda detector, held: _scores(detector, rows[held]), assign_folds(table, folds)
        )
        self.cross_scores_ = scores
        found = calibrate(LeftOut(scores), self.false_alarm_rate)
        self.calibration_, self.false_alarm_rate_ = found["calibration"], found["false_alarm_rate"]
        self.offset_: float = found["threshold"]
        return self

    @property
    def threshold_(self) -> float:
        """Score below which rows are flagged."""
        check_is_fitted(self)
        return self.offset_

    def score_samples(self, X: Any) -> Array:
        """Score rows; higher is more normal."""
        check_is_fitted(self)
        rows = self.scaler_.transform(read_rows(self, X, reset=False))
        return _scores(self.detector_, rows)

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold: negative where a row is flagged."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """+1 for normal rows, -1 for flagged ones."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Fit, and judge each training row by its cross-score."""
        self.fit(X)
        return np.where(self.cross_scores_ >= self.offset_, 1, -1)

    def _new_detector(self, n: int) -> Any:
        named = isinstance(self.detector, str)
        detector = _named_detector(self.detector) if named else clone(self.detector)
        if isinstance(detector, LocalOutlierFactor):
            # Only in this mode does it score rows that it was not fitted to.
            detector.set_params(novelty=True)
        neighbours = detector.get_params().get("n_neighbors")
        if neighbours is not None and neighbours >= n:  # a row has n - 1 neighbours at most
            detector.set_params(n_neighbors=max(n - 1, 1))
        if self.random_state is not None and "random_state" in detector.get_params():
            detector.set_params(random_state=self.random_state)
        return detector


def _named_detector(name: str) -> Any:
    known = {"IsolationForest": IsolationForest, "LocalOutlierFactor": LocalOutlierFactor}
    if name in known:
        return known[name]()
    if name.startswith("PyOD "):
        return pyod_detector(name.removeprefix("PyOD "))
    raise ValueError(
        f"detector: got {name!r}; expected 'IsolationForest', 'LocalOutlierFactor', 'PyOD NAME' "
        "or an unfitted detector."
    )


def _scores(detector: Any, rows: Array) -> Array:
    if type(detector).__module__.startswith("pyod."):  # there, higher is more abnormal
        return -np.asarray(detector.decision_function(rows), dtype=float)
    return np.asarray(detector.score_samples(rows), dtype=float)


def pyod_detector(name: str, **params: Any) -> Any:
    """An unfitted detector of PyOD by its class's name.

    Parameters
    ----------
    name : str
        For example ``"ECOD"``, ``"KNN"`` or ``"AutoEncoder"``.
    **params
        Parameters of the detector.
    """
    otherwise = f"the detector {name!r} of PyOD needs pyod: pip install pyod."
    models = need("pyod.models", otherwise)
    # PyOD keeps class NAME in a module of that name in lower case, with or without underscores.
    modules = [info.name for info in pkgutil.iter_modules(models.__path__)]
    for module in modules:
        if module.replace("_", "") == name.lower().replace("_", ""):
            found = getattr(import_module(f"pyod.models.{module}"), name, None)
            if found is not None:
                return found(**params)
    known = sorted(m for m in modules if not m.startswith("base"))
    raise ValueError(
        f"detector: PyOD has none named {name!r}; expected a class such as 'ECOD' in one of "
        f"{known}."
    )

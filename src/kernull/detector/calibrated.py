"""False-alarm rates for any detector of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import false_discovery_control
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._typing import Array, Mask
from kernull.detector.cross_fit import assign_folds, cross_fit
from kernull.detector.ranks import MOST_TIMES, LeftOutRanks


class Calibrated(MetaEstimatorMixin, OutlierMixin, BaseEstimator):
    r"""Any detector with p-values, flags at a false-alarm rate that you name, and rarities.

    The detector is fitted once without each fold of the training rows. A new row is scored by the
    model of every fold, and ranked among the rows that this model did not see:

    .. math:: p(x) = \frac{1 + \sum_k \#\{i \text{ in fold } k: s_i \le s_k(x)\}}{n + 1}

    Whatever the detector learns from rows, a scaling, components or a contamination, it learns
    without the rows that it judges; so preprocessing belongs inside, in a pipeline.

    Parameters
    ----------
    estimator : estimator
        A detector or a pipeline with ``score_samples`` or ``decision_function``, higher for more
        normal rows, as in scikit-learn: IsolationForest, LocalOutlierFactor(novelty=True),
        ``make_pipeline(PCA(20), MultiKernelFisherNull())``.
    false_alarm_rate : float in (0, 1), default=0.05
        Share of new normal rows that `predict` flags.
    folds : int, default=10
        Models that are fitted, each without one part of the rows. New rows are scored by all.
    n_jobs : int, optional
        Folds that are fitted, or score, at the same time, in threads.
    random_state : int, RandomState instance or None, default=0
        Draws the folds, from the content of the rows: permuting these changes nothing.

    Attributes
    ----------
    estimators_ : list of estimators
        The model of each fold, which has not seen its rows.
    ranks_ : LeftOutRanks
        Scores of all rows by the models that did not see them.
    false_alarm_rate_ : float
        The rate that is kept: that asked for, or 1/(n + 1) where that is larger.
    offset_ : float
        Logarithm of ``false_alarm_rate_``: rows with no higher score are flagged.
    n_features_in_, feature_names_in_
        Those of the estimators, where they have them.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> rng = np.random.default_rng(0)
    >>> model = Calibrated(IsolationForest(random_state=0)).fit(rng.normal(size=(200, 4)))
    >>> rate = (model.predict(rng.normal(size=(1000, 4))) == -1).mean()
    >>> bool(0.02 < rate < 0.08)
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        false_alarm_rate: float = 0.05,
        folds: int = 10,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.false_alarm_rate = false_alarm_rate
        self.folds = folds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit the estimator without each fold, and score the fold.

        Parameters
        ----------
        X : array or table of shape (n, d)
            Training rows, all taken to be normal.
        y : ignored
        groups : array of shape (n,), optional
            Group of each row, such as the patient it comes from: rows of a group are left out
            together, and each group counts as one row.
        """
        n = _num_samples(X)
        member = None
        if groups is not None:
            if len(groups) != n:
                raise ValueError(f"groups: got {len(groups)} labels; expected {n}, one per row.")
            member = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
        units = n if member is None else int(member.max()) + 1
        whole = isinstance(self.folds, int | np.integer) and not isinstance(self.folds, bool)
        if not whole or self.folds < 2:
            raise ValueError(f"folds: got {self.folds!r}; expected a whole number, at least 2.")
        if units < 2:
            name = "n_samples" if member is None else "groups"
            raise ValueError(f"X: got {name} = {units}; expected at least 2, to leave one out.")
        fold = assign_folds(X, int(self.folds), member, self.random_state)
        self.estimators_, left_out = cross_fit(
            lambda rows: clone(self.estimator).fit(_safe_indexing(X, rows)),
            lambda model, rows: _scores(model, _safe_indexing(X, rows)),
            fold,
            self.n_jobs,
        )
        self.ranks_ = LeftOutRanks(left_out, fold, member)
        self.false_alarm_rate_ = self.ranks_.read_rate(self.false_alarm_rate)
        self.offset_ = float(np.log(self.false_alarm_rate_))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def _fold_scores(self, X: Any) -> Array:
        """Score of each row by the model of each fold, of shape (m, folds)."""
        check_is_fitted(self)
        return np.column_stack(
            Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_scores)(model, X) for model in self.estimators_
            )
        )

    def p_values(self, X: Any) -> Array:
        """P-value of each row, of shape (m,): small where few left-out rows score as low."""
        return self.ranks_.p_values(self._fold_scores(X))

    def score_samples(self, X: Any) -> Array:
        """Logarithm of the p-value of each row, of shape (m,), continued below 1/(n + 1)."""
        return self.ranks_.log_p_values(self._fold_scores(X))

    def decision_function(self, X: Any) -> Array:
        """Score less ``offset_``: at most zero where a row is flagged."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """-1 for rows whose p-value is at most the false-alarm rate, 1 for others."""
        return np.where(self.p_values(X) <= self.false_alarm_rate_ * (1 + 1e-12), -1, 1)

    def fit_predict(self, X: Any, y: Any = None, *, groups: Any = None) -> Array:
        """Fit, and flag training rows by the models that did not see them."""
        p_values = self.fit(X, y, groups=groups).ranks_.left_out_p_values()
        return np.where(p_values <= self.false_alarm_rate_ * (1 + 1e-12), -1, 1)

    def rarity(self, X: Any) -> Array:
        """How rare each row is: one in so many normal rows is as odd, at most 100 n."""
        log_p = self.score_samples(X)
        return np.exp(np.minimum(-log_p, np.log(MOST_TIMES * self.ranks_.total)))

    def detect(self, X: Any, fdr: float = 0.1) -> Mask:
        """Flag rows of a batch so that a share ``fdr`` of them is normal, by Benjamini-Hochberg."""
        return np.asarray(false_discovery_control(self.p_values(X)) <= fdr)

    def __sklearn_tags__(self) -> Tags:
        """Input as the estimator takes it."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _scores(model: Any, X: Any) -> Array:
    """Scores of rows, higher for more normal ones."""
    score = getattr(model, "score_samples", None) or getattr(model, "decision_function", None)
    if score is None:
        raise TypeError(
            f"estimator: got {type(model).__name__}, which has neither score_samples nor "
            "decision_function; expected a detector that scores new rows."
        )
    return np.asarray(score(X), dtype=float).ravel()

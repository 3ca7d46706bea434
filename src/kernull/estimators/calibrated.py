"""A false-alarm rate for any detector of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._typing import Array, Mask
from kernull.calibration import Calibration, discoveries
from kernull.calibration.evidence import Tails, rarity
from kernull.calibration.left_out_distances import read_groups
from kernull.detector import assign_folds, cross_fit


class Calibrated(MetaEstimatorMixin, OutlierMixin, BaseEstimator):
    r"""Any detector, with p-values, flags at a false-alarm rate that you name, and rarities.

    The detector is fitted to all rows, and again without each fold of them. Its scores s(x) of new
    rows are ranked among the scores of the training rows by the models that did not see them:

    .. math:: p(x) = \frac{1 + \#\{i : s_i^{-k(i)} \le s(x)\}}{n + 1}

    Whatever the detector learns from rows, such as a scaling, components or neighbours, it learns
    again without the rows that it judges. So preprocessing belongs inside, in a pipeline.

    Parameters
    ----------
    estimator : estimator
        A detector or a pipeline with ``score_samples`` or ``decision_function``, higher for more
        normal rows, as in scikit-learn: IsolationForest, LocalOutlierFactor(novelty=True),
        ``make_pipeline(PCA(20), MultiKernelFisherNull())``.
    false_alarm_rate : float in (0, 1), default=0.05
        Share of new normal rows that `predict` flags.
    folds : int, default=10
        Number of folds, each left out once.
    n_jobs : int, optional
        Folds that are fitted at the same time, in threads.
    random_state : int, RandomState instance or None, default=0
        Draws the folds from the content of the rows: permuting the rows changes nothing.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to all rows.
    calibration_ : Calibration
        Scores of the training rows by models that did not see them.
    left_out_scores_ : array of shape (n,)
        The same, in the order of the training rows.
    threshold_, offset_ : float
        Score below which rows are flagged.
    false_alarm_rate_ : float
        The rate that is kept: that asked for, or 1/(n + 1) where that is larger.
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    See Also
    --------
    MultiKernelFisherNull : Calibrated by itself; only preprocessing in front of it needs this.

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
        """Fit the estimator to all rows, and to the rows outside of each fold.

        Parameters
        ----------
        X : array or table of shape (n, d)
            Training rows, all taken to be normal.
        y : ignored
        groups : array of shape (n,), optional
            Group of each row, such as the patient it comes from. Rows of a group are left out
            together, and each group counts as one row.
        """
        n = _num_samples(X)
        member = read_groups(groups, n)
        sizes = np.bincount(member)
        whole = isinstance(self.folds, int | np.integer) and not isinstance(self.folds, bool)
        if not whole or self.folds < 2:
            raise ValueError(f"folds: got {self.folds!r}; expected a whole number, at least 2.")
        if len(sizes) < 2:
            raise ValueError(f"X: got n_samples = {n}; expected at least 2, to leave one out.")
        _, self.left_out_scores_ = cross_fit(
            lambda rows: clone(self.estimator).fit(_safe_indexing(X, rows)),
            lambda model, rows: _scores(model, _safe_indexing(X, rows)),
            assign_folds(X, int(self.folds), member, self.random_state),
            self.n_jobs,
        )
        self.estimator_ = clone(self.estimator).fit(X)
        weight = None if groups is None else 1.0 / sizes[member]
        self.calibration_ = Calibration.of(self.left_out_scores_, weight, smooth=True)
        self.threshold_, self.false_alarm_rate_ = self.calibration_.threshold(self.false_alarm_rate)
        self.offset_ = self.threshold_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def score_samples(self, X: Any) -> Array:
        """Scores of the estimator that was fitted to all rows, of shape (m,)."""
        check_is_fitted(self)
        return _scores(self.estimator_, X)

    def decision_function(self, X: Any) -> Array:
        """Score less ``threshold_``, of shape (m,): negative where a row is flagged."""
        return self.score_samples(X) - self.threshold_

    def predict(self, X: Any) -> Array:
        """-1 for rows whose p-value is at most the false-alarm rate, 1 for others."""
        return np.where(self.score_samples(X) < self.threshold_, -1, 1)

    def fit_predict(self, X: Any, y: Any = None, *, groups: Any = None) -> Array:
        """Fit, and flag training rows by the models that did not see them."""
        self.fit(X, groups=groups)
        return np.where(self.left_out_scores_ < self.threshold_, -1, 1)

    def p_values(self, X: Any) -> Array:
        """P-value of each row, of shape (m,): small where few left-out rows score as low."""
        return self.calibration_.p_values(self.score_samples(X))

    def rarity(self, X: Any) -> Array:
        """How rare each row is, of shape (m,): one in so many normal rows is as odd.

        Beyond the training rows it is extrapolated by an exponential tail, up to 100 n.
        """
        return rarity(-self.score_samples(X), Tails.fit(self.left_out_scores_))[0]

    def detect(self, X: Any, fdr: float = 0.1) -> Mask:
        """Flag rows of one batch, a mask (m,), a share ``fdr`` of which is normal at most.

        By the procedure of Benjamini and Hochberg.
        """
        return discoveries(self.p_values(X), fdr)

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

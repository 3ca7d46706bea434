"""A false-alarm rate for any detector of scikit-learn."""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any, Self

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from kernull._containers import as_numpy
from kernull._fields import Checked, Range, Shape, stored
from kernull._typing import Array, Indices, Mask
from kernull.detector import assign_folds, cross_fit
from kernull.detector.calibration import Calibration, Cross, discoveries, rank_weights, read_groups
from kernull.errors import collected, warn
from kernull.estimators.inputs import check_labels, rollback_on_error

#: Largest score in absolute value, so that differences of scores are finite.
LARGEST_SCORE = 0.25 * np.finfo(float).max


@stored
class Calibrated(Checked, MetaEstimatorMixin, OutlierMixin, BaseEstimator):
    r"""Any detector, with p-values, flags at a false-alarm rate that you choose, and rarities.

    The detector is fitted to all rows, and once without each fold of them. The score s(x) of a new
    row is ranked among the scores of the n training rows, each by the model that did not see it:

    .. math:: p(x) = \frac{1 + \#\{i : s_i^{-k(i)} \le s(x)\}}{n + 1}

    and interpolated between these ranks. Whatever the detector learns from rows (a scaling,
    components, neighbours) it learns again without the rows that it judges. So preprocessing
    belongs inside, in a pipeline.

    Parameters
    ----------
    estimator : estimator
        A detector or a pipeline with ``score_samples`` or ``decision_function``, higher for more
        normal rows: ``make_pipeline(PCA(20), MultiKernelFisherNull())``. NaN counts below all
        numbers.
    false_alarm_rate : float in (0, 1), default=0.05
        Share of new normal rows that `predict` flags.
    folds : int, default=10
        Number of folds, at least 2. Where rows (or groups) are fewer, each is a fold.
    n_jobs : int, optional
        Number of folds fitted at the same time, in threads; as in joblib.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds. A row's fold depends on its content, in the order of its columns, not
        on its position.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to all rows; it scores new ones.
    left_out_scores_ : array of shape (n,)
        Score of each training row by the model that did not see it.
    calibration_ : Calibration
        The same scores in increasing order.
    threshold_, offset_ : float
        Score below which rows are flagged.
    false_alarm_rate_ : float
        The rate that is kept: that asked for, or 1/(n + 1) where that is larger.
    rows_, groups_ : array of shape (n, d), array of shape (n,) or None
        What `fit` had: a file keeps them, to fit the estimator again.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, where it has them.

    See Also
    --------
    MultiKernelFisherNull : Calibrated by itself; only preprocessing in front of it needs this.

    Notes
    -----
    That the rate is kept is measured (``benchmarks/calibrated.py``), not proved. It takes new
    normal rows to be drawn as the training rows were, one by one or, with ``groups``, group by
    group.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> rng = np.random.default_rng(0)
    >>> model = Calibrated(IsolationForest(random_state=0)).fit(rng.normal(size=(200, 4)))
    >>> rate = (model.predict(rng.normal(size=(1000, 4))) == -1).mean()
    >>> bool(0.02 < rate < 0.08)
    True
    """

    rows_: Annotated[Array, Shape("n", "_d")]
    groups_: Annotated[Indices | None, Shape("n"), Range(low=0)]
    left_out_scores_: Annotated[Array, Shape("n")]

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
        """Fit the estimator to all rows, and once without each fold.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Training rows, all taken to be normal; whatever the estimator takes.
        y : ignored
            Rows with ``y = -1`` are learned from like all others, with a warning: pass
            ``X[y == 1]``.
        groups : array of shape (n,), optional
            Group of each row, such as the patient it comes from. Rows of a group are left out
            together, and a group counts as one row in p-values. They are passed on to a detector
            whose ``fit`` takes ``groups``, as that of MultiKernelFisherNull does.
        """
        if y is not None:
            check_labels(X, y, stacklevel=2)
        _check_detector(self.estimator)
        X = _indexable(X)
        n = _num_samples(X)
        folds = Cross(self.folds).count(n)
        if n < 2:
            raise ValueError(f"X: got n_samples = {n}; expected at least 2, to leave one out.")
        group = read_groups(groups, n)
        with rollback_on_error(self):
            self.rows_, self.groups_ = X, None if groups is None else group
            left_out = cross_fit(
                self._fit_fold,
                lambda model, rows: _detector_scores(model, _safe_indexing(X, rows)),
                assign_folds(X, folds, group, self.random_state),
                effective_n_jobs(self.n_jobs),
            )
            if np.ptp(left_out) == 0:
                warn(
                    f"estimator: the left-out scores of all {n:,} rows are equal. Only rows that "
                    f"score below {left_out[0] + 0.0:.3g} will be flagged.",
                    UserWarning,
                    stacklevel=2,
                )
            self.left_out_scores_ = left_out
            return self.restored()

    def restored(self) -> Self:
        """Fit the estimator to all rows, and set the threshold: what files leave out."""
        self.estimator_ = self._fit_to(np.arange(len(self.left_out_scores_)))
        weight = rank_weights(None, self.groups_, len(self.left_out_scores_))
        self.calibration_ = Calibration.of(self.left_out_scores_, weight, smooth=True)
        return self._set_rate(self.false_alarm_rate)

    def _set_rate(self, rate: float) -> Self:
        self.threshold_, self.false_alarm_rate_ = self.calibration_.threshold(rate)
        self.offset_ = self.threshold_
        return self

    def contradiction(self) -> str | None:
        """What does not fit together in a file."""
        _check_detector(self.estimator)
        return None if len(self.left_out_scores_) > 1 else "fewer than two rows"

    def _fit_to(self, rows: Indices) -> Any:
        """A copy of the estimator, fitted to some of the rows."""
        prefix, detector = _final_step(self.estimator)
        passed = {}
        if self.groups_ is not None and has_fit_parameter(detector, "groups"):
            passed[f"{prefix}groups"] = self.groups_[rows]
        return clone(self.estimator).fit(_safe_indexing(self.rows_, rows), **passed)

    def _fit_fold(self, rows: Indices) -> Any:
        """The same of the rows without a fold: warnings of all rows come once."""
        with collected(UserWarning):
            return self._fit_to(rows)

    @property
    def n_features_in_(self) -> int:
        """Number of columns, where the estimator counts them."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns, where the estimator keeps them."""
        return self.estimator_.feature_names_in_

    def at_rate(self, rate: float) -> Calibrated:
        """The same model with the threshold of another false-alarm rate.

        Parameters
        ----------
        rate : float in (0, 1)
            Share of new normal rows to be flagged.
        """
        return copy(self)._set_rate(rate)

    def score_samples(self, X: Any) -> Array:
        """Scores of the estimator fitted to all rows, of shape (m,); higher is more normal."""
        check_is_fitted(self)
        return _detector_scores(self.estimator_, _indexable(X))

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold, of shape (m,): negative where a row is flagged."""
        return self.score_samples(X) - self.threshold_

    def predict(self, X: Any) -> Array:
        """+1 for normal rows, -1 for flagged ones.

        A row is flagged where its p-value is at most ``false_alarm_rate_``. `fit_predict` is for
        training rows.
        """
        return np.where(self.score_samples(X) < self.threshold_, -1, 1)

    def fit_predict(self, X: Any, y: Any = None, *, groups: Any = None) -> Array:
        """Fit, and judge each training row by the model that did not see it."""
        self.fit(X, groups=groups)
        return np.where(self.left_out_scores_ < self.threshold_, -1, 1)

    def p_values(self, X: Any) -> Array:
        """P-value of each row, of shape (m,): small where few left-out rows score as low."""
        scores = self.score_samples(X)
        return self.calibration_.p_values(scores)

    def rarity(self, X: Any) -> Array:
        """How rare each row is, at least 1: one in so many normal rows scores as low.

        1/p; below the lowest left-out score by its tail, see `Calibration.rarity`.
        """
        scores = self.score_samples(X)
        return self.calibration_.rarity(scores)

    def detect(self, X: Any, fdr: float = 0.1) -> Mask:
        """Flag rows of one batch, a mask (m,), with about this share of false alarms among them.

        By Benjamini and Hochberg's procedure on the p-values, which are at least 1/(n + 1): of m
        rows, fewer than m / (fdr (n + 1)) outliers cannot be found.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (m, d)
            Rows to judge together.
        fdr : float in (0, 1), default=0.1
            Expected share of normal rows among those flagged.
        """
        return discoveries(self.p_values(X), fdr)

    def __sklearn_tags__(self) -> Tags:
        """Input as the estimator takes it."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _check_detector(estimator: Any) -> None:
    """Refuse what is no detector whose scores can be learned again without a fold."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator: got {estimator!r}; expected an instance of a detector or a pipeline, such "
            "as IsolationForest()."
        )
    _, detector = _final_step(estimator)
    name = type(detector).__name__
    of_pyod = any(base.__module__.partition(".")[0] == "pyod" for base in type(detector).__mro__)
    if of_pyod and not hasattr(detector, "score_samples"):
        raise TypeError(
            f"estimator: got PyOD's {name}, whose decision_function is higher for odder rows; "
            "expected higher for more normal ones. Turn it round and calibrate that: "
            f"class Turned({name}): score_samples = lambda self, X: -self.decision_function(X)"
        )
    if hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"estimator: got {name} of precomputed kernels or distances; expected one that takes "
            "rows. The estimators of kernull calibrate themselves, on precomputed kernels too."
        )


def _final_step(estimator: Any) -> tuple[str, Any]:
    """Prefix of the parameters of a pipeline's last step, and the step."""
    prefix = ""
    while hasattr(estimator, "steps"):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def _detector_scores(model: Any, X: Any) -> Array:
    """Scores of rows, finite, of shape (m,); higher is more normal."""
    score = getattr(model, "score_samples", None) or getattr(model, "decision_function", None)
    if score is None:
        raise TypeError(
            f"estimator: got {type(model).__name__}, which has neither score_samples nor "
            "decision_function; expected a detector that scores new rows, such as "
            "LocalOutlierFactor(novelty=True)."
        )
    scores = np.asarray(as_numpy(score(X)), dtype=float)
    if scores.size != _num_samples(X):
        raise ValueError(
            f"estimator: {type(model).__name__} gave scores of shape {scores.shape} for "
            f"{_num_samples(X)} rows; expected one a row."
        )
    scores = np.nan_to_num(
        scores.ravel(), nan=-LARGEST_SCORE, posinf=LARGEST_SCORE, neginf=-LARGEST_SCORE
    )
    return np.asarray(np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE))


def _indexable(X: Any) -> Any:
    """The same rows on the host, in a container that can be indexed."""
    X = as_numpy(X)
    if sparse.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "__getitem__") else np.asarray(X)

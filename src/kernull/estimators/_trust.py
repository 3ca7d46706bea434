"""Thresholds, p-values, detection and missing views: what makes an alarm worth trusting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from kernull._typing import Array, Indices, Mask
from kernull.calibration import Calibration, check_seed, discoveries, hold_out, minus_rounding
from kernull.errors import MissingCapabilityError
from kernull.estimators._arrays import as_numpy, is_dask, like, map_rows
from kernull.estimators._columns import not_finite, read_used_columns
from kernull.estimators._explain import Explanation
from kernull.estimators._misfit import misfit_of
from kernull.stacks import DenseStack

__all__ = ["TrustMixin", "names_of", "read_partial_table", "silence_kernels"]

CALIBRATIONS = ("loo", "split")
#: Of estimators whose score is a sum over kernels at weights that stay.
REFITTED = ("auto", "folds")


class _NoPartsError(MissingCapabilityError, AttributeError):
    """Raised by properties that an estimator lacks; dir() and hasattr() take it as such."""


class TrustMixin:
    """Calibrated decisions of an estimator whose score may be a sum over kernels.

    An estimator whose score is a sum over kernels implements ``_contributions(cross)``, of shape
    (m, J); sets ``_left_out_parts``, the contributions behind its leave-one-out scores, when it
    learns, or implements ``_compute_left_out_parts`` for when they are asked for; and overrides
    ``_of_projection`` where its score is a function of the sum.
    """

    # Defaults for estimators that do not offer these parameters themselves.
    calibration: str = "loo"
    calibration_fraction: Any = 0.25
    random_state: Any = 0
    false_alarm_rate: float

    # Of the estimator.
    kernel_names_: Any
    bank_: Any
    threshold_: float
    false_alarm_rate_: float
    calibration_: Calibration
    _offers_refits: bool = False
    _left_out_parts: Array | None = None
    _calibration_weight: Array | None = None
    _learned_rows: Any = None
    _contributions: Any
    _cross: Any
    _table: Any
    score_samples: Any

    # -- fitting -----------------------------------------------------------------------------

    def _hold_out(self, n: int, weight: Array | None) -> tuple[Array | None, Indices | None]:
        """Weights to fit with, and the rows held out of the fit (None for leave-one-out)."""
        known = (*CALIBRATIONS, *REFITTED) if self._offers_refits else CALIBRATIONS
        if self.calibration not in known:
            more = ", 'folds' (scores by refits), 'auto' (the first or the last)"
            raise ValueError(
                f"calibration: got {self.calibration!r}; expected 'loo' (leave-one-out scores of "
                f"all rows), 'split' (scores of rows held out){more * self._offers_refits}."
            )
        check_seed(self.random_state)
        if self.calibration != "split":
            return weight, None
        return hold_out(n, self.calibration_fraction, self.random_state, weight)

    # -- what calibration rows were made of ----------------------------------------------------

    @property
    def calibration_contributions_(self) -> Array:
        """Contribution of each kernel to each calibration score, of shape (m, J)."""
        check_is_fitted(self)
        if self._left_out_parts is None:
            self._left_out_parts = self._compute_left_out_parts()
        if self._left_out_parts is None:
            raise _NoPartsError(
                f"this {type(self).__name__} does not know its calibration scores as sums over "
                "kernels, so they cannot be taken apart by view. Use an estimator that has "
                "contributions(), such as MultiKernelFisherNull, fitted at once."
            )
        return self._left_out_parts

    @property
    def typical_contributions_(self) -> Array:
        """Mean contribution of each kernel to a normal row that the model did not see."""
        parts = self.calibration_contributions_
        return np.asarray(np.average(parts, axis=0, weights=self._calibration_weight))

    def _compute_left_out_parts(self) -> Array | None:
        return None

    # -- decisions ---------------------------------------------------------------------------

    def p_values(self, X: Any, *, missing_views: Any = None) -> Array:
        r"""Conformal p-value of each row: small where it is less normal than calibration rows.

        .. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{m + 1}

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
        missing_views : str or list of str, optional
            Views to do without; see `score_samples`.

        Returns
        -------
        array of shape (m,)
            In [1/(m + 1), 1].

        Notes
        -----
        With ``calibration="split"`` a new normal row has :math:`P(p \le \alpha) \le \alpha` for
        every :math:`\alpha`, whatever the data (split conformal). With ``"loo"`` the scores of
        all n rows are used; the same holds in practice, and exactly in the limit, but is no
        theorem. Having no bound to lose, p then interpolates between the ranks
        (`kernull.calibration.Calibration`), so that rates are not rounded down.
        """
        if is_dask(X):
            return map_rows(lambda part: self.p_values(part, missing_views=missing_views), X)  # type: ignore[no-any-return]
        scores = as_numpy(self.score_samples(X, missing_views=missing_views))
        return like(self._calibration_without(missing_views).p_values(scores), X)  # type: ignore[no-any-return]

    def detect(self, X: Any, fdr: float = 0.1, *, missing_views: Any = None) -> Mask:
        """Flag rows of one batch with at most this share of false alarms among the flags.

        The p-values of the batch go through Benjamini and Hochberg's procedure
        (``scipy.stats.false_discovery_control``).

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
            The rows to judge together.
        fdr : float in (0, 1), default=0.1
            Bound of the expected share of normal rows among those flagged.
        missing_views : str or list of str, optional
            Views to do without; see `score_samples`.

        Returns
        -------
        boolean array of shape (m,)
            True where a row is flagged.

        Notes
        -----
        The bound is proved for ``calibration="split"`` alone (Bates, Candès, Lei, Romano and Sesia
        2023). p-values of m calibration rows are at least 1/(m + 1), so a batch of which fewer
        than 1 in fdr (m + 1) rows are outliers cannot yield a discovery.
        """
        p_values = as_numpy(self.p_values(X, missing_views=missing_views))
        return like(discoveries(np.asarray(p_values), fdr), X)  # type: ignore[no-any-return]

    def explain(self, X: Any, *, missing_views: Any = None) -> Explanation:
        """Contributions of kernels and views to each score, against the typical normal row.

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
        missing_views : str or list of str, optional
            Views to do without; see `score_samples`.

        Returns
        -------
        Explanation
            With ``words(row)``, ``table()`` and ``plot(row)``.
        """
        check_is_fitted(self)
        kept, typical = self._kept_kernels(missing_views), self.typical_contributions_
        contributions = self._contributions(self._cross(X, missing_views))[:, kept]
        scores = self._partial_score(contributions, kept)
        views = self._view_of_kernel()
        table = None if self.bank_ is None else self._table(X, missing_views)
        misfit, usual = misfit_of(self, table, kept) or (None, None)
        return Explanation(
            contributions=contributions,
            typical=typical[kept],
            reference=self.calibration_contributions_[:, kept],
            kernel_names=tuple(str(self.kernel_names_[j]) for j in np.flatnonzero(kept)),
            kernel_views=tuple(views[j] for j in np.flatnonzero(kept)),
            scores=scores,
            p_values=self._calibration_without(missing_views).p_values(scores),
            threshold=self._threshold_without(missing_views),
            misfit=misfit,
            usual_misfit=usual,
        )

    # -- missing views -----------------------------------------------------------------------

    def _view_of_kernel(self) -> tuple[str, ...]:
        """Name of each kernel's view; precomputed kernels are views of their own."""
        bank = self.bank_
        if bank is None:
            return tuple(str(name) for name in self.kernel_names_)
        return tuple(bank.kernel_views)

    def _kept_kernels(self, missing_views: Any) -> Mask:
        """Mask of the kernels whose view is there."""
        views = self._view_of_kernel()
        missing = names_of(missing_views)
        unknown = [name for name in missing if name not in views]
        if unknown:
            raise ValueError(
                f"missing_views: no view {unknown[0]!r}; the model has {sorted(set(views))}."
            )
        kept = np.array([view not in missing for view in views])
        if not kept.any():
            raise ValueError(
                f"missing_views: got {sorted(missing)}, all views of the model; at least one must "
                "be there."
            )
        return kept

    def _missing_columns(self, missing_views: Any) -> Indices:
        """Columns of the table that only missing views read, so that they may hold anything."""
        missing = set(names_of(missing_views))
        bank = self.bank_
        if not missing or bank is None:
            return np.empty(0, dtype=np.intp)
        groups: dict[bool, list[Indices]] = {True: [], False: []}
        for view in bank.views:
            groups[view.name in missing].append(view.columns)
        used = np.concatenate([*groups[False], np.empty(0, dtype=np.intp)])
        return np.setdiff1d(np.concatenate(groups[True]), used)

    def _of_projection(self, projection: Array, centre: float = 1.0) -> Array:
        """From the sum over kernels, of which normal rows have ``centre``, to the score."""
        return projection

    def _partial_score(self, contributions: Array, kept: Mask) -> Array:
        """From contributions of the kept kernels to scores."""
        # Normal rows project to 1; without some views, to 1 less what those typically give.
        centre = 1.0 - float(self.typical_contributions_[~kept].sum())
        return self._of_projection(contributions.sum(axis=1), centre)

    def _score_without(self, X: Any, missing_views: Any) -> Array:
        check_is_fitted(self)
        kept = self._kept_kernels(missing_views)
        self.calibration_contributions_  # noqa: B018  says so where there are none
        contributions = self._contributions(self._cross(X, missing_views))
        return self._partial_score(contributions[:, kept], kept)

    def _calibration_without(self, missing_views: Any) -> Calibration:
        """Calibration scores of the remaining views: the same rows, exactly."""
        if not names_of(missing_views):
            return self.calibration_
        kept = self._kept_kernels(missing_views)
        scores = minus_rounding(self._partial_score(self.calibration_contributions_[:, kept], kept))
        return Calibration.of(scores, self._calibration_weight, smooth=self.calibration_.smooth)

    def _threshold_without(self, missing_views: Any) -> float:
        if not names_of(missing_views):
            return float(self.threshold_)
        calibration = self._calibration_without(missing_views)
        return calibration.threshold(self.false_alarm_rate_)[0]


def read_partial_table(estimator: Any, X: Any, ignore: Indices) -> Array:
    """A table of which some columns may hold anything, NaN included; they are set to zero.

    Columns with names may be absent altogether.
    """
    used = read_used_columns(estimator, X, reset=False, ignore=ignore)
    if used is not None:
        return used
    table = np.array(
        validate_data(estimator, X, reset=False, dtype=np.float64, ensure_all_finite=False)
    )
    table[:, ignore] = 0.0
    if not np.isfinite(table).all():
        raise ValueError(not_finite(table, scoring=True))
    return table


def silence_kernels(X: Any, kept: Mask) -> Any:
    """Precomputed kernels of which some may hold anything; they are set to zero."""
    values, scale = (X.kernels, X.scale) if isinstance(X, DenseStack) else (np.asarray(X), None)
    values = np.array(values[None] if values.ndim == 2 else values, dtype=float)
    if values.ndim == 3 and len(values) == len(kept):  # what has another shape is refused later
        values[~kept] = 0.0
    if values.ndim != 3:
        return values
    return DenseStack(values, scale, getattr(X, "own_diagonal", None), getattr(X, "names", None))


def names_of(missing_views: Any) -> tuple[str, ...]:
    """Names of views from what a user passed as ``missing_views``."""
    if missing_views is None:
        return ()
    if isinstance(missing_views, str):
        return (missing_views,)
    if isinstance(missing_views, Iterable):
        return tuple(str(name) for name in missing_views)
    raise ValueError(
        f"missing_views: got {missing_views!r}; expected the name of a view, or a list of names."
    )

"""What every one-class estimator over kernels shares: views, stacks, scores, thresholds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._typing import Array
from kernull.calibration import Calibration, minus_rounding, refit_by_fold
from kernull.errors import MissingCapabilityError
from kernull.estimators._arrays import as_numpy, cuda_device_of, is_dask, is_tensor, like, map_rows
from kernull.estimators._atomic import rollback_on_error
from kernull.estimators._auto import read_reference
from kernull.estimators._device import fit_on_device
from kernull.estimators._inputs import (
    check_names,
    names_of_kernels,
    normalised,
    read_precomputed,
    read_table,
    read_weights,
    with_diagonal,
    with_scale,
)
from kernull.estimators._leaks import leaking_view, warn_of_leak
from kernull.estimators._trust import TrustMixin, names_of, read_partial_table, silence_kernels
from kernull.stacks import CrossKernels, DenseStack, KernelSet, build_stack, parse_memory_limit
from kernull.stacks.cross import device_cross
from kernull.stacks.normalise import normalising_factors, read_normalisation
from kernull.views import resolve_views

__all__ = ["OneClassKernelEstimator"]

_DTYPES = {"float64": np.float64, "float32": np.float32}


class OneClassKernelEstimator(TrustMixin, OutlierMixin, BaseEstimator):
    """Base of all one-class estimators over a stack of kernels.

    A subclass has the parameters ``kernels, views, scaling, widths, false_alarm_rate, storage,
    memory_limit, dtype, drop_constant`` and implements

    - ``_learn(stack, sample_weight)``: learn from a square stack and return calibration scores,
      one a row (scores of each row by a model that did not see it);
    - ``_score(cross)``: scores of the rows of a cross stack, higher is more normal.

    One that sets ``_matrix_free`` may be given stacks that never form an n x n matrix. It then
    sets ``_calibration_rows``, the rows whose scores are fit for calibration (None: all).
    """

    _matrix_free = False
    _calibration_rows: Any = None
    #: Factors of the kernels given to fit; None for tables, and in files that do not know them.
    _given_scale: Any = None
    #: Factors of the normalisation, beyond those; None where there is none.
    _kernel_factors: Array | None = None
    #: Rows of reference among the rows of the stack, at its end.
    _n_reference: int = 0
    #: Of the reference, the rows that the bank keeps: all, or those among the landmarks.
    _n_reference_kept: int = 0
    #: Attributes that come back as tensors when the model was fitted on tensors.
    _array_attributes: tuple[str, ...] = ()

    kernels: Any
    views: Any
    scaling: Any
    widths: Any
    false_alarm_rate: float
    storage: str
    memory_limit: Any
    dtype: Any
    drop_constant: bool
    # Estimators that do not offer these do without.
    normalize: Any = "none"
    reference: Any = None
    random_state: Any = 0
    # Of those whose scores are sums over kernels.
    weights_: Any
    delta_: float

    # -- to be written by subclasses ---------------------------------------------------------

    def _learn(self, stack: DenseStack, sample_weight: Array | None) -> Array:
        raise NotImplementedError

    def _score(self, cross: DenseStack | CrossKernels) -> Array:
        raise NotImplementedError

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what normal looks like.

        Parameters
        ----------
        X : table of shape (n, d), or kernels of shape (J, n, n)
            Training rows, all taken to be normal; a stack of kernels when
            ``kernels="precomputed"``.
        y : ignored
            Present for scikit-learn's interface.
        sample_weight : array of shape (n,), optional
            Trust in each row: a weight w counts as w copies of the row, a weight below 1 lets the
            model miss it. For training data that is not clean.

        Returns
        -------
        self
        """
        return self._fit_rows(X, sample_weight)

    def _fit_rows(self, X: Any, sample_weight: Any, client: Any = None) -> Self:
        weight = read_weights(as_numpy(sample_weight), X)
        with rollback_on_error(self):  # never the kernels of one fit with coefficients of another
            there = X if self._device_for(X) is not None else None
            self._set_bank_and_learn(as_numpy(X), weight, client, there)
            if is_tensor(X):
                for name in self._array_attributes:
                    setattr(self, name, like(getattr(self, name), X))
        return self

    def _set_bank_and_learn(
        self, X: Any, weight: Array | None, client: Any = None, there: Any = None
    ) -> None:
        given = weight
        # Rows held out for calibration have weight zero in the fit.
        weight, held = self._hold_out(_count_rows(X), weight)
        rows = slice(None) if weight is None else np.flatnonzero(weight > 0)
        kept = None if weight is None or (weight[rows] == 1.0).all() else weight[rows]
        self._learned_rows = None if weight is None or weight.all() else rows
        self._left_out_parts = self._calibration_rows = None
        stack = self._training_stack(X, weight, rows, client, there)
        scores = self._learn(stack, kept)
        # Scores of the training rows for fit_predict; rows of weight zero are as good as new.
        self._training_scores = scores
        own = with_diagonal(X) if self._pairwise and self._learned_rows is not None else X
        if self._learned_rows is not None:
            self._training_scores = self._score(self._cross(own))
            self._training_scores[rows] = scores
        sample = slice(None) if self._calibration_rows is None else self._calibration_rows
        scores, self._calibration_weight = scores[sample], None if kept is None else kept[sample]
        if held is not None:
            scores = minus_rounding(self._training_scores[held])
            self._calibration_weight = None if given is None else given[held]
            if hasattr(self, "_contributions"):
                self._left_out_parts = self._contributions(self._cross(own))[held]
        elif (refitted := self._refitted(X, kept, rows, stack)) is not None:
            self._left_out_parts, self._calibration_rows = refitted, None
            scores = minus_rounding(self._of_projection(refitted.sum(axis=1)))
            self._calibration_weight = kept
            self._training_scores[rows] = scores
        # Held-out rows have a bound to keep; others have none to lose by interpolating.
        self.calibration_ = Calibration.of(scores, self._calibration_weight, smooth=held is None)
        self.threshold_, self.false_alarm_rate_ = self.calibration_.threshold(self.false_alarm_rate)
        self.offset_ = self.threshold_

    def _refitted(self, X: Any, kept: Array | None, rows: Any, stack: Any) -> Array | None:
        """Contributions by refits, where leave-one-out is not asked for or would lie."""
        leak = leaking_view(self.bank_, stack.n - self._n_reference)
        if self.calibration == "folds" or (self.calibration == "auto" and leak is not None):
            if self.bank_ is not None and hasattr(stack, "combine") and not self._n_reference:
                # The kernels must be those of the model, though a column be constant in a fold.
                views = {view.name: view.columns for view in self.bank_.views}
                read = np.unique(np.concatenate(list(views.values())))
                views = {name: np.searchsorted(read, own) for name, own in views.items()}
                refitted = refit_by_fold(
                    read_table(self, X, reset=False)[rows][:, read],
                    self._scaled_weights(),
                    self.delta_,
                    lambda part, weight: self._fit_bank(part, views, weight, drop=False),
                    kept,
                )
                if refitted is not None:
                    return refitted
            if self.calibration == "folds":
                raise MissingCapabilityError(
                    "calibration: got 'folds', which needs a table of at least three different "
                    "rows, kernels in memory and no reference; use 'loo' or 'split'."
                )
        if leak is not None:
            warn_of_leak(leak, stack.n - self._n_reference)
        return None

    def _scaled_weights(self) -> Array:
        """Kernel weights times the factors of the normalisation."""
        factors = 1.0 if self._kernel_factors is None else self._kernel_factors
        return np.asarray(as_numpy(self.weights_) * factors, dtype=float)

    def _fit_bank(self, table: Array, views: Any, weight: Array | None, drop: bool) -> KernelSet:
        return KernelSet.fit(
            table,
            views,
            kernels=self.kernels,
            widths=self.widths,
            scaling=self.scaling,
            sample_weight=weight,
            drop_constant=drop,
        )

    def _training_stack(
        self, X: Any, weight: Array | None, rows: Any, client: Any = None, there: Any = None
    ) -> Any:
        """The stack to learn from; ``there`` is X as a tensor on the GPU to work on."""
        dtype = self._value_type()
        limit = parse_memory_limit(self.memory_limit)
        exponent = read_normalisation(self.normalize)
        self._n_reference = self._n_reference_kept = 0
        if self._pairwise:
            if self.reference is not None:
                raise MissingCapabilityError(
                    "reference: precomputed kernels know no rows but those given; leave it None, "
                    "or fit on a table."
                )
            stack = read_precomputed(X, dtype=dtype)
            self.bank_ = None
            self.n_features_in_ = stack.n
            self._given_scale = stack.scale
            stack = stack if weight is None else stack[np.ix_(rows, rows)]
            self.kernel_names_ = names_of_kernels(stack)
        else:
            self._given_scale = None
            table = read_table(self, X, reset=True)
            views = resolve_views(
                self.views, table.shape[1], getattr(self, "feature_names_in_", None)
            )
            on_device = None
            if there is not None:
                on_device = fit_on_device(self, there, views, weight, rows, dtype)
            if on_device is not None:
                self.bank_ = on_device.to_bank()
            else:
                self.bank_ = self._fit_bank(table, views, weight, drop=self.drop_constant)
            if self.reference is not None:
                drawn = read_reference(
                    self.reference, table[rows], _at(weight, rows), self.random_state
                )
                self.bank_, self._n_reference = self.bank_.extend(drawn), len(drawn)
                self._n_reference_kept = self._n_reference
            self.kernel_names_ = np.array(self.bank_.kernel_names, dtype=object)
            stack = build_stack(
                self.bank_,
                self.storage,
                dtype=dtype,
                limit=limit,
                landmarks=getattr(self, "landmarks", 1000),
                matrix_free=self._matrix_free,
                client=client,
                device=None if there is None else there.device,
                on_device=on_device,
            )
            if hasattr(stack, "project"):  # new rows will meet the landmarks alone
                # in the order of the rows: those of the reference come last, as in a bank of rows
                targets = self.bank_.n - self._n_reference
                self._n_reference_kept = int((stack.landmark_rows >= targets).sum())
                self.bank_ = self.bank_.take(stack.landmark_rows)
        self._stack_shape = (stack.J, stack.n)
        self._kernel_factors = None
        if exponent > 0:
            counts = (
                np.ones(stack.n)
                if weight is None
                else np.append(weight[rows], np.ones(self._n_reference))
            )
            counts[stack.n - self._n_reference :] = 0.0  # what targets have in common
            self._kernel_factors = normalising_factors(stack, exponent, counts)
            stack.scale = stack.scale * self._kernel_factors
        return stack

    # -- scoring -----------------------------------------------------------------------------

    def score_samples(self, X: Any, *, missing_views: Any = None) -> Array:
        """Score rows; higher is more normal.

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
        missing_views : str or list of str, optional
            Views to do without, for all of these rows (a sensor that is dead): the score is then
            the sum over the remaining views, and thresholds and p-values are those of the same
            sum. Columns that only missing views read may hold anything, NaN included; in a table
            with column names they may be absent.

        Returns
        -------
        array of shape (m,)
        """
        check_is_fitted(self)
        if is_dask(X):
            return map_rows(lambda part: self.score_samples(part, missing_views=missing_views), X)  # type: ignore[no-any-return]
        if names_of(missing_views):
            return like(self._score_without(X, missing_views), X)  # type: ignore[no-any-return]
        return like(self._score(self._cross(X)), X)  # type: ignore[no-any-return]

    def decision_function(self, X: Any, *, missing_views: Any = None) -> Array:
        """Score minus threshold: negative where a row is flagged."""
        scores = self.score_samples(X, missing_views=missing_views)
        return scores - self._threshold_without(missing_views)

    def predict(self, X: Any, *, missing_views: Any = None) -> Array:
        """+1 for normal rows, -1 for flagged ones.

        A row is flagged exactly where its p-value is at most ``false_alarm_rate_``.
        """
        if is_dask(X):
            return map_rows(lambda part: self.predict(part, missing_views=missing_views), X, int)  # type: ignore[no-any-return]
        values = as_numpy(self.decision_function(X, missing_views=missing_views))
        return like(np.where(values >= 0, 1, -1), X)  # type: ignore[no-any-return]

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and judge each training row by a model that did not see it.

        That is its leave-one-out score, or with ``calibration="split"`` its held-out score for
        rows held out.
        """
        self.fit(X, y, **fit_params)
        return np.where(self._training_scores >= self.offset_, 1, -1)

    def _cross(self, X: Any, missing_views: Any = None) -> Any:
        missing = names_of(missing_views)
        device, X = self._device_for(X), as_numpy(X)
        if self.bank_ is None:
            if missing:
                X = silence_kernels(X, self._kept_kernels(missing_views))
            J, n = self._stack_shape
            stack = read_precomputed(self._fitted_columns(X), n=n, J=J, dtype=self._value_type())
            check_names(stack, self.kernel_names_)
            return normalised(with_scale(stack, self._given_scale), self._kernel_factors)
        table = self._table(X, missing_views)
        if device is None:
            return CrossKernels(self.bank_, table, self._kernel_factors)
        return device_cross(
            self.bank_, table, device, self._value_type(), scale=self._kernel_factors
        )

    def _table(self, X: Any, missing_views: Any = None) -> Array:
        """New rows, checked; columns that only missing views read may hold anything."""
        if names_of(missing_views):
            return read_partial_table(self, as_numpy(X), self._missing_columns(missing_views))
        return read_table(self, as_numpy(X), reset=False)

    # -- small things ------------------------------------------------------------------------

    @property
    def _pairwise(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _device_for(self, X: Any) -> Any:
        """The GPU to evaluate kernels on, or None: stacks there offer no dense algebra."""
        return cuda_device_of(X) if self._matrix_free else None

    def _fitted_columns(self, X: Any) -> Any:
        """Kernels against all rows given to fit, cut to those it learned from."""
        if self._learned_rows is None:
            return X
        values = X if isinstance(X, DenseStack) else np.asarray(X, dtype=float)
        if values.shape[-1] != self.n_features_in_:
            return X
        if isinstance(values, DenseStack):
            return values.columns(self._learned_rows)
        return values[..., self._learned_rows]

    def _value_type(self) -> Any:
        try:
            name = np.dtype(self.dtype).name
        except TypeError:
            name = ""
        if name not in _DTYPES:
            raise ValueError(f"dtype: got {self.dtype!r}; expected 'float64' or 'float32'.")
        return _DTYPES[name]

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that precomputed stacks are sliced on both sides."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        return tags


def _at(weight: Array | None, rows: Any) -> Array | None:
    return None if weight is None else weight[rows]


def _count_rows(X: Any) -> int:
    return int(X.shape[1]) if len(getattr(X, "shape", ())) == 3 else int(_num_samples(X))

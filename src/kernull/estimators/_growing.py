"""Models that grow and shrink row by row: partial_fit, forget, and a budget of samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from kernull._typing import Array, Indices
from kernull.calibration import Calibration, left_out_projections
from kernull.errors import MissingCapabilityError, TooFewRowsWarning
from kernull.estimators._arrays import as_numpy, like
from kernull.estimators._atomic import rollback_on_error
from kernull.estimators._inputs import normalised, read_precomputed, read_table, with_scale
from kernull.estimators._leaks import leaking_view, warn_of_leak
from kernull.problems import RidgeInverse
from kernull.stacks import DenseStack, KernelSet, check_memory, parse_memory_limit

__all__ = ["GrowingMixin"]

#: A first batch below this says little about scales: their standard error is above 13 percent.
FEW_ROWS = 30


class GrowingMixin:
    """Adds `partial_fit` and `forget` to a Fisher null-space estimator.

    Kernel weights, widths, scaling and the absolute ridge stay those of the last learning; the
    model then equals a refit given these. The inverse of the ridge system is kept from the first
    update on (n^2 numbers) and does not travel with pickles: it is rebuilt when needed.
    Calibration is by leave-one-out; models with ``calibration="split"`` are refused.
    """

    bank_: KernelSet | None
    weights_: Array
    coef_: Array
    ridge_: float
    max_samples: int | None
    calibration: str
    reference: Any
    _kernel_factors: Array | None
    memory_limit: Any
    sample_indices_: Indices
    n_samples_seen_: int
    # Defaults of the class serve models that were loaded from a file.
    _row_weight: Array | None = None
    _stack_scale: Any = 1.0
    _inverse: RidgeInverse | None = None
    _left_out_parts: Array | None
    _calibration_rows: Any
    _calibration_weight: Array | None
    _learned_rows: Any
    _training_scores: Array
    _given_scale: Any
    _n_updates: int = 0

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, relearn: bool = False
    ) -> Self:
        """Add rows to the model in O(n^2) a row; on a new model, the same as `fit`.

        What the first rows fix stays: scaling, widths and the views that are kept, and, unless
        ``relearn`` is asked for, the kernel weights and the ridge. So let the first batch be large
        enough to stand for the rest (below 30 rows a warning says so), or call `fit` first.

        Parameters
        ----------
        X : table of shape (k, d), or kernels of shape (J, k, n + k)
            New rows; with precomputed kernels, between them and the rows of the model followed
            by themselves.
        y : ignored
            Present for scikit-learn's interface.
        sample_weight : array of shape (k,), optional
            Trust in each new row, as in `fit`.
        relearn : bool, default=False
            Learn the kernel weights again on all rows, starting from the present ones, with the
            ridge of the present number of rows. Scaling and widths stay.

        Returns
        -------
        self

        Notes
        -----
        With ``max_samples``, rows beyond it are dropped one by one: each time the one that the
        others explain best, whose removal changes the objective least. What is kept is what is
        unusual among the normal, so that thresholds err on the side of fewer alarms.
        ``sample_indices_`` tells which of all rows seen are still there.
        """
        self._check_budget()
        self._check_calibration("partial_fit")
        if not hasattr(self, "coef_"):
            with rollback_on_error(self):
                self._fit_rows(X, sample_weight)  # type: ignore[attr-defined]
                with self._ready_to_grow():
                    self._start(as_numpy(X), as_numpy(sample_weight))
                    self._warn_of_few(len(self.coef_))
                    self._keep_budget()
        else:
            with rollback_on_error(self), self._ready_to_grow():
                if relearn and self.bank_ is None:
                    raise MissingCapabilityError(
                        "relearn: with precomputed kernels the model keeps their weighted sum "
                        "only; fit again on the kernels of all rows."
                    )
                self._append(as_numpy(X), as_numpy(sample_weight))
                self._keep_budget()
                if relearn:
                    self._relearn()
        return self

    def forget(self, indices: Any) -> Self:
        """Remove training rows from the model in O(n^2) a row.

        Parameters
        ----------
        indices : array of int or bool
            Positions among the rows that the model holds now (those of ``coef_``), or a mask.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._check_calibration("forget")
        with rollback_on_error(self), self._ready_to_grow():
            self._drop(_positions(as_numpy(indices), len(self.coef_)))
        return self

    # -- the steps ---------------------------------------------------------------------------

    def _warn_of_few(self, rows: int) -> None:
        if self.bank_ is not None and rows < FEW_ROWS:
            warnings.warn(
                f"partial_fit: scaling, widths and kernel weights come from the first {rows} rows "
                f"and stay. Begin with at least {FEW_ROWS} rows, or fit again later.",
                TooFewRowsWarning,
                stacklevel=3,
            )

    @contextmanager
    def _ready_to_grow(self) -> Iterator[None]:
        """Work on NumPy arrays where the model holds tensors; refuse what cannot grow."""
        if np.ndim(as_numpy(self.coef_)) != 1:
            raise MissingCapabilityError(
                "partial_fit and forget: a model with storage='nystroem' keeps its landmarks only; "
                "fit it anew, or use another storage."
            )
        kept = self.weights_
        self.weights_, self.coef_ = as_numpy(self.weights_), as_numpy(self.coef_)
        yield
        self.weights_, self.coef_ = like(self.weights_, kept), like(self.coef_, kept)

    def _reset_growth(self, ridge: float, row_weight: Array | None, scale: Array) -> None:
        """Called by every learning: the inverse of an earlier model is worthless."""
        self.ridge_ = ridge
        self._row_weight = row_weight
        self._stack_scale = scale
        self._inverse = None
        self._n_updates = 0
        for name in ("sample_indices_", "n_samples_seen_"):
            vars(self).pop(name, None)

    def _current_inverse(self) -> RidgeInverse:
        """The inverse, computed if the model was just fitted or loaded."""
        if self._inverse is not None:
            return self._inverse
        if self.bank_ is None:
            raise MissingCapabilityError(
                "partial_fit and forget: a model fitted on precomputed kernels does not keep them. "
                "Call partial_fit instead of fit from the first rows on."
            )
        if np.ndim(self.coef_) != 1:
            raise MissingCapabilityError(
                "partial_fit and forget: a model of storage='nystroem' keeps its landmarks alone, "
                "not its rows; fit again, or use another storage."
            )
        check_memory(2, self.bank_.n, 8, parse_memory_limit(self.memory_limit))
        kernel = self.bank_.combine(self.weights_ * self._stack_scale)
        return RidgeInverse.of(kernel, self.ridge_, self._row_weight, overwrite=True)

    def _start(self, X: Any, sample_weight: Any) -> None:
        """Make a model that was just fitted ready to grow."""
        if self.bank_ is None:
            stack = read_precomputed(X, dtype=self._value_type())  # type: ignore[attr-defined]
            weight = np.ones(stack.n) if sample_weight is None else np.asarray(sample_weight)
            rows = np.flatnonzero(weight > 0) if self._learned_rows is None else self._learned_rows
            stack = normalised(stack[np.ix_(rows, rows)], self._kernel_factors)
            kernel = stack.combine(self.weights_)
            inverse = RidgeInverse.of(kernel, self.ridge_, self._row_weight, overwrite=True)
        else:
            inverse = self._current_inverse()
        seen = self._seen()
        if self._learned_rows is not None:
            self._training_scores = self._training_scores[self._learned_rows]
        self._grow_from(inverse, self.bank_, *seen)

    def _seen(self) -> tuple[Indices, int]:
        """Which of the rows seen are still there, and how many were seen."""
        if hasattr(self, "sample_indices_"):
            return self.sample_indices_, self.n_samples_seen_
        # After fit: rows of weight zero were given and are not there.
        n = len(self.coef_)
        rows = np.arange(n) if self._learned_rows is None else np.asarray(self._learned_rows)
        return rows, n if self._learned_rows is None else len(self._training_scores)

    def _append(self, X: Any, sample_weight: Any) -> None:
        bank, n = self.bank_, len(self.coef_)
        if bank is None:
            cross, square, k = self._precomputed_parts(X, n)
        else:
            table = read_table(self, X, reset=False)
            k = len(table)
            scaled = self.weights_ * self._stack_scale
            cross, square = bank.combine(scaled, table), bank.with_rows(table).combine(scaled)
            bank = bank.extend(table)
        weight = np.ones(k)
        if sample_weight is not None:
            weight = np.asarray(
                _check_sample_weight(sample_weight, np.empty((k, 1)), ensure_non_negative=True)
            )
        new = np.flatnonzero(weight > 0)
        if bank is not None and len(new) < k:
            bank = bank.take(np.concatenate([np.arange(n), n + new]))
        cross, square = cross[new], square[np.ix_(new, new)]
        inverse = self._current_inverse().append(cross, square, weight[new])
        indices, n_seen = self._seen()
        inverse = self._refreshed(inverse, bank, len(new))
        self._adopt(inverse, bank, np.concatenate([indices, n_seen + new]), n_seen + k)

    def _drop(self, drop: Indices) -> None:
        inverse = self._current_inverse().remove(drop)
        keep = np.setdiff1d(np.arange(len(self.coef_)), drop)
        indices, n_seen = self._seen()
        bank = None if self.bank_ is None else self.bank_.take(keep)
        self._adopt(self._refreshed(inverse, bank, len(drop)), bank, indices[keep], n_seen)

    def _refreshed(self, inverse: RidgeInverse, bank: KernelSet | None, rows: int) -> RidgeInverse:
        """The inverse, computed anew once as many rows came and went as there are.

        Rounding adds up over updates; spread over so many of them, a fresh start costs no more
        than they do.
        """
        self._n_updates += rows
        if bank is None or self._n_updates <= inverse.n:
            return inverse
        self._n_updates = 0
        kernel = bank.combine(self.weights_ * self._stack_scale)
        return RidgeInverse.of(kernel, inverse.ridge, inverse.row_weight, overwrite=True)

    def _check_budget(self) -> None:
        budget: Any = self.max_samples
        is_number = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
        if budget is not None and (not is_number or budget < 2):
            raise ValueError(
                f"max_samples: got {budget!r}; expected None or a whole number of at least 2."
            )

    def _warn_beyond_budget(self) -> None:
        """After fit, which learns from all rows: say so where max_samples asked for fewer."""
        if self.max_samples is not None and len(self.coef_) > self.max_samples:
            warnings.warn(
                f"max_samples: fit learned from all {len(self.coef_)} rows; max_samples="
                f"{self.max_samples} bounds partial_fit alone, which will drop the rest. Call "
                "partial_fit on a new model to keep to it from the start, or fit fewer rows.",
                UserWarning,
                stacklevel=3,
            )

    def _check_calibration(self, method: str) -> None:
        if self.reference is not None:
            raise MissingCapabilityError(
                f"reference: {method} keeps rows of target value 1 alone; fit again on all rows, "
                "or use reference=None."
            )
        if self.calibration in ("split", "folds"):
            lost = "the proved rate" if self.calibration == "split" else "scores by refits"
            raise MissingCapabilityError(
                f"calibration: got {self.calibration!r}, which {method} cannot keep up: "
                f"leave-one-out would take the place of {lost}. Fit again on all rows, or call "
                "set_params(calibration='loo') first."
            )

    def _keep_budget(self) -> None:
        excess = 0 if self.max_samples is None else len(self.coef_) - int(self.max_samples)
        if excess > 0:
            self._drop(self._current_inverse().least_useful(excess))

    def _relearn(self) -> None:
        assert self.bank_ is not None
        dtype = self._value_type()  # type: ignore[attr-defined]
        limit = parse_memory_limit(self.memory_limit)
        check_memory(self.bank_.J, self.bank_.n, np.dtype(dtype).itemsize, limit)
        weight, (indices, n_seen) = self._row_weight, self._seen()
        stack = self.bank_.stack(dtype)
        stack = DenseStack(stack.kernels, self._stack_scale * np.ones(stack.J))
        self._learn(stack, weight, init=self.weights_)  # type: ignore[attr-defined]
        kernel = stack.combine(self.weights_)
        inverse = RidgeInverse.of(kernel, self.ridge_, weight, overwrite=True)
        self._adopt(inverse, self.bank_, indices, n_seen)

    def _adopt(
        self, inverse: RidgeInverse, bank: KernelSet | None, indices: Indices, n_seen: int
    ) -> None:
        """Set everything that follows from the inverse."""
        self._grow_from(inverse, bank, indices, n_seen)
        weight = self._row_weight
        left_out = left_out_projections(
            inverse.diagonal, self.coef_, inverse.ridge, row_weight=weight
        )
        self._training_scores = self._of_projection(left_out)  # type: ignore[attr-defined]
        self.calibration_ = Calibration.of(self._training_scores, weight, smooth=True)
        rate = self.false_alarm_rate  # type: ignore[attr-defined]
        self.threshold_, self.false_alarm_rate_ = self.calibration_.threshold(rate)
        self.offset_ = self.threshold_
        # Calibration by view belongs to the old rows; `explain` computes it anew when asked.
        self._left_out_parts = self._calibration_rows = None
        self._calibration_weight = weight
        leak = leaking_view(bank, inverse.n)
        if leak is not None:
            warn_of_leak(leak, inverse.n)

    def _grow_from(
        self, inverse: RidgeInverse, bank: KernelSet | None, indices: Indices, n_seen: int
    ) -> None:
        """Set all but the calibration, which a model that was just fitted has already."""
        weight = None if (inverse.row_weight == 1.0).all() else inverse.row_weight
        self.coef_ = inverse.coef()
        self._learned_rows = None
        self.bank_ = bank
        self.sample_indices_ = indices
        self.n_samples_seen_ = n_seen
        self._stack_shape = (len(self.weights_), inverse.n)
        self._row_weight = weight
        self._inverse = inverse

    def _precomputed_parts(self, X: Any, n: int) -> tuple[Array, Array, int]:
        shape = np.shape(X) if not isinstance(X, DenseStack) else (X.J, *X.shape)
        k = shape[-2] if len(shape) >= 2 else 0
        dtype = self._value_type()  # type: ignore[attr-defined]
        stack = read_precomputed(X, n=n + k, J=len(self.weights_), dtype=dtype)
        stack = normalised(with_scale(stack, self._given_scale), self._kernel_factors)
        combined = stack.combine(self.weights_)
        return combined[:, :n], combined[:, n:], k

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        if state.get("bank_") is not None:  # it can be rebuilt, and is the bulk of the model
            state["_inverse"] = None
        return state


def _positions(indices: Any, n: int) -> Indices:
    """Unique positions from integers or a mask; at least two rows must remain."""
    values = np.atleast_1d(np.asarray(indices))
    if values.dtype == bool:
        if values.shape != (n,):
            raise ValueError(
                f"indices: got a mask of shape {values.shape}; the model holds {n} rows."
            )
        values = np.flatnonzero(values)
    is_integer = values.ndim == 1 and (values.size == 0 or values.dtype.kind in "iu")
    if not is_integer:
        raise ValueError(
            f"indices: got {indices!r}; expected positions of training rows (whole numbers) or a "
            "mask."
        )
    values = values.astype(np.intp)
    if values.size and (values.min() < 0 or values.max() >= n):
        raise ValueError(
            f"indices: got positions from {values.min()} to {values.max()}; the model holds rows "
            f"0 to {n - 1}."
        )
    if len(np.unique(values)) != len(values):
        raise ValueError("indices: a position occurs twice; expected each row once.")
    if n - len(values) < 2:
        raise ValueError(
            f"indices: would leave {n - len(values)} of {n} rows; expected at least 2 to remain."
        )
    return values

"""From what users pass to stacks: the checks that all estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.estimators._columns import (
    may_miss_views,
    not_finite,
    not_numeric,
    read_used_columns,
    text_columns,
)
from kernull.stacks import DenseStack

__all__ = [
    "check_names",
    "check_number",
    "names_of_kernels",
    "normalised",
    "read_precomputed",
    "read_table",
    "read_weights",
    "with_diagonal",
    "with_scale",
]


def read_table(estimator: Any, X: Any, *, reset: bool) -> Array:
    """A float64 table from arrays, pandas or polars, with scikit-learn's checks."""
    if isinstance(X, DenseStack):
        raise TypeError(
            "X: got a stack of kernels; pass kernels='precomputed', or a table of shape (n, d)."
        )
    used = read_used_columns(estimator, X, reset=reset)
    if used is not None:
        return used
    try:
        return np.asarray(
            validate_data(
                estimator,
                X,
                reset=reset,
                dtype=np.float64,
                ensure_min_samples=2 if reset else 1,
            )
        )
    except (ValueError, TypeError) as error:
        if str(error).startswith(("Input X contains NaN", "Input X contains infinity")):
            raise ValueError(not_finite(X, may_miss_views(estimator, not reset))) from error
        text = [] if isinstance(error, TypeError) and not hasattr(X, "columns") else text_columns(X)
        if not text:
            raise
        raise ValueError(not_numeric(text)) from error


def read_precomputed(
    X: Any, *, n: int | None = None, J: int | None = None, dtype: Any = np.float64
) -> DenseStack:
    """A validated stack from an array (J, n, n), an (n, n) matrix, or a stack."""
    if isinstance(X, DenseStack):
        stack = X
    else:
        if issparse(X):
            raise TypeError("X: sparse kernels are not supported; pass X.toarray().")
        values = np.asarray(X, dtype=float)
        stack = DenseStack(values[None] if values.ndim == 2 else values)
    if stack.dtype != dtype:
        values = stack.kernels.astype(dtype)
        stack = DenseStack(values, stack.scale, stack.own_diagonal, stack.names)
    stack.validate(n, J)
    if n is None and stack.n < 2:
        raise InvalidKernelError(f"kernels: got {stack.n} training row(s); expected at least 2.")
    return stack


def with_diagonal(X: Any) -> DenseStack:
    """Square kernels of the training rows as a stack that keeps k(x, x) when it is sliced."""
    if isinstance(X, DenseStack):
        stack = X
    else:
        values = np.asarray(X, dtype=float)
        stack = DenseStack(values[None] if values.ndim == 2 else values)
    if stack.own_diagonal is not None:
        return stack
    own = np.einsum("jii->ji", stack.kernels)
    return DenseStack(stack.kernels, stack.scale, own, stack.names)


def with_scale(stack: DenseStack, scale: Array | None) -> DenseStack:
    """Kernels of new rows under the factors of the kernels given to fit.

    Arrays, and stacks without factors of their own, take them; other factors than those of the fit
    would make other kernels of them.
    """
    if scale is None or np.array_equal(stack.scale, scale):
        return stack
    if (stack.scale != 1.0).any():
        raise InvalidKernelError(
            f"scale: got {stack.scale}; the model was fitted on kernels with scale {scale}. Pass "
            "the same scale, or none: the fitted one is then applied."
        )
    return DenseStack(stack.kernels, scale, stack.own_diagonal, stack.names)


def names_of_kernels(stack: DenseStack) -> Any:
    """The names that a stack's kernels were given, or their numbers."""
    names = stack.names or [f"kernel {j}" for j in range(stack.J)]
    return np.array(names, dtype=object)


def check_names(stack: DenseStack, fitted: Any) -> DenseStack:
    """Refuse kernels whose names say that they are others, or in another order."""
    if stack.names is not None and list(stack.names) != list(fitted):
        raise InvalidKernelError(
            f"names: got {list(stack.names)}; the model was fitted on {list(fitted)}, in that "
            "order."
        )
    return stack


def normalised(stack: DenseStack, factors: Array | None) -> DenseStack:
    """Kernels under the factors of the normalisation of the fit, beyond their own."""
    if factors is None:
        return stack
    return DenseStack(stack.kernels, stack.scale * factors, stack.own_diagonal, stack.names)


def read_weights(sample_weight: Any, X: Any) -> Array | None:
    """Row weights, or None where all are one."""
    if sample_weight is None:
        return None
    rows = _num_samples(X)
    if len(getattr(X, "shape", ())) == 3:  # an array of kernels, (J, n, n)
        rows = X.shape[1]
    placeholder = np.empty((rows, 1))
    try:
        weight = np.asarray(
            _check_sample_weight(
                sample_weight, placeholder, dtype=np.float64, ensure_non_negative=True
            )
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight: {error}") from error
    if np.count_nonzero(weight) < 2:
        raise ValueError(
            "sample_weight: fewer than 2 rows have a positive weight; expected at least 2."
        )
    return None if (weight == 1.0).all() else weight


def check_number(name: str, value: Any, expected: str, low: float, *, strict: bool = True) -> float:
    """A finite number above (or at) ``low``, or an error that names the parameter."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or (value <= low if strict else value < low):
        raise ValueError(f"{name}: got {value!r}; expected {expected}.")
    return float(value)

"""Kernels that users give as matrices: what they pass, checked and made a stack."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.operators.dense import DenseStack


def read_precomputed(
    X: Any, *, n: int | None = None, J: int | None = None, dtype: Any = np.float64
) -> DenseStack:
    """A validated stack from an array (J, n, n), an (n, n) matrix, or a stack."""
    if issparse(X):
        raise TypeError("X: sparse kernels are not supported; pass X.toarray().")
    stack = _stack_of(X)
    if stack.dtype != dtype:
        values = stack.kernels.astype(dtype)
        stack = DenseStack(values, stack.scale, stack.own_diagonal, stack.names)
    stack.validate(n, J)
    if n is None and stack.n < 2:
        raise InvalidKernelError(f"kernels: got {stack.n} training row(s); expected at least 2.")
    return stack


def with_diagonal(X: Any) -> DenseStack:
    """Square kernels of the training rows as a stack that keeps k(x, x) when it is sliced."""
    stack = _stack_of(X)
    if stack.own_diagonal is not None:
        return stack
    own = np.einsum("jii->ji", stack.kernels)
    return DenseStack(stack.kernels, stack.scale, own, stack.names)


def _stack_of(X: Any) -> DenseStack:
    if isinstance(X, DenseStack):
        return X
    values = np.asarray(X)
    return DenseStack(values[None] if values.ndim == 2 else values)


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

"""Fusing the kernels of a stack into one, and k(x, x) of rows to be scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.operators import CrossKernels, DenseStack
from kernull.operators.linalg import cholesky

#: The weight of one fused kernel.
ONE = np.ones(1)


def fuse(stack: DenseStack, fusion: Any) -> Array:
    """The fused training kernel, of shape (n, n); for a product, certified semidefinite."""
    if fusion not in ("average", "product"):
        raise ValueError(
            f"fusion: got {fusion!r}; expected 'average' (arithmetic mean of the kernels) or "
            "'product' (element-wise geometric mean)."
        )
    if fusion == "average":
        return stack.combine(np.full(stack.J, 1.0 / stack.J))
    K = _geometric_mean((scale * K for scale, K in zip(stack.scale, stack.kernels, strict=True)))
    _check_semidefinite(K)
    return K


def fused_blocks(cross: DenseStack | CrossKernels, fusion: str) -> Iterator[tuple[slice, Array]]:
    """The fused kernel between new rows and training rows, in pieces of rows."""
    if isinstance(cross, CrossKernels):
        for rows in cross.chunks():
            matrices = cross.kernel_set.matrices(cross.X[rows])
            yield rows, _mean((cross.scale[j] * K for j, K in matrices), fusion)
    else:
        parts = (scale * K for scale, K in zip(cross.scale, cross.kernels, strict=True))
        yield slice(None), _mean(parts, fusion)


def fused_diagonal(diagonal: Array, fusion: str) -> Array:
    """The fused k(x, x) from those of the kernels, (J, m) -> (m,)."""
    return _mean(iter(diagonal), fusion)


def _mean(parts: Iterable[Array], fusion: str) -> Array:
    if fusion == "product":
        return _geometric_mean(parts)
    total, count = np.zeros(1), 0
    for count, K in enumerate(parts, start=1):  # noqa: B007
        total = total + K
    return np.asarray(total / count)


def _geometric_mean(parts: Iterable[Array]) -> Array:
    total, count = np.zeros(1), 0
    for count, K in enumerate(parts, start=1):
        if (K < 0).any():
            raise InvalidKernelError(
                f"fusion='product': kernel {count - 1} has negative values (down to "
                f"{K.min():.3g}), of which there is no geometric mean. Use fusion='average', or "
                "kernels that are positive everywhere, such as rbf."
            )
        with np.errstate(divide="ignore"):
            total = total + np.log(K)
    return np.asarray(np.exp(total / count))


def _check_semidefinite(K: Array) -> None:
    """Refuse a product that is not positive semidefinite; it is for rbf, not in general.

    A Cholesky factor of K plus a rounding's worth of the identity is the proof.
    """
    n = len(K)
    try:
        cholesky(K + 1e-9 * float(np.trace(K)) / n * np.eye(n))
    except LinAlgError:
        lowest = float(np.linalg.eigvalsh(K)[0])
        raise InvalidKernelError(
            "fusion='product': the element-wise geometric mean of these kernels is not positive "
            f"semidefinite (its smallest eigenvalue is {lowest:.3g}). It is one for rbf kernels, "
            "but not in general. Use fusion='average'."
        ) from None


def constant_diagonal(stack: DenseStack) -> Array | None:
    """k_j(x, x) of each kernel where it is the same for all training rows, else None."""
    diagonal = stack.diagonal()
    spread = np.ptp(diagonal, axis=1)
    if (spread > 1e-6 * np.abs(diagonal).max(axis=1)).any():
        return None
    return np.asarray(diagonal.mean(axis=1))


def self_similarity(cross: DenseStack | CrossKernels, constant: Array | None) -> Array:
    """k_j(x, x) of the rows to be scored, of shape (J, m).

    Kernels that come as matrices do not have it. Where every training diagonal is constant, as for
    rbf or normalised kernels, new rows are taken to have the same; else it must be given.
    """
    if isinstance(cross, CrossKernels) or cross.own_diagonal is not None:
        return cross.diagonal()
    if constant is not None:
        return np.repeat(constant[:, None], len(cross), axis=1)
    raise InvalidKernelError(
        "kernels: this method needs k(x, x) of the rows to be scored, and the training kernels' "
        "diagonals are not constant, so it cannot be told from them. Pass "
        "kernull.KernelStack(kernels, diagonal=...) with one value per kernel and row, (J, m)."
    )

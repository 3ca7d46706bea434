"""Symmetric matrices by BLAS and LAPACK.

A matrix of ours lies row by row, so that to them, its upper triangle is the lower one.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsymv, ssymv
from scipy.linalg.lapack import dpotrf

from kernull._runtime import instead_of_blas
from kernull._typing import Array

#: Rows from which a matrix is factorised by one BLAS thread: two of OpenBLAS's end the process at
#: 16,000 rows (0.3.30, that of SciPy 1.17; a matrix of nothing but a diagonal will do).
MANY_ROWS = 12_000


def symmetric_product(K: Array, v: Array, *, upper: bool = False) -> Array:
    """Kv of a symmetric K, of which the lower triangle is read, or the upper: half the memory."""
    product = dsymv if K.dtype == np.float64 else ssymv
    return np.asarray(product(1.0, K.T, np.asarray(v, dtype=K.dtype), lower=upper))


def lower_factor(A: Array) -> Array:
    """Lower Cholesky factor of the symmetric matrix whose upper triangle A holds; A is used up.

    What is above its diagonal may be anything.
    """
    A = np.ascontiguousarray(A, dtype=float)
    with instead_of_blas(len(A) > MANY_ROWS) as limit, limit:
        factor, info = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
    if info:
        raise LinAlgError(f"The leading minor of order {info} is not positive.")
    return np.asarray(factor)

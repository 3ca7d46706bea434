"""Symmetric matrices by BLAS and LAPACK: how every room factorises, and multiplies.

A matrix of ours lies row by row, so that to BLAS its upper triangle is the lower one.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsymv, ssymv
from scipy.linalg.lapack import dpotrf

from kernull._runtime import one_blas_thread
from kernull._typing import Array

#: Rows up to which NumPy factorises. It releases the interpreter lock, so that folds and tasks do
#: so side by side; SciPy holds the lock, and from here on NumPy's two copies cost half as much
#: again (2,000 rows, one thread: 90 ms against 60).
FEW_ROWS = 2000
#: Rows from which a matrix is factorised by one BLAS thread: two of OpenBLAS's end the process at
#: 16,000 rows (0.3.30, that of SciPy 1.17; a matrix of nothing but a diagonal will do).
MANY_ROWS = 12_000


def cholesky(A: Array) -> Array:
    """Lower Cholesky factor of a symmetric positive definite matrix, which may be used up.

    Parameters
    ----------
    A : array of shape (n, n)

    Returns
    -------
    array of shape (n, n)
        By columns, as LAPACK takes it; what is above its diagonal may be anything.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where A is not positive definite.
    """
    if len(A) <= FEW_ROWS:
        return np.asarray(np.linalg.cholesky(A, upper=True).T, dtype=float)
    A = np.ascontiguousarray(A, dtype=float)
    with one_blas_thread(len(A) > MANY_ROWS) as limit, limit:
        factor, info = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
    if info:
        raise LinAlgError(f"The leading minor of order {info} is not positive.")
    return np.asarray(factor)


def symmetric_product(K: Array, v: Array, *, upper: bool = False) -> Array:
    """Kv of a symmetric K, of which the lower triangle is read, or the upper: half the memory."""
    product = dsymv if K.dtype == np.float64 else ssymv
    return np.asarray(product(1.0, K.T, np.asarray(v, dtype=K.dtype), lower=upper))

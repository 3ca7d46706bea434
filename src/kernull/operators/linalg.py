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

#: Rows from which a matrix is factorised by one BLAS thread: two of OpenBLAS's ended the process at
#: 16,000 rows (0.3.30, that of SciPy 1.17; a matrix of nothing but a diagonal would do). On another
#: machine the same matrix took two threads 70 s and did no harm: one, until it is clear why.
ONE_THREAD_ROWS = 12_000


def cholesky(A: Array, *, side_by_side: bool = False) -> Array:
    """Lower Cholesky factor of a symmetric positive definite matrix, which may be used up.

    SciPy works in place, but holds the interpreter lock. NumPy releases it, at two to three times
    the price for one thread (1,000 rows: 17 ms against 8).

    Parameters
    ----------
    A : array of shape (n, n)
        Its upper triangle is read.
    side_by_side : bool, default=False
        Whether other threads of ours factorise at the same time: NumPy does it then.

    Returns
    -------
    array of shape (n, n)
        By columns, as LAPACK takes it; what is above its diagonal may be anything.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where A is not positive definite.
    """
    if side_by_side:
        return np.asarray(np.linalg.cholesky(A, upper=True).T, dtype=float)
    A = np.ascontiguousarray(A, dtype=float)
    with one_blas_thread(len(A) > ONE_THREAD_ROWS) as limit, limit:
        factor, info = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
    if info:
        raise LinAlgError(f"The leading minor of order {info} is not positive.")
    return np.asarray(factor)


def symmetric_product(K: Array, v: Array) -> Array:
    """Kv of a symmetric K, of which the lower triangle is read: half the memory."""
    product = dsymv if K.dtype == np.float64 else ssymv
    return np.asarray(product(1.0, K.T, np.asarray(v, dtype=K.dtype)))

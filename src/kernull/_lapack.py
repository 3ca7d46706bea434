"""Symmetric matrices by BLAS and LAPACK, in threads that run side by side.

SciPy's wrappers hold the interpreter's lock, so that one thread at a time gets through them. The
same routines, called by their addresses, do not; they work on parts of a matrix in place, too.
A matrix of ours lies row by row, so that to them, its upper triangle is the lower one.
"""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cython_blas, cython_lapack
from scipy.linalg.lapack import dpotrf

from kernull._threads import FEW_ROWS, in_threads, instead_of_blas
from kernull._typing import Array

_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
#: Integers are C's own, or of 64 bits where SciPy was built for these and names a type of its own.
_INT = (
    ctypes.c_int if b" int *" in _name_of(cython_lapack.__pyx_capi__["dpotrf"]) else ctypes.c_int64
)


def _routine(module: Any, name: str) -> Any:
    """A routine that SciPy offers to compiled code, as a function of pointers."""
    capsule = module.__pyx_capi__[name]
    signature = _name_of(capsule)
    arguments = [_Pointer] * (signature.count(b",") + 1)
    return ctypes.CFUNCTYPE(None, *arguments)(_address_of(capsule, signature))


class _Pointer(ctypes.c_void_p):
    """What routines take: letters as they are, and the addresses of all else."""

    @classmethod
    def from_param(cls, value: Any) -> Any:
        kind = type(value)
        if kind is bytes:
            return value
        if kind is int:
            return ctypes.byref(_INT(value))
        if kind is float:
            return ctypes.byref(ctypes.c_double(value))
        return ctypes.byref(value) if kind is _INT else cls(value.ctypes.data)


_potrf = _routine(cython_lapack, "dpotrf")
_trsm, _syrk = (_routine(cython_blas, name) for name in ("dtrsm", "dsyrk"))
_symv = {
    np.dtype(np.float64): _routine(cython_blas, "dsymv"),
    np.dtype(np.float32): _routine(cython_blas, "ssymv"),
}


def _stride(A: Array) -> int:
    """From one row to the next."""
    return max(A.strides[0] // A.itemsize, 1)


def symmetric_product(K: Array, v: Array, *, upper: bool = False) -> Array:
    """Kv of a symmetric K, of which the lower triangle is read, or the upper: half the memory."""
    n, one, out = len(K), np.ones(1, K.dtype), np.zeros(len(K), K.dtype)
    v = np.ascontiguousarray(v, dtype=K.dtype)
    _symv[K.dtype](b"L" if upper else b"U", n, one, K, _stride(K), v, 1, one, out, 1)
    return out


def lower_factor(A: Array) -> Array:
    """Lower Cholesky factor of the symmetric matrix whose upper triangle A holds; A is used up.

    What is above its diagonal may be anything. BLAS has one thread meanwhile, unless rows are few:
    two of OpenBLAS's end the process at 16,000 rows (0.3.30, that of SciPy 1.17; a matrix of
    nothing but a diagonal will do).
    """
    A = np.ascontiguousarray(A, dtype=float)
    if len(A) <= FEW_ROWS:
        factor, info = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)  # called in less time
        if info:
            raise LinAlgError(f"The leading minor of order {info} is not positive.")
        return np.asarray(factor)
    with instead_of_blas() as limit, limit:
        _factorise(A, limit.threads)
    return A.T


def _factorise(A: Array, threads: int, before: int = 0) -> None:
    """From the upper triangle of A = U'U to U, in place.

    LAPACK's, or where there are more threads, the same of one half after the other, what is between
    them and what it leaves of the second found by a part in each thread.
    """
    n, h, step = len(A), len(A) // 2, _stride(A)
    if threads <= 1 or n <= FEW_ROWS:
        info = _INT()
        _potrf(b"L", n, A, step, info)
        if info.value:
            raise LinAlgError(f"The leading minor of order {before + info.value} is not positive.")
        return
    first, between, last = A[:h, :h], A[:h, h:], A[h:, h:]

    def divide(part: Array) -> None:
        _trsm(b"R", b"L", b"T", b"N", *part.T.shape, 1.0, first, step, part, step)

    def subtract(rows: slice) -> None:
        own = between[:, rows]
        _syrk(b"L", b"N", *own.T.shape, -1.0, own, step, 1.0, last[rows, rows], step)
        last[rows, rows.stop :] -= own.T @ between[:, rows.stop :]

    _factorise(first, threads, before)
    in_threads(divide, np.array_split(between, threads, axis=1))
    in_threads(subtract, _parts_of_triangle(n - h, threads))
    _factorise(last, threads, before + h)


def _parts_of_triangle(n: int, count: int) -> list[slice]:
    """Rows of an upper triangle, as much of it in each part."""
    marks = n * (1.0 - np.sqrt(1.0 - np.arange(count + 1) / count))
    return [slice(*ends) for ends in pairwise(marks.round().astype(int).tolist())]

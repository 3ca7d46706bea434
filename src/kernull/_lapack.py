"""Symmetric matrices by BLAS and LAPACK, in threads that run side by side.

SciPy's wrappers hold the interpreter's lock, so that one thread at a time gets through them. The
same routines, called by their addresses, do not; they work on parts of a matrix in place, too.
A matrix of ours lies row by row, so that to them, its upper triangle is the lower one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cython_blas, cython_lapack
from scipy.linalg.lapack import dpotrf

from kernull._threads import FEW_ROWS, in_threads, instead_of_blas
from kernull._typing import Array

#: Rows that are mirrored at once.
MIRROR_ROWS = 64
#: Rows of a triangle that LAPACK inverts at once.
TRIANGLE_ROWS = 64


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


_potrf, _trtri, _lauum = (_routine(cython_lapack, name) for name in ("dpotrf", "dtrtri", "dlauum"))
_trsm, _trmm, _syrk = (_routine(cython_blas, name) for name in ("dtrsm", "dtrmm", "dsyrk"))
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


def inverse_of_factor(factor: Array) -> Array:
    """(LL')^-1 from its lower factor L, as `lower_factor` gives it, which is used up."""
    upper = factor.T
    with instead_of_blas(len(upper) > FEW_ROWS) as limit, limit:
        _invert_triangle(upper, limit.threads)
        _times_transpose(upper, limit.threads)
    below = np.tri(MIRROR_ROWS, k=-1, dtype=bool)

    def mirror(start: int) -> None:
        rows, rest = slice(start, start + MIRROR_ROWS), slice(start + MIRROR_ROWS, None)
        square = upper[rows, rows]
        np.copyto(square, square.T.copy(), where=below[: len(square), : len(square)])
        upper[rest, rows] = upper[rows, rest].T

    in_threads(mirror, range(0, len(upper), MIRROR_ROWS))
    return upper


def inverse_diagonal(factor: Array) -> Array:
    """Diagonal of (LL')^-1 from L, as `inverse_of_factor`: half its work."""
    upper = factor.T
    with instead_of_blas(len(upper) > FEW_ROWS) as limit, limit:
        _invert_triangle(upper, limit.threads)

    def squares(start: int) -> Array:
        rows, rest = slice(start, start + MIRROR_ROWS), slice(start + MIRROR_ROWS, None)
        own, others = np.triu(upper[rows, rows]), upper[rows, rest]
        return np.asarray((own * own).sum(axis=1) + np.einsum("ij,ij->i", others, others))

    return np.concatenate(in_threads(squares, range(0, len(upper), MIRROR_ROWS)))


def _invert_triangle(U: Array, threads: int = 1) -> None:
    """From U to its inverse, in place, by halves: OpenBLAS's own takes up to twice as long."""
    n, h, step = len(U), len(U) // 2, _stride(U)
    if n <= TRIANGLE_ROWS:
        _trtri(b"L", b"N", n, U, step, _INT())
        return
    first, between, last = U[:h, :h], U[:h, h:], U[h:, h:]

    def times_last(part: Array) -> None:
        _trmm(b"L", b"L", b"N", b"N", *part.T.shape, -1.0, last, step, part, step)

    def times_first(part: Array) -> None:
        _trmm(b"R", b"L", b"N", b"N", *part.T.shape, 1.0, first, step, part, step)

    _share_out(_invert_triangle, [first, last], threads)
    _share_out(times_last, np.array_split(between, threads), threads)
    _share_out(times_first, np.array_split(between, threads, axis=1), threads)


def _times_transpose(U: Array, threads: int) -> None:
    """From U to the upper triangle of UU', in place: LAPACK's, or by halves."""
    n, h, step = len(U), len(U) // 2, _stride(U)
    if threads <= 1:
        _lauum(b"L", n, U, step, _INT())
        return
    first, between, last = U[:h, :h], U[:h, h:], U[h:, h:]
    known = between.copy()

    def times_last(part: Array) -> None:
        _trmm(b"L", b"L", b"T", b"N", *part.T.shape, 1.0, last, step, part, step)

    def add(rows: slice) -> None:
        own, rest = known[rows], known[rows.stop :]
        _syrk(b"L", b"T", *own.shape, 1.0, own, n - h, 1.0, first[rows, rows], step)
        first[rows, rows.stop :] += own @ rest.T

    in_threads(times_last, np.array_split(between, threads))
    in_threads(lambda A: _lauum(b"L", len(A), A, step, _INT()), [first, last])
    in_threads(add, _parts_of_triangle(h, threads))


def _share_out(work: Callable[[Array], None], parts: Sequence[Array], threads: int) -> None:
    """Do each part, in threads where there are any."""
    if threads > 1:
        in_threads(work, parts)
    else:
        for part in parts:
            work(part)


def _parts_of_triangle(n: int, count: int) -> list[slice]:
    """Rows of an upper triangle, as much of it in each part."""
    marks = n * (1.0 - np.sqrt(1.0 - np.arange(count + 1) / count))
    return [slice(*ends) for ends in pairwise(marks.round().astype(int).tolist())]

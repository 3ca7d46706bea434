"""Which stack to build: planned from sizes alone, before anything is allocated."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull.errors import ApproximationWarning, MemoryLimitError
from kernull.operators.base import Stack, of_user
from kernull.operators.dense import DenseStack
from kernull.operators.memory import format_bytes
from kernull.operators.nystroem import LowRankStack, choose_landmarks
from kernull.operators.tiled import TiledStack, is_rbf
from kernull.views.kernel_set import KernelSet

STORAGES = ("auto", "dense", "tiled", "nystroem", "dask")

#: Rows up to which kernels that fit the memory are stored. Of more, tiles are the quicker way, or
#: hardly slower where columns are many: they need no factorisation.
DENSE_ROWS = 4000
#: Kernel values, J n^2, beyond which landmark rows stand for all under "auto": tiles of so many
#: take two cores of a 2.8 GHz Xeon 90 seconds, and a GPU a fraction of a second.
MOST_VALUES, MOST_VALUES_ON_DEVICE = 1e10, 5e12
#: Rows of the preconditioner of tiles: at most, at least, and the share of the memory that they may
#: take; and those of dense kernels at most.
PRECONDITIONER_ROWS, FEWEST_PRECONDITIONER_ROWS, PRECONDITIONER_SHARE = 500, 50, 0.25
DENSE_PRECONDITIONER_ROWS = 200
#: Columns of the solver's basis: those it cannot do without, those that must fit for it to work
#: without matrices, and those that it is ever given.
FEWEST_COLUMNS, MIN_COLUMNS, BASIS_COLUMNS = 8, 24, 300


@dataclass(frozen=True)
class Budget:
    """What a solver may keep in memory, on top of the kernels."""

    max_columns: int = BASIS_COLUMNS
    """Columns of a subspace basis."""
    preconditioner_rows: int = 0
    """Rows of every kernel, for a preconditioner; 0 where it would not pay."""


@dataclass(frozen=True)
class Plan:
    """How kernels will be kept, and what the solver's basis may take."""

    storage: str
    max_columns: int = BASIS_COLUMNS
    reason: str = ""
    """Why kernels are approximated, where they are."""


@dataclass(frozen=True)
class Planned:
    """A stack, the budget of a solver that works with it, and how the kernels are kept."""

    stack: Stack
    budget: Budget = Budget()
    note: str = ""


def basis_columns(J: int, n: int, limit: int) -> int:
    """Columns of a subspace basis that fit: it keeps Q, and K_jQ for all j.

    It grows by doubling, and takes half as much again while it does.
    """
    return int(limit / _basis_bytes(J, n, 1))


def _basis_bytes(J: int, n: int, columns: int) -> float:
    """Bytes that a subspace basis of so many columns takes at most."""
    return 1.5 * columns * 8.0 * n * (J + 1)


def preconditioner_rows(J: int, n: int, limit: int) -> int:
    """Rows of the preconditioner of tiles that are worth their memory; 0 where none are.

    It keeps them for every kernel, and their weighted sum.
    """
    rows = min(PRECONDITIONER_ROWS, n // 8, int(PRECONDITIONER_SHARE * limit / (8.0 * n * (J + 1))))
    return rows if rows >= FEWEST_PRECONDITIONER_ROWS else 0


def plan_storage(
    storage: str,
    J: int,
    n: int,
    itemsize: int,
    limit: int,
    *,
    matrix_free: bool = True,
    on_device: bool = False,
) -> Plan:
    """Choose a storage for J kernels of n rows that keeps within a limit of bytes.

    ``"auto"`` is dense up to `DENSE_ROWS` rows, or on a device, where J n^2 values fit the limit;
    tiled where the basis of the subspace solver fits, up to `MOST_VALUES`; and Nystroem beyond.
    ``matrix_free`` tells whether the method can work without n x n matrices.
    """
    if storage not in STORAGES:
        raise ValueError(
            f"storage: got {storage!r}; expected one of {STORAGES}, or a function of the kernel "
            "set that returns an operator."
        )
    if storage == "dense" or not matrix_free:
        check_memory(J, n, itemsize, limit)
        return Plan("dense")
    few = storage == "auto" and (on_device or n <= DENSE_ROWS)
    if few and dense_bytes(J, n, itemsize) <= limit:
        return Plan("dense")
    columns = min(BASIS_COLUMNS, basis_columns(J, n, limit))
    fewest = {"tiled": MIN_COLUMNS, "dask": FEWEST_COLUMNS}.get(storage, 2)
    if columns < fewest:  # under "auto", no storage fits
        instead = "use storage='nystroem', " if storage in ("tiled", "dask") else ""
        raise MemoryLimitError(
            f"memory_limit: {format_bytes(limit)} is too little for {J} kernels of {n} rows: the "
            f"solver keeps at least a basis of {fewest} columns, "
            f"{format_bytes(_basis_bytes(J, n, fewest))}, besides the data. Raise memory_limit, "
            f"{instead}or use fewer kernels, or a random subset of the rows."
        )
    reason = ""
    if storage == "auto":
        most = MOST_VALUES_ON_DEVICE if on_device else MOST_VALUES
        if columns < MIN_COLUMNS:
            reason = (
                f"{J} kernels of {n} x {n} do not fit {format_bytes(limit)}, and neither does a "
                f"basis of {MIN_COLUMNS} columns for evaluating them on the fly"
            )
        elif J * float(n) ** 2 > most:
            reason = f"learning from {J} kernels of {n} x {n} takes minutes or more"
        storage = "nystroem" if reason else "tiled"
    return Plan(storage, max(columns, FEWEST_COLUMNS), reason)  # landmarks take more than the basis


def plan(
    kernel_set: KernelSet,
    storage: Any = "auto",
    *,
    dtype: Any = np.float64,
    limit: int,
    landmarks: int = 1000,
    matrix_free: bool = True,
    client: Any = None,
    device: Any = None,
    on_device: Any = None,
) -> Planned:
    """The stack of a kernel set's training rows, and what a solver may keep in memory.

    Parameters
    ----------
    kernel_set : KernelSet
        J kernels and their n training rows.
    storage : str or callable
        A name of `STORAGES`, or a function of the kernel set that returns an operator of the
        user's: a `Stack`, or any object with the methods ``products(V)``, (n, k) -> (J, n, k),
        ``diagonal()``, (J, n), and ``rows(index)``, (J, len(index), n).
    dtype : dtype
        Type of kernel values.
    limit : int
        Bytes that kernels and solver may take.
    landmarks : int
        Rows that stand for all under "nystroem".
    matrix_free : bool
        Whether the method can work without n x n matrices.
    client : distributed.Client, optional
        The cluster of "dask".
    device : torch.device, optional
        Where rbf kernels are evaluated, if not on the host.
    on_device : KernelSet, optional
        The same kernels with rows that are tensors on the device already.

    Returns
    -------
    Planned
    """
    if callable(storage):
        columns = min(BASIS_COLUMNS, basis_columns(kernel_set.J, kernel_set.n, limit))
        stack = of_user(storage(kernel_set), kernel_set)
        return Planned(stack, Budget(max(columns, FEWEST_COLUMNS)), repr(stack))
    if device is not None and not is_rbf(kernel_set):
        device = None
    chosen = plan_storage(
        storage, kernel_set.J, kernel_set.n, np.dtype(dtype).itemsize, limit,
        matrix_free=matrix_free, on_device=device is not None,
    )  # fmt: skip
    if chosen.reason:
        warnings.warn(
            f"storage='auto': {chosen.reason}. Using {min(landmarks, kernel_set.n)} landmark rows "
            "(storage='nystroem') instead of all; ask for storage='tiled', or raise memory_limit, "
            "if that will not do.",
            ApproximationWarning,
            stacklevel=3,
        )
    J, n, columns = kernel_set.J, kernel_set.n, chosen.max_columns
    if chosen.storage == "dense" and device is None:
        # Half of the passes, for the price of two.
        budget = Budget(columns, min(DENSE_PRECONDITIONER_ROWS, n // 20))
        return Planned(DenseStack.of(kernel_set, dtype), budget, chosen.storage)
    tiles, rows = _tiles(kernel_set, chosen, dtype, limit, client, device, on_device)
    if chosen.storage == "dense":
        return Planned(tiles.dense(), Budget(columns), chosen.storage)
    if chosen.storage == "nystroem":
        room = int(limit - _basis_bytes(J, n, columns))
        low = LowRankStack(tiles, choose_landmarks(kernel_set, landmarks), keep_bytes=room)
        return Planned(low, Budget(columns), chosen.storage)
    if device is None:  # the basis gets what the preconditioner leaves, or all
        left = basis_columns(J, n, int(limit - 8 * rows * n * (J + 1)))
        columns, rows = (min(columns, left), rows) if left >= MIN_COLUMNS else (columns, 0)
    return Planned(tiles, Budget(columns, rows), chosen.storage)


def _tiles(
    kernel_set: KernelSet,
    chosen: Plan,
    dtype: Any,
    limit: int,
    client: Any,
    device: Any,
    on_device: Any,
) -> tuple[Any, int]:
    """Kernels that are not stored, where they are evaluated, and rows of a preconditioner."""
    if device is not None:
        from kernull.operators import torch

        stack = torch.TorchTiledStack(on_device or kernel_set, device, dtype)
        return stack, torch.device_preconditioner_rows(stack.n)
    if chosen.storage == "dask":
        from kernull.operators.dask import DistributedStack

        return DistributedStack(kernel_set, dtype=dtype, client=client), 0
    if chosen.storage == "nystroem":
        return TiledStack(kernel_set, dtype=dtype), 0
    rows = preconditioner_rows(kernel_set.J, kernel_set.n, limit)
    return TiledStack(kernel_set, dtype=dtype, memory_limit=limit), rows


def dense_bytes(J: int, n: int, itemsize: int) -> int:
    """Bytes of J dense kernels and three working matrices (combined kernel, factor, distances).

    Parameters
    ----------
    J : int
    n : int
    itemsize : int
        Bytes of a number.
    """
    return J * n * n * itemsize + 3 * n * n * 8


def check_memory(J: int, n: int, itemsize: int, limit: int) -> None:
    """Refuse a dense stack that does not fit, before it is allocated.

    Parameters
    ----------
    J : int
    n : int
    itemsize : int
        Bytes of a number.
    limit : int
        Bytes that may be used.
    """
    need = dense_bytes(J, n, itemsize)
    if need > limit:
        raise MemoryLimitError(
            f"storage: {J} dense kernels of {n} x {n} need {format_bytes(need)}, the memory limit "
            f"is {format_bytes(limit)}. Use storage='tiled' (exact, nothing n x n is kept) or "
            "'nystroem' where the method offers them, raise memory_limit, use dtype='float32', "
            "fewer kernels, or a random subset of the rows."
        )

"""Which stack to build: planned from sizes alone, before anything is allocated.

Other modules of stacks import this one, so it imports the kinds of stacks where it makes one.
"""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from joblib import effective_n_jobs

from kernull.errors import ApproximationWarning, MemoryLimitError
from kernull.operators.dense import DenseStack
from kernull.views.kernel_set import KernelSet

STORAGES = ("auto", "dense", "tiled", "nystroem", "dask")

#: Seconds that a core needs for a kernel value: its exponential and its share of the products, and
#: what each column of the view adds. Measured on a 2.8 GHz Xeon, like the next three.
SECONDS_A_VALUE, SECONDS_A_COLUMN = 2.4e-9, 0.1e-9
#: Seconds that a core needs to read a kernel value in memory, and for a step of a factorisation.
SECONDS_A_READ, SECONDS_A_FLOP = 1.0e-9, 4.0e-11
#: Passes over the kernels that a fit is planned with, those of tiled kernels with the help of a
#: preconditioner, and the seconds that it may take under "auto" before landmark rows stand for all.
PLANNED_PASSES, PRECONDITIONED_PASSES = 16, 8
PATIENCE = 90.0
#: Rows of the preconditioner: at most, at least, and the share of the memory that they may take.
PRECONDITIONER_ROWS, FEWEST_PRECONDITIONER_ROWS, PRECONDITIONER_SHARE = 500, 50, 0.25
#: How much faster one GPU evaluates kernels than two cores do.
GPU_SPEED = 500.0
#: Rows up to which dense kernels are always the choice: rows can be left out of everything.
DENSE_ROWS = 4000
#: Rows per column of the widest view below which a row must be left out of its scaling too.
ROWS_A_COLUMN = 10
#: Columns of the solver's basis: those it cannot do without, those that must fit for it to work
#: without matrices, and those that it is ever given.
FEWEST_COLUMNS, MIN_COLUMNS, MAX_COLUMNS = 8, 24, 300


@dataclass(frozen=True)
class Plan:
    """How kernels will be kept, and what the solver's basis may take."""

    storage: str
    max_columns: int = MAX_COLUMNS
    reason: str = ""
    """Why kernels are approximated, where they are."""
    note: str = ""
    """What was chosen and what it is thought to take, in one line."""


def basis_columns(J: int, n: int, limit: int) -> int:
    """Columns of a subspace basis that fit: it keeps Q, and K_jQ for all j.

    It grows by doubling, and takes half as much again while it does.
    """
    return int(limit / basis_bytes(J, n, 1))


def basis_bytes(J: int, n: int, columns: int) -> float:
    """Bytes that a subspace basis of so many columns takes at most."""
    return 1.5 * columns * 8.0 * n * (J + 1)


def preconditioner_rows(J: int, n: int, limit: int) -> int:
    """Rows of a Nystroem preconditioner that are worth their memory; 0 where none are.

    It keeps them for every kernel, and their weighted sum.
    """
    rows = min(PRECONDITIONER_ROWS, n // 8, int(PRECONDITIONER_SHARE * limit / (8.0 * n * (J + 1))))
    return rows if rows >= FEWEST_PRECONDITIONER_ROWS else 0


def predicted_seconds(storage: str, J: int, n: int, columns: int = 20) -> float:
    """What learning weights and coefficients is thought to take on all cores of this machine."""
    value = SECONDS_A_VALUE + SECONDS_A_COLUMN * columns
    half = 0.5 * J * n * n
    if storage == "dense":  # half of each kernel is evaluated, all is read; factor and inverse
        read = PLANNED_PASSES * 2 * half * SECONDS_A_READ
        total = half * value + read + float(n) ** 3 * SECONDS_A_FLOP
    else:
        total = PRECONDITIONED_PASSES * half * value
    return float(total / effective_n_jobs(-1))


def plan_storage(
    storage: str,
    J: int,
    n: int,
    itemsize: int,
    limit: int,
    *,
    matrix_free: bool = True,
    columns: int = 20,
    there: bool = False,
) -> Plan:
    """Choose a storage for J kernels of n rows that keeps within a limit of bytes.

    ``"auto"`` is dense up to `DENSE_ROWS` rows where J n^2 fits the limit; beyond, the quicker of
    dense and tiled (where the basis of the subspace solver fits), and Nystroem where that would
    still take longer than `PATIENCE`. ``matrix_free`` says whether the method can work without n x
    n matrices, ``there`` that kernels are evaluated on a device, where dense is quicker;
    ``columns`` are those of the widest view.
    """
    if storage not in STORAGES:
        raise ValueError(f"storage: got {storage!r}; expected one of {STORAGES}.")
    if storage == "dense" or not matrix_free:
        check_memory(J, n, itemsize, limit)
        return Plan("dense", note="dense")
    size = dense_bytes(J, n, itemsize)
    always = there or n <= max(DENSE_ROWS, ROWS_A_COLUMN * columns)
    if storage == "auto" and size <= limit and always:
        return Plan("dense", note="dense")
    speed = GPU_SPEED if there else 1.0
    tiled, dense = (predicted_seconds(kind, J, n, columns) / speed for kind in ("tiled", "dense"))
    both = f"about {tiled:.2g} s; dense {dense:.2g} s, {format_bytes(size)}"
    if storage == "auto" and size <= limit and dense <= tiled:
        return Plan("dense", note=f"dense, about {dense:.2g} s; tiled {tiled:.2g} s")
    columns = min(MAX_COLUMNS, basis_columns(J, n, limit))
    fewest = {"tiled": MIN_COLUMNS, "dask": FEWEST_COLUMNS}.get(storage, 2)
    if columns < fewest:  # under "auto", no storage fits
        instead = "use storage='nystroem', " if storage in ("tiled", "dask") else ""
        raise MemoryLimitError(
            f"memory_limit: {format_bytes(limit)} is too little for {J} kernels of {n} rows: the "
            f"solver keeps at least a basis of {fewest} columns, "
            f"{format_bytes(basis_bytes(J, n, fewest))}, besides the data. Raise memory_limit, "
            f"{instead}or use fewer kernels, or a random subset of the rows."
        )
    slow = min(tiled, dense if size <= limit else np.inf) > PATIENCE
    if storage == "auto" and (columns < MIN_COLUMNS or slow):
        why = (
            f"evaluating them on the fly would take about {_duration(tiled)} here"
            if columns >= MIN_COLUMNS
            else f"neither does a basis of {MIN_COLUMNS} columns for evaluating them on the fly "
            f"({format_bytes(basis_bytes(J, n, MIN_COLUMNS))})"
        )
        text = (
            f"{J} kernels of {n} x {n} do not fit {format_bytes(limit)}, and {why}"
            if size > limit
            else f"learning from {J} kernels of {n} x {n} would take about "
            f"{_duration(min(tiled, dense))} here"
        )
        return Plan("nystroem", max(columns, FEWEST_COLUMNS), text, f"nystroem; tiled {both}")
    # The landmarks take more than the basis: it gets what it cannot do without.
    chosen = "tiled" if storage == "auto" else storage
    note = f"{chosen}, {both}" if chosen == "tiled" else chosen
    return Plan(chosen, max(columns, FEWEST_COLUMNS), note=note)


def _duration(seconds: float) -> str:
    """Seconds for people: 45 seconds, 7 minutes, 2.5 hours."""
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.2g} hours"


def build_stack(
    bank: KernelSet,
    storage: str = "auto",
    *,
    dtype: Any = np.float64,
    limit: int,
    landmarks: int = 1000,
    matrix_free: bool = True,
    client: Any = None,
    device: Any = None,
    on_device: Any = None,
) -> Any:
    """The stack that the plan asks for; its ``max_columns`` bounds the solver's basis.

    Its ``plan_note`` says in one line what was chosen. With ``device``, a stack there;
    ``on_device`` is the `TorchKernelSet` of the kernels, where their rows are there already.
    """
    itemsize = np.dtype(dtype).itemsize
    columns = max(view.train.shape[1] for view in bank.views) if storage == "auto" else 20
    plan = plan_storage(
        storage, bank.J, bank.n, itemsize, limit,
        matrix_free=matrix_free, columns=columns, there=device is not None,
    )  # fmt: skip
    if plan.reason:
        warnings.warn(
            f"storage='auto': {plan.reason}. Using {min(landmarks, bank.n)} landmark rows "
            "(storage='nystroem') instead of all; ask for storage='tiled', or raise memory_limit, "
            "if that will not do.",
            ApproximationWarning,
            stacklevel=3,
        )
    if device is not None:
        return _torch_stack(bank, plan, dtype, landmarks, device, on_device)
    stack: Any
    if plan.storage == "dense":
        stack = DenseStack.of(bank, dtype)
    elif plan.storage == "dask":
        from kernull.operators.dask import DistributedStack

        stack = DistributedStack(bank, dtype=dtype, client=client)
    elif plan.storage == "tiled":
        from kernull.operators.tiled import TiledStack

        stack = TiledStack(bank, dtype=dtype, memory_limit=limit)
        rows = preconditioner_rows(bank.J, bank.n, limit)
        left = basis_columns(bank.J, bank.n, int(limit - 8 * rows * bank.n * (bank.J + 1)))
        if left >= MIN_COLUMNS:
            stack.preconditioner_rows = rows
            plan = replace(plan, max_columns=min(plan.max_columns, left))
    else:
        from kernull.operators.nystroem import LowRankStack, choose_landmarks

        room = int(limit - basis_bytes(bank.J, bank.n, plan.max_columns))
        index = choose_landmarks(bank, landmarks)
        stack = LowRankStack.from_kernel_set(bank, index, keep_bytes=room, dtype=dtype)
    stack.max_columns, stack.plan_note = plan.max_columns, plan.note
    return stack


def _torch_stack(
    bank: KernelSet, plan: Plan, dtype: Any, landmarks: int, device: Any, on_device: Any
) -> Any:
    import torch

    from kernull.operators.nystroem import LowRankStack, choose_landmarks
    from kernull.operators.torch_tiled import TorchTiledStack

    kind = torch.float32 if np.dtype(dtype) == np.float32 else torch.float64
    stack: Any = on_device.stack() if on_device else None
    if stack is None:
        stack = TorchTiledStack.from_kernel_set(bank, device, kind)
    if plan.storage == "dense":
        stack = stack.dense()
    elif plan.storage == "nystroem":
        stack = LowRankStack.from_torch(stack, choose_landmarks(bank, landmarks))
    stack.max_columns = plan.max_columns
    return stack


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}I": 1024**power for power, unit in enumerate("KMGT", start=1)}

#: Where Linux keeps the limits of a container; psutil looks at the whole machine.
CONTROL_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes this process may still take: free memory, or the control group's limit if lower."""
    free = int(psutil.virtual_memory().available)
    limit, used = (CONTROL_GROUP / name for name in ("memory.max", "memory.current"))
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return max(free, 0)


def parse_memory_limit(limit: Any) -> int:
    """Bytes from None (half of what is available), a number of bytes, or text such as "2GB"."""
    if limit is None:
        return available_memory() // 2
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*((?:[KMGT]I?)?)B?\s*", limit.upper())
        if found and float(found.group(1)) > 0:
            return int(float(found.group(1)) * _UNITS[found.group(2)])
    elif isinstance(limit, Real) and not isinstance(limit, bool) and 0 < float(limit) < math.inf:
        return int(float(limit))
    raise ValueError(
        f'memory_limit: got {limit!r}; expected None, a number of bytes, or text such as "2GB".'
    )


def format_bytes(count: float) -> str:
    """Bytes for people: 12.8 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def dense_bytes(J: int, n: int, itemsize: int) -> int:
    """Bytes of J dense kernels and three working matrices (combined kernel, factor, distances)."""
    return J * n * n * itemsize + 3 * n * n * 8


def check_memory(J: int, n: int, itemsize: int, limit: int) -> None:
    """Refuse a dense stack that does not fit, before it is allocated."""
    need = dense_bytes(J, n, itemsize)
    if need > limit:
        raise MemoryLimitError(
            f"storage: {J} dense kernels of {n} x {n} need {format_bytes(need)}, the memory limit "
            f"is {format_bytes(limit)}. Use storage='tiled' (exact, nothing n x n is kept) or "
            "'nystroem' where the method offers them, raise memory_limit, use dtype='float32', "
            "fewer kernels, or a random subset of the rows."
        )

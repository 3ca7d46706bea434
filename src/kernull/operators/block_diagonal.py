"""Several stacks side by side: block-diagonal kernels, for tasks that share their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.operators.base import Stack, StackShape


class BlockDiagonalStack(StackShape):
    """Kernels K_j = diag(K^1_j, ..., K^C_j) over the rows of C tasks, never formed whole.

    Rows of different tasks do not meet: kernel values between them are zero.
    """

    def __init__(self, blocks: Sequence[Stack]) -> None:
        if not blocks:
            raise ValueError("blocks: got no stack; expected one per task.")
        counts = sorted({block.J for block in blocks})
        if len(counts) > 1:
            raise InvalidKernelError(
                f"kernels: tasks have {counts} kernels; tasks that share weights need the same "
                "kernels in the same order."
            )
        self.blocks = tuple(blocks)
        ends = np.cumsum([block.n for block in blocks]).tolist()
        #: Rows of each task.
        self.slices = tuple(
            slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)
        )
        self.shape = (ends[-1], ends[-1])
        self.scale = np.ones(counts[0])  # each block applies its own

    def products(self, V: Array) -> Array:
        """K_j V for every j: (n,) -> (J, n), (n, k) -> (J, n, k)."""
        parts = [
            block.products(V[rows]) for block, rows in zip(self.blocks, self.slices, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    @property
    def combine(self) -> Callable[[Array], Array]:
        """Sum of b_j K_j as one n x n matrix; there where every task's stack offers it."""
        blocks: Any = self.blocks
        calls = [block.combine for block in blocks]  # no attribute where one never forms it

        def combined(weights: Array) -> Array:
            return np.asarray(block_diag(*(call(weights) for call in calls)))

        return combined

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n)."""
        return np.concatenate([block.diagonal() for block in self.blocks], axis=1)

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        wanted = np.arange(self.n)[index]
        out = np.zeros((self.J, len(wanted), self.n))
        for block, rows in zip(self.blocks, self.slices, strict=True):
            here = np.flatnonzero((wanted >= rows.start) & (wanted < rows.stop))
            if len(here):
                out[:, here, rows] = block.rows(wanted[here] - rows.start)
        return out

"""The weighted sum of the training rows' kernels: half of it, in blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kernull._typing import Array
from kernull.kernels.functions import BLOCK_ROWS, squared_blocks

if TYPE_CHECKING:
    from kernull.stacks.kernel_set import ScaledView


class WeightedSum:
    r""":math:`\sum_j b_j K_j` of n training rows, to which views are added one by one."""

    def __init__(self, n: int) -> None:
        self._out = np.zeros((n, n))
        self._room = np.empty((2, min(BLOCK_ROWS, n) * n))

    def add(
        self, view: ScaledView, b: Array, known: Mapping[str, list[Array]] | None = None
    ) -> None:
        """Add the kernels of a view, each times its weight.

        ``known`` holds distances by metric where `kernull.kernels.mean_distance` kept them.
        """
        ready = {metric: kept for metric, kept in (known or {}).items() if kept}
        centre = next((k.centre for k in view.kernels if k.metric == "euclidean"), None)
        squared = None
        if centre is not None and "euclidean" not in ready:
            squared = squared_blocks(view.train - centre)
        for i, begin in enumerate(range(0, len(self._out), BLOCK_ROWS)):
            rows, rest = slice(begin, begin + BLOCK_ROWS), slice(begin, None)
            block = self._out[rows, rest]
            # Contiguous, for the product of matrices to be written there.
            part, far = (flat[: block.size].reshape(block.shape) for flat in self._room)
            distances = {metric: kept[i] for metric, kept in ready.items()}
            for weight, kernel in zip(b, view.kernels, strict=True):
                if kernel.metric is None:
                    K = kernel(view.train[rows], view.train[rest])
                else:
                    if kernel.metric not in distances:
                        distances[kernel.metric] = (
                            squared(rows, rest, out=far)
                            if squared is not None and kernel.metric == "euclidean"
                            else kernel.distances(view.train[rows], view.train[rest])
                        )
                    K = kernel.of_distances(distances[kernel.metric], out=part)
                block += np.multiply(K, weight, out=part)

    def matrix(self) -> Array:
        """The sum so far, of shape (n, n)."""
        out = self._out
        for begin in range(0, len(out), BLOCK_ROWS):  # the other half is the same
            rows, rest = slice(begin, begin + BLOCK_ROWS), slice(begin + BLOCK_ROWS, None)
            out[rest, rows] = out[rows, rest].T
        return out

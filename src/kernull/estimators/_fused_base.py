"""What methods on one fused kernel share."""

from __future__ import annotations

import numpy as np

from kernull._typing import Array
from kernull.estimators._base import OneClassKernelEstimator
from kernull.estimators._fusion import (
    check_fusion,
    constant_diagonal,
    fuse_square,
    fused_blocks,
    fused_diagonal,
    self_similarity,
)
from kernull.stacks import CrossKernels, DenseStack

__all__ = ["FusedKernelEstimator"]


class FusedKernelEstimator(OneClassKernelEstimator):
    """What they share: one kernel out of many, and products with it."""

    fusion: str

    def _fuse(self, stack: DenseStack) -> Array:
        check_fusion(self.fusion)
        self._constant_diagonal = constant_diagonal(stack)
        return fuse_square(stack, self.fusion)

    def _project(self, cross: DenseStack | CrossKernels, V: Array) -> Array:
        """K V between the rows of a cross stack and the training rows."""
        out = np.empty((len(cross), *V.shape[1:]))
        for rows, K in fused_blocks(cross, self.fusion):
            out[rows] = K @ V
        return out

    def _own_similarity(self, cross: DenseStack | CrossKernels) -> Array:
        return fused_diagonal(self_similarity(cross, self._constant_diagonal), self.fusion)

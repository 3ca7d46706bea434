"""Kernel functions and their widths."""

from kernull.kernels.functions import (
    KERNELS,
    FittedKernel,
    KernelSpec,
    mean_distance,
    neighbour_distance,
    parse_kernels,
)

__all__ = [
    "KERNELS",
    "FittedKernel",
    "KernelSpec",
    "mean_distance",
    "neighbour_distance",
    "parse_kernels",
]

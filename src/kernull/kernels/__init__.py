"""Kernel functions and their widths."""

from kernull.kernels.functions import KERNELS, FittedKernel, KernelSpec, parse_kernels
from kernull.kernels.widths import mean_distance, neighbour_distance

__all__ = [
    "KERNELS",
    "FittedKernel",
    "KernelSpec",
    "mean_distance",
    "neighbour_distance",
    "parse_kernels",
]

"""Kernel functions and their widths."""

from kernull.kernels.functions import (
    KERNELS,
    Cosine,
    Custom,
    DistanceKernel,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Rbf,
    mean_distance,
    neighbour_distance,
    parse_kernels,
)

__all__ = [
    "KERNELS",
    "Cosine",
    "Custom",
    "DistanceKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Rbf",
    "mean_distance",
    "neighbour_distance",
    "parse_kernels",
]

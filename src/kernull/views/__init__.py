"""Views: which columns feed which kernel, and how each view is scaled."""

from kernull.views.columns import join_views, resolve_views
from kernull.views.kernel_set import KernelSet
from kernull.views.scaling import (
    SCALINGS,
    Quantile,
    Scaling,
    Standard,
    Unscaled,
    Whiten,
    WhitenRaw,
    check_views,
    fit_scaling,
    knows_unseen,
    read_scalings,
    scaling_name,
)

__all__ = [
    "SCALINGS",
    "KernelSet",
    "Quantile",
    "Scaling",
    "Standard",
    "Unscaled",
    "Whiten",
    "WhitenRaw",
    "check_views",
    "fit_scaling",
    "join_views",
    "knows_unseen",
    "read_scalings",
    "resolve_views",
    "scaling_name",
]

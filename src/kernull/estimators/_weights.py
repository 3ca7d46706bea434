"""Where an estimator's kernel weights live: the ball of its parameters p and r."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernull.balls import LpBall, MixedBall
from kernull.stacks import KernelSet

__all__ = ["weight_ball"]


def weight_ball(
    p: Any, r: Any, kernel_groups: Any, bank: KernelSet | None, J: int
) -> LpBall | MixedBall:
    """The lp ball, or the mixed (r, p) ball over groups of kernels where ``r`` is given.

    Kernels of one view form a group unless ``kernel_groups`` names another grouping.
    """
    if r is None:
        if kernel_groups is not None:
            raise ValueError(
                "kernel_groups: got groups while r is None; pass r, the norm within a group."
            )
        return LpBall(p)
    return MixedBall(p, r, _groups(kernel_groups, bank, J))


def _groups(kernel_groups: Any, bank: KernelSet | None, J: int) -> Sequence[Any]:
    if kernel_groups is None:
        if bank is None:
            raise ValueError(
                "kernel_groups: precomputed kernels belong to no view; with r, pass the group of "
                f"each of the {J} kernels."
            )
        return bank.kernel_views
    groups: list[Any] = np.asarray(kernel_groups, dtype=object).tolist()
    if not isinstance(groups, list) or len(groups) != J:
        raise ValueError(
            f"kernel_groups: got {kernel_groups!r}; expected {J} names, the group of each kernel "
            "in the order of kernel_names_."
        )
    return groups

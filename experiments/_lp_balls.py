"""The paper's figure of lp balls: where weights of two kernels may live (Fig. lpspace)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments._plots import new_figure, save
from kernull._typing import Array

__all__ = ["boundary", "draw_lp_balls"]

PS = (1.0, 4 / 3, 2.0, 4.0, 1e6)


def boundary(p: float, points: int = 201) -> Array:
    """Points b >= 0 with ||b||_p = 1, shape (2, points), from (1, 0) to (0, 1).

    Examples
    --------
    >>> boundary(1.0, 3).round(2).tolist()
    [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
    """
    angle = np.linspace(0.0, np.pi / 2, points)
    direction = np.abs([np.cos(angle), np.sin(angle)])
    direction[direction < 1e-15] = 0.0
    # Scaled by the largest entry first: powers of 10^6 neither overflow nor vanish.
    largest = direction.max(axis=0)
    norm = largest * ((direction / largest) ** p).sum(axis=0) ** (1 / p)
    return np.asarray(direction / norm)


def draw_lp_balls(path: Path) -> None:
    """Draw the unit balls of several p in the first quadrant."""
    figure, axes = new_figure(figsize=(3.6, 3.4))
    for p in PS:
        axes.plot(*boundary(p), label=f"p = {p:.3g}" if p < 1e6 else "p = 10^6")
    axes.set(xlabel="weight of kernel 1", ylabel="weight of kernel 2", aspect="equal")
    axes.set_title("Unit lp balls, first quadrant", fontsize=10)
    axes.legend(fontsize=7, loc="lower left")
    axes.grid(alpha=0.3)
    save(figure, path)

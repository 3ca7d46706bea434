"""What all displays share: lazy matplotlib, axes, colours."""

from __future__ import annotations

from typing import Any

from kernull.errors import need

__all__ = ["GROUPS", "NORMAL", "OUTLIER", "PALE", "get_axes"]

NORMAL = "#4878a8"
OUTLIER = "#c0392b"
PALE = "#9aa5b1"
#: Colours of further groups.
GROUPS = (NORMAL, "#d9952b", "#5d9b6a", "#8064a2")


def get_axes(ax: Any, **figure: Any) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    plt = need("matplotlib.pyplot", "displays need matplotlib: pip install kernull[plot].")
    return plt.subplots(layout="tight", **figure)[1]

"""E7. Caltech-256, protocol 2: each of five random classes the target, clutter novel.

The five classes are drawn by a seed, once. Targets 60/20/20 to training, validation and test;
clutter half to validation, half to test; ten repeats.
"""

from __future__ import annotations

from pathlib import Path

from experiments._caltech import caltech_cells, prepare_caltech, run_caltech
from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._deep import base_settings
from experiments._deep_report import deep_report

__all__ = ["EXPERIMENT"]

CLASSES = sorted(int(c) for c in generator("E7", "classes").choice(256, 5, replace=False) + 1)


def settings(quick: bool) -> Settings:
    """The five classes."""
    return {
        **base_settings(quick),
        "classes": CLASSES[:2] if quick else CLASSES,
        "repeats": 1 if quick else 10,
    }


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """All methods of a family on one class."""
    return run_caltech("E7", cell, settings, folder, "clutter")


EXPERIMENT = Experiment(
    "E7",
    "Caltech-256, protocol 2: five random classes against clutter",
    settings,
    caltech_cells,
    run,
    deep_report("E7", "Each of five classes drawn by seed the target, the clutter class novel."),
    prepare=prepare_caltech,
)

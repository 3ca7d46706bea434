"""E6. Caltech-256, protocol 1: each of the first 40 classes the target, the other 255 novel.

Targets 60/20/20 to training, validation and test; novel images half to validation, half to test.
"""

from __future__ import annotations

from pathlib import Path

from experiments._caltech import caltech_cells, prepare_caltech, run_caltech
from experiments._cells import Cell, Experiment, Rows, Settings
from experiments._deep import base_settings
from experiments._deep_report import deep_report

__all__ = ["EXPERIMENT"]


def settings(quick: bool) -> Settings:
    """Classes by number; the names come from the data."""
    return {**base_settings(quick), "classes": list(range(1, 4 if quick else 41)), "repeats": 1}


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """All methods of a family on one class."""
    return run_caltech("E6", cell, settings, folder, "others")


EXPERIMENT = Experiment(
    "E6",
    "Caltech-256, protocol 1: the first 40 classes against all others",
    settings,
    caltech_cells,
    run,
    deep_report("E6", "Each of the first 40 classes the target, the other 255 novel."),
    prepare=prepare_caltech,
)

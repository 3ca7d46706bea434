"""E6. Caltech-256, protocol 1: each of the first 40 classes the target, the other 255 novel.

Targets 60/20/20 to training, validation and test; novel images half to validation, half to test.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernull.experiments._caltech import caltech, prepare_caltech, run_caltech
from kernull.experiments._cells import Cell, Experiment, Rows, Settings
from kernull.experiments._deep import base_settings, families
from kernull.experiments._deep_report import deep_report

__all__ = ["EXPERIMENT"]


def settings(quick: bool) -> Settings:
    """Classes by number; the names come from the data."""
    return {**base_settings(quick), "classes": list(range(1, 4 if quick else 41)), "repeats": 1}


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Classes x families x repeats."""
    names = caltech().names
    targets = [f"{c:03d} {names[c]}" for c in settings["classes"] if c in names]
    return families(settings, targets, repeats or settings["repeats"])


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """All methods of a family on one class."""
    return run_caltech("E6", cell, settings, folder, "others")


EXPERIMENT = Experiment(
    "E6",
    "Caltech-256, protocol 1: the first 40 classes against all others",
    settings,
    cells,
    run,
    deep_report("E6", "Each of the first 40 classes the target, the other 255 novel."),
    prepare=prepare_caltech,
)

"""E8-flowers. Flowers17: each of 17 classes the target, in place of the object experiments.

Not in the paper, which uses its Caltech-256; the protocol is that of E6: targets 60/20/20, the
other classes half to validation and half to test, three repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._deep import SMALL, base_settings, families, load_features, write_features
from experiments._deep_report import deep_report
from experiments._deep_run import run_family
from experiments._models import split_rows
from experiments.datasets import load_flowers17_images

__all__ = ["EXPERIMENT"]

IMAGES, CLASSES = 1360, 17


def settings(quick: bool) -> Settings:
    """Classes and repeats."""
    base = base_settings(quick)
    if quick:  # the others take minutes
        base["networks"] = [n for n in base["networks"] if n in SMALL] or base["networks"]
    return {
        **base,
        "classes": list(range(3 if quick else CLASSES)),
        "repeats": 1 if quick else 3,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Classes x families x repeats."""
    load_flowers17_images(labels=[])  # a missing file should be reported before any work is done
    targets = [str(c) for c in settings["classes"]]
    return families(settings, targets, repeats or settings["repeats"])


def prepare(settings: Settings, folder: Path, jobs: int) -> None:
    """Features of all images, in the order of their numbers."""

    def images() -> list[object]:
        return [item.image for item in load_flowers17_images()]

    write_features(images, settings["networks"], folder, jobs)


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """All methods of a family on one class."""
    family, _, scaling = cell.method.partition(", ")
    labels = np.where(np.arange(IMAGES) // (IMAGES // CLASSES) == int(cell.data), 1, -1)
    split = split_rows(labels, generator("E8-flowers", cell.data, cell.repeat))
    features = load_features(settings["networks"], folder)
    rows = run_family(family, scaling, features, labels, split, settings, cell.repeat)
    return [{"target": cell.data, **row} for row in rows]


EXPERIMENT = Experiment(
    "E8-flowers",
    "Flowers17: each class the target in turn",
    settings,
    cells,
    run,
    deep_report("E8-flowers", "Each of 17 kinds of flowers the target, the others novel."),
    prepare=prepare,
)

"""What the two protocols of Caltech-256 share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from experiments._cells import Cell, Rows, Settings, generator
from experiments._deep import families, load_features, write_features
from experiments._deep_run import run_family
from experiments._models import Split, split_rows
from experiments.datasets import ImageFiles, load_caltech256

__all__ = ["caltech", "caltech_cells", "prepare_caltech", "run_caltech"]


@lru_cache(maxsize=1)
def caltech() -> ImageFiles:
    """The files, listed once."""
    return load_caltech256()


def caltech_cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Classes x families x repeats."""
    names = caltech().names
    targets = [f"{c:03d} {names[c]}" for c in settings["classes"] if c in names]
    return families(settings, targets, repeats or settings["repeats"])


def prepare_caltech(settings: Settings, folder: Path, jobs: int) -> None:
    """Features of every image, once for both protocols: beside their folders."""
    write_features(list(caltech().paths), settings["networks"], _shared(folder), jobs)


def _shared(folder: Path) -> Path:
    return folder.parent / "caltech256"


def run_caltech(name: str, cell: Cell, settings: Settings, folder: Path, novel: str) -> Rows:
    """All methods of a family on one class; novel are ``"others"`` or ``"clutter"``."""
    data = caltech()
    family, _, scaling = cell.method.partition(", ")
    target = int(cell.data.split()[0])
    outlier = data.labels == 257 if novel == "clutter" else data.labels < 257
    rows = np.flatnonzero((data.labels == target) | outlier)
    labels = np.where(data.labels == target, 1, -1)
    split = split_rows(labels[rows], generator(name, cell.data, cell.repeat))
    split = Split(*(rows[part] for part in split))
    features = load_features(settings["networks"], _shared(folder))
    found = run_family(family, scaling, features, labels, split, settings, cell.repeat)
    return [{"target": cell.data, **row} for row in found]

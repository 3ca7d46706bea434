"""E5. 1001 Abnormal Objects: six classes, abnormal images against normal ones of PASCAL VOC.

Training images are PASCAL VOC's own training list of the class; its validation list and the
abnormal images are halved at random between validation and test, five repeats. Whole images.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._deep import base_settings, families, load_features, write_features
from experiments._deep_report import deep_report
from experiments._deep_run import run_family
from experiments._models import Split
from experiments.datasets import ABNORMAL_CLASSES, AbnormalImages, load_abnormal1001

__all__ = ["EXPERIMENT"]


def settings(quick: bool) -> Settings:
    """Classes and repeats."""
    classes = list(ABNORMAL_CLASSES)
    return {
        **base_settings(quick),
        "classes": classes[:2] if quick else classes,
        "repeats": 1 if quick else 5,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Classes x families x repeats."""
    for label in settings["classes"]:
        _data(label)  # a missing file should be reported before any work is done
    return families(settings, settings["classes"], repeats or settings["repeats"])


@lru_cache(maxsize=8)
def _data(label: str) -> AbnormalImages:
    return load_abnormal1001(label)


def prepare(settings: Settings, folder: Path, jobs: int) -> None:
    """Features of each class in a folder of its own."""
    for label in settings["classes"]:
        data = _data(label)
        paths = [*data.train, *data.validation, *data.abnormal]
        write_features(paths, settings["networks"], folder / label, jobs)


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """All methods of a family on one class."""
    data = _data(cell.data)
    family, _, scaling = cell.method.partition(", ")
    a, b = len(data.train), len(data.train) + len(data.validation)
    rng = generator("E5", cell.data, cell.repeat)
    normal = rng.permutation(np.arange(a, b))
    abnormal = rng.permutation(np.arange(b, b + len(data.abnormal)))
    halves = [np.array_split(rows, 2) for rows in (normal, abnormal)]
    split = Split(np.arange(a), *(np.concatenate([h[i] for h in halves]) for i in (0, 1)))
    labels = np.where(np.arange(b + len(abnormal)) < b, 1, -1)
    features = load_features(settings["networks"], folder / cell.data)
    rows = run_family(family, scaling, features, labels, split, settings, cell.repeat)
    return [{"target": cell.data, **row} for row in rows]


EXPERIMENT = Experiment(
    "E5",
    "1001 Abnormal Objects: abnormal images of six classes",
    settings,
    cells,
    run,
    deep_report("E5", "Each class the target, its abnormal images the outliers."),
    prepare=prepare,
)

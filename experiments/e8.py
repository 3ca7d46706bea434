"""E8. MNIST: each digit the target in turn.

The training images of each digit are shuffled by a seed of its own and the first thousand kept:
on two cores, features of all sixty thousand would take half an hour a network, and kernels more
than the memory of most machines. (`benchmarks.mnist_gpu` does the same with every image on a GPU;
a table ``full.csv`` of it in this experiment's folder joins the page.) The first 80 % of the target
digit train, the last 20 % and a hundred of each other digit validate; all 10,000 test images test.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._deep import SMALL, base_settings, families, load_features, write_features
from experiments._deep_report import deep_body, deep_report, networks
from experiments._deep_run import run_family
from experiments._models import Split
from experiments.datasets import Mnist, load_mnist

__all__ = ["EXPERIMENT", "full_section"]


def settings(quick: bool) -> Settings:
    """Digits, training images a digit, and the networks that two cores can afford."""
    base = base_settings(quick)
    small = [name for name in base["networks"] if name in SMALL]
    return {
        **base,
        "networks": small or base["networks"],
        "digits": [0, 8] if quick else list(range(10)),
        "per_digit": 100 if quick else 1000,
        "outliers": 20 if quick else 100,
        "test": 500 if quick else None,
        "share": 0.8,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Digits x families; the split is fixed, so that there is nothing to repeat."""
    _data()  # a missing file should be reported before any work is done
    return families(settings, [str(d) for d in settings["digits"]], 1)


@lru_cache(maxsize=1)
def _data() -> Mnist:
    return load_mnist()


def pools(labels: Any, per_digit: int) -> list[Any]:
    """Training images of each digit, in the order drawn for it."""
    return [
        generator("E8", "train", digit).permutation(np.flatnonzero(labels == digit))[:per_digit]
        for digit in range(10)
    ]


def prepare(settings: Settings, folder: Path, jobs: int) -> None:
    """Features of the pools, digit by digit, then of the test images."""
    data = _data()
    rows = np.concatenate(pools(data.train_labels, settings["per_digit"]))
    images = np.concatenate([data.train_images[rows], data.test_images[: settings["test"]]])
    write_features(images, settings["networks"], folder, jobs)


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """All methods of a family on one digit."""
    data = _data()
    digit = int(cell.data)
    family, _, scaling = cell.method.partition(", ")
    sizes = [len(pool) for pool in pools(data.train_labels, settings["per_digit"])]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    own = np.arange(starts[digit], starts[digit + 1])
    cut = round(settings["share"] * len(own))
    others = [
        np.arange(starts[d + 1] - settings["outliers"], starts[d + 1])
        for d in range(10)
        if d != digit
    ]
    tested = data.test_labels[: settings["test"]]
    digits = np.concatenate([np.repeat(np.arange(10), sizes), tested])
    test = np.arange(starts[-1], len(digits))
    split = Split(own[:cut], np.concatenate([own[cut:], *others]), test)
    labels = np.where(digits == digit, 1, -1)
    features = load_features(settings["networks"], folder)
    rows = run_family(family, scaling, features, labels, split, settings, digit)
    return [{"target": cell.data, **row} for row in rows]


def full_section(folder: Path, tables: Path | None = None) -> str:
    """The GPU run with every training image, where its table is; its figure goes to the folder."""
    path = (tables or folder) / "full.csv"
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", newline="") as file:
        rows: Rows = [dict(row) for row in csv.DictReader(file)]
    body = deep_body(rows, folder, experiment="E8", figure="full.png", by_target=False)
    names = sorted(
        {
            row["method"][3:]
            for row in rows
            if row["method"][:3] == "FN " and "," not in row["method"]
        }
    )
    return (
        "## Every training image (`benchmarks.mnist_gpu`, one GPU)\n\n"
        f"{networks(names)} "
        "90 % of a digit's training images train, 10 % and a hundred of each other digit validate, "
        "all test images test. Methods on SVMs have the first thousand training images, KPCA the "
        'first two thousand. "networks x regions": besides each network on the whole image, the '
        "four small networks on four overlapping quarters of it.\n\n" + body
    )


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """The page: this run, and the one with every image where there is one."""
    introduction = "Each digit the target in turn (by digit: the tables beside this page)."
    own = deep_report("E8", introduction, by_target=False)(rows, settings, folder)
    full = full_section(folder, settings.get("tables"))
    return f"{full}\n\n## A thousand training images per digit\n\n{own}" if full else own


EXPERIMENT = Experiment(
    "E8", "MNIST: each digit the target in turn", settings, cells, run, report, prepare=prepare
)

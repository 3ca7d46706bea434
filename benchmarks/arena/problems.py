"""The problems: which there are, their rows and their splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from benchmarks.arena import adbench, features, protocol
from experiments._cells import generator
from experiments.datasets import (
    DELFT,
    DatasetNotFound,
    data_home,
    delft_classes,
    load_delft,
    load_multiple_features,
)
from kernull.views import join_views

BUNDLED = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}


@dataclass(frozen=True)
class Problem:
    """One class of one set as the target."""

    source: str
    target: int

    @property
    def name(self):
        return f"{self.source} ({self.target})"

    @property
    def family(self):
        return {"mfeat": "multi-view", "mnist": "images", "flowers17": "images"}.get(
            self.source, "tables"
        )

    @property
    def repeats(self):
        group, _, rest = self.source.partition("/")
        return protocol.REPEATS["digits" if rest == "digits" else group]


class Data(NamedTuple):
    """Rows of a set: all views joined, their classes, and which rows are for testing only."""

    X: Any
    classes: Any
    views: dict[str, list[int]] | None
    test_only: Any


class Catalogue(NamedTuple):
    problems: list[Problem]
    left_out: list[str]
    """What is missing, and why."""


def named(name):
    """The problem of a name."""
    source, _, target = name.rpartition(" ")
    return Problem(source, int(target.strip("()")))


def catalogue(families=protocol.FAMILIES):
    """All problems that can be had here, in a fixed order."""
    problems, left_out = [], []
    for family in protocol.FAMILIES:
        if family not in families:
            continue
        for source in _sources(family):
            try:
                counts = _training_counts(source)
            except (DatasetNotFound, features.NoFeaturesError) as error:
                left_out.append(f"{source}: {error}")
                continue
            for target, count in counts.items():
                if count < protocol.MIN_TRAINING:
                    left_out.append(f"{source} ({target}): {count} training targets")
                else:
                    problems.append(Problem(source, target))
    return Catalogue(problems, left_out)


def table_sources():
    """All sets of tables, whether they are here or not."""
    return [
        *(f"delft/{name}" for name in DELFT),
        *(f"sklearn/{name}" for name in BUNDLED),
        *(f"adbench/{name}" for name in adbench.TABLES),
    ]


def _sources(family):
    if family == "tables":
        return table_sources()
    return ["mfeat"] if family == "multi-view" else ["mnist", "flowers17"]


def _training_counts(source):
    group, _, rest = source.partition("/")
    if group == "delft":
        return {target: count // 2 for target, count in delft_classes(rest).items()}
    if group == "adbench":
        return {0: min(adbench.normal_rows(rest) // 2, protocol.ADBENCH_TRAINING)}
    if group == "sklearn":
        classes = BUNDLED[rest]().target
    elif group == "mfeat":
        # All six files are needed, but reading them takes seconds and the counts are known.
        for view in ("fou", "fac", "kar", "pix", "zer", "mor"):
            if not (path := data_home() / "mfeat" / f"mfeat-{view}.csv").is_file():
                raise DatasetNotFound(f"no file {path.name!r} in mfeat/ of the data folder")
        return dict.fromkeys(range(10), 100)
    elif group == "mnist":
        features.find("mnist")
        return dict.fromkeys(range(10), protocol.MNIST_TRAINING)
    else:
        features.find("flowers17")
        return dict.fromkeys(range(17), 40)
    values, counts = np.unique(classes, return_counts=True)
    return {int(v): int(c) // 2 for v, c in zip(values, counts, strict=True)}


@lru_cache(maxsize=4)  # the problems of one set share its rows
def load(source):
    """The rows of a set."""
    group, _, rest = source.partition("/")
    if group == "delft":
        X, classes = load_delft(rest).X, np.zeros(0)
        # The loader gives +1 / -1 for one class at a time.
        classes = np.zeros(len(X), dtype=int)
        for target in delft_classes(rest):
            classes[load_delft(rest, target).y == 1] = target
        return Data(X, classes, None, np.zeros(len(X), dtype=bool))
    if group == "sklearn":
        bunch = BUNDLED[rest]()
        return Data(bunch.data, bunch.target, None, np.zeros(len(bunch.data), dtype=bool))
    if group == "adbench":
        X, classes = adbench.load(rest)
        return Data(X, classes, None, np.zeros(len(X), dtype=bool))
    if group == "mfeat":
        data = load_multiple_features()
        X, views = join_views(data.views)
        return Data(X, data.y, views, np.zeros(len(X), dtype=bool))
    arrays, classes, test_only = features.load(group)
    X, views = join_views(arrays)
    return Data(np.asarray(X, dtype=float), classes, views, test_only)


def split(problem, repeat):
    """Training rows, test rows and labels of the test rows (+1 targets, -1 outliers)."""
    data = load(problem.source)
    rng = generator("arena", problem.name, repeat)
    if data.test_only.any():
        own = np.flatnonzero((data.classes == problem.target) & ~data.test_only)
        train = rng.permutation(own)[: protocol.MNIST_TRAINING]
        test = np.flatnonzero(data.test_only)
    elif problem.source.startswith("adbench/"):
        train, test = adbench.halves(data.classes, rng)
    else:
        own = rng.permutation(np.flatnonzero(data.classes == problem.target))
        train = own[: len(own) // 2]
        test = np.concatenate([own[len(train) :], np.flatnonzero(data.classes != problem.target)])
    labels = np.where(data.classes[test] == problem.target, 1, -1)
    return data, train, test, labels


def seed(problem, repeat):
    """Seed for entrants that draw random numbers."""
    return int(generator("arena", "seed", problem.name, repeat).integers(2**31 - 1))

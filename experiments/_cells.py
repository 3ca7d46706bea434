"""Cells: the smallest pieces of an experiment, and the randomness that belongs to each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Experiment",
    "Row",
    "Rows",
    "Settings",
    "fingerprint",
    "generator",
    "load_experiment",
]

#: One line of a tidy table.
Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]
#: Everything that decides a cell's result besides its key; plain JSON.
Settings: TypeAlias = dict[str, Any]

#: Every experiment by name, and the module that declares it.
EXPERIMENTS: dict[str, str] = {
    "E1": "experiments.e1",
    "E2": "experiments.e2",
    "E3": "experiments.e3",
    "E4": "experiments.e4",
    "E4-ablation": "experiments.e4_ablation",
    "E4-hypotheses": "experiments.e4_hypotheses",
    "E4-gp": "experiments.e4_gp",
    "E4-family": "experiments.e4_family",
    "local-and-tasks": "experiments.local_and_tasks",
    "E5": "experiments.e5",
    "E6": "experiments.e6",
    "E7": "experiments.e7",
    "E8": "experiments.e8",
    "E8-flowers": "experiments.e8_flowers",
    "E9": "experiments.e9",
    "E9-joint": "experiments.e9_joint",
    "E10": "experiments.e10",
}


@dataclass(frozen=True, order=True)
class Cell:
    """One data set, one method, one repeat.

    A method may stand for several that share their kernels; the rows of the result then name
    each of them.
    """

    data: str
    method: str
    repeat: int


@dataclass(frozen=True)
class Experiment:
    """What an experiment declares.

    Parameters
    ----------
    name, title : str
        Name on the command line, and what it shows.
    settings : callable
        From ``quick`` to the settings. A stored cell counts as finished only under the settings
        it was made with.
    cells : callable
        From settings and the number of repeats (None: the experiment's own) to its cells.
    run : callable
        From a cell, the settings and the experiment's folder to rows. Pure but for reading what
        ``prepare`` wrote: the same arguments give the same rows, on any machine of one kind.
        Keys that start with ``time_`` or ``memory_`` hold what differs from run to run and are
        kept apart from results.
    report : callable
        From all rows, the settings and the folder to the Markdown body of the page; writes
        figures and further tables into the folder.
    prepare : callable, optional
        Runs once before the cells (for example features of images); must resume by itself.
    exclusive : bool
        Cells measure time, so they run one after another.
    """

    name: str
    title: str
    settings: Callable[[bool], Settings]
    cells: Callable[[Settings, int | None], Sequence[Cell]]
    run: Callable[[Cell, Settings, Path], Rows]
    report: Callable[[Rows, Settings, Path], str]
    prepare: Callable[[Settings, Path, int], None] | None = None
    exclusive: bool = False


def load_experiment(name: str) -> Experiment:
    """The experiment of a name, imported when asked for.

    Besides the names of `EXPERIMENTS`, the dotted name of any module that declares ``EXPERIMENT``
    will do, so that experiments outside this package run by the same runner.
    """
    if name not in EXPERIMENTS and "." not in name:
        raise ValueError(
            f"experiment: got {name!r}; expected one of {', '.join(EXPERIMENTS)}, or 'all'."
        )
    experiment: Experiment = import_module(EXPERIMENTS.get(name, name)).EXPERIMENT
    return experiment


def fingerprint(settings: Settings) -> str:
    """Short hash of settings."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def generator(*key: str | int) -> np.random.Generator:
    """A random generator that depends on the key alone.

    Not on the order of cells, the number of workers or the process: whoever asks with the same
    key draws the same numbers.

    Examples
    --------
    >>> bool(generator("E4", "wine", 3).random() == generator("E4", "wine", 3).random())
    True
    >>> bool(generator("E4", "wine", 3).random() == generator("E4", "wine", 4).random())
    False
    """
    digest = hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype="<u4").astype(np.uint64).tolist())

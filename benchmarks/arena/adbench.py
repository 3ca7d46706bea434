"""Twenty tables of ADBench, and the AUCs published on them in the one-class setting.

``adbench/*.npz`` of the data folder hold ``X`` and ``y`` (1 = anomaly), at most 10,000 rows each;
``published_one_class.csv`` has the AUCs of Livernoche et al. (2024), means of five seeds.
"""

from __future__ import annotations

import csv

import numpy as np

from benchmarks.arena import protocol
from experiments.datasets import DatasetNotFound, data_home

TABLES = (
    "10_cover", "11_donors", "14_glass", "15_Hepatitis", "16_http", "17_InternetAds", "1_ALOI",
    "21_Lymphography", "24_mnist", "29_Pima", "33_skin", "34_smtp", "39_vertebral", "42_WBC",
    "43_WDBC", "45_wine", "46_WPBC", "4_breastw", "5_campaign", "8_celeba",
)  # fmt: skip


def _path(name):
    path = data_home() / "adbench" / f"{name}.npz"
    if not path.is_file():
        raise DatasetNotFound(f"no file {path.name!r} in adbench/ of the data folder")
    return path


def load(name):
    """Rows, and 0 for normal ones or 1 for anomalies."""
    with np.load(_path(name)) as file:
        return np.asarray(file["X"], dtype=float), np.asarray(file["y"], dtype=int)


def normal_rows(name):
    """How many normal rows a table has."""
    with np.load(_path(name)) as file:
        return int((file["y"] == 0).sum())


def halves(classes, rng):
    """Training rows, and test rows with all anomalies that the protocol has room for."""
    normal = rng.permutation(np.flatnonzero(classes == 0))
    anomalies = rng.permutation(np.flatnonzero(classes == 1))[: protocol.ADBENCH_ANOMALIES]
    half = len(normal) // 2
    train, rest = normal[: min(half, protocol.ADBENCH_TRAINING)], normal[half:]
    return train, np.concatenate([rest[: protocol.ADBENCH_TEST - len(anomalies)], anomalies])


def published():
    """By table and method: the published AUC in percent; empty where the file is not there."""
    try:
        path = data_home() / "adbench" / "published_one_class.csv"
        text = path.read_text()
    except (DatasetNotFound, OSError):
        return {}
    stems = {name.partition("_")[2].lower(): name for name in TABLES}
    return {
        stems[row.pop("Dataset").lower()]: {method: float(v) for method, v in row.items()}
        for row in csv.DictReader(text.splitlines())
    }

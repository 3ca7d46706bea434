"""Deep views: the protocol that the image experiments share, fixed before their runs.

- One rbf kernel a network. Features are pooled activations, their signed square roots, scaled to
  unit length row by row. This, and whitening without standardising first, was found on MNIST's
  training images (never on test images) to be worth several AUC points to every method alike.
- Three scalings, each with every method: columns standardised; whitened after standardising;
  whitened as they are (Ledoit-Wolf covariances of the training targets in both).
- Every method over its own grid by validation AUC, of equal ones the first; nothing is refitted.
  Methods on SVMs learn from at most a thousand training images and have a small grid.
- "FN <network>" is the Fisher null space on that network alone. "(networks chosen)" fuses the best
  k networks by their validation AUC alone, k chosen likewise.
- Peers get all features side by side, scaled view by view.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.registry import DELTAS, PS, WIDTHS
from experiments._cells import Cell
from experiments.datasets import DatasetNotFound
from experiments.features import extract, weights_folder
from kernull._typing import Array

__all__ = [
    "FAMILIES",
    "GRIDS",
    "MAIN",
    "SCALINGS",
    "SMALL",
    "base_settings",
    "families",
    "feature_file",
    "load_features",
    "networks_here",
    "rooted",
    "write_features",
]

MAIN = "lp MK-FN"
SCALINGS = ("whiten-raw", "standard", "whiten")
#: Networks that two cores run at more than a hundred images a second.
SMALL = ("alexnet", "efficientnet_lite0", "mobilenet_v2", "squeezenet1_1")
#: Cells by what they share: kernels, feature tables, or the machines' own time.
KERNELS, PEERS, MACHINES = "kernels", "peers", "machines"
FAMILIES = (KERNELS, PEERS, MACHINES)
SVM_ROWS = 1000

GRIDS: dict[str, dict[str, list[float]]] = {
    MAIN: {"p": list(PS), "delta": list(DELTAS)},
    "FN": {"delta": [0.0, *DELTAS]},
    "GP": {"noise": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]},
    "KPCA": {"components": [0.5, 0.7, 0.9, 0.95, 0.99]},
    "kNN": {"k": [1, 5, 10]},
    "OneClassSVM": {"nu": [0.01, 0.05, 0.2]},
    "MK-SVDD": {"nu": [0.05, 0.2]},
    "Slim-MK-SVDD": {"nu": [0.05, 0.2], "slim_lambda": [0.3, 1.0]},
    "MK-OCSVM": {"nu": [0.05, 0.2]},
    "Slim-MK-OCSVM": {"nu": [0.05, 0.2], "slim_lambda": [0.3, 1.0]},
}
#: Detectors of PyOD among the peers.
PYOD = ("ECOD", "KNN")


def networks_here() -> list[str]:
    """The ONNX files in the folder named by KERNULL_WEIGHTS."""
    folder = weights_folder()
    found = sorted(path.stem for path in folder.glob("*.onnx"))
    if not found:
        raise DatasetNotFound(f"networks: KERNULL_WEIGHTS is {str(folder)!r}: no .onnx file in it.")
    return found


def base_settings(quick: bool, networks: list[str] | None = None) -> dict[str, Any]:
    """What all image experiments have in common."""
    return {
        "networks": networks_here() if networks is None else networks,
        "scalings": list(SCALINGS[:1] if quick else SCALINGS),
        "families": [KERNELS, PEERS] if quick else list(FAMILIES),
        "widths": list(WIDTHS),
        "grids": GRIDS,
        "pyod": [] if quick else list(PYOD),
        "svm_rows": SVM_ROWS,
        "gap": 1e-4,
    }


def families(settings: dict[str, Any], targets: list[str], repeats: int) -> list[Cell]:
    """Cells in an order in which an interrupted run says most: lp MK-FN comes first."""
    return [
        Cell(target, f"{family}, {scaling}", r)
        for family in settings["families"]
        for scaling in settings["scalings"]
        for r in range(repeats)
        for target in targets
    ]


def rooted(features: Any) -> Array:
    """Signed square roots of features, rows scaled to unit length.

    Examples
    --------
    >>> rooted([[9.0, -16.0]]).round(1).tolist()
    [[0.6, -0.8]]
    """
    root = np.sign(features) * np.sqrt(np.abs(np.asarray(features, dtype=float)))
    length = np.linalg.norm(root, axis=1, keepdims=True)
    return np.asarray(root / np.maximum(length, np.finfo(float).tiny))


def feature_file(folder: Path, network: str) -> Path:
    """File of a network's features of all images of an experiment."""
    return folder / "features" / f"{network}.npy"


def write_features(images: Any, networks: list[str], folder: Path, jobs: int) -> None:
    """Extract what is not there yet."""
    missing = [name for name in networks if not feature_file(folder, name).is_file()]
    found = list(images()) if missing and callable(images) else images
    for name in missing:
        extract(found, name, feature_file(folder, name), jobs=jobs)


def load_features(networks: list[str], folder: Path) -> dict[str, Any]:
    """Features of all images by network, mapped from disk."""
    return {name: np.load(feature_file(folder, name), mmap_mode="r") for name in networks}

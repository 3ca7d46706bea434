"""Deep features of the image sets: from a folder of feature files.

A file ``<set>.npz`` holds one array (n, d) a network under the network's name, ``classes`` of shape
(n,) and ``test`` of shape (n,), true where a row is for testing only. The folder is
``KERNULL_FEATURES`` where that is set, else ``results-cache/arena-features``. Where a file is not
there, it is made by `experiments.features` if ``KERNULL_WEIGHTS`` names the folder of the networks.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from benchmarks.arena import protocol
from experiments._cells import generator
from experiments._store import write_atomically
from experiments.datasets import load_flowers17_images, load_mnist


class NoFeaturesError(LookupError):
    """Neither features nor networks to make them."""


def folder():
    return Path(os.environ.get("KERNULL_FEATURES", "results-cache/arena-features"))


def find(name):
    """The feature file of a set; made where it can be."""
    path = folder() / f"{name}.npz"
    if not path.is_file():
        if not os.environ.get("KERNULL_WEIGHTS"):
            raise NoFeaturesError(
                f"no features ({path.name} in KERNULL_FEATURES), and KERNULL_WEIGHTS names no "
                "folder of networks to make them with"
            )
        _make(name, path)
    return path


def load(name):
    """Views, classes and test-only mask of a set."""
    with np.load(find(name)) as stored:
        views = {network: stored[network] for network in protocol.NETWORKS}
        return views, stored["classes"].astype(int), stored["test"].astype(bool)


def mnist_rows():
    """Positions of the training images with features, digit by digit: those that E8 draws first."""
    labels = load_mnist().train_labels
    return np.concatenate(
        [
            generator("E8", "train", digit).permutation(np.flatnonzero(labels == digit))[
                : protocol.MNIST_DRAWN
            ]
            for digit in range(10)
        ]
    )


def save(path, views, classes, test):
    """Write a feature file, all of it or nothing."""
    content = io.BytesIO()
    arrays = {name: np.asarray(view, dtype=np.float32) for name, view in views.items()}
    np.savez(content, classes=np.asarray(classes), test=np.asarray(test), **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())


def _make(name, path):
    """Run the images of a set through the networks; minutes, and resumed after a kill."""
    from experiments._deep import load_features, write_features

    if name == "mnist":
        data, rows = load_mnist(), mnist_rows()
        images = [*data.train_images[rows], *data.test_images[: protocol.MNIST_TEST]]
        classes = np.r_[data.train_labels[rows], data.test_labels[: protocol.MNIST_TEST]]
        test = np.arange(len(images)) >= len(rows)
    else:
        flowers = list(load_flowers17_images())
        images, classes = [f.image for f in flowers], [f.label for f in flowers]
        test = np.zeros(len(images), dtype=bool)
    parts = path.with_suffix("")
    write_features(images, protocol.NETWORKS, parts, os.cpu_count() or 1)
    save(path, load_features(protocol.NETWORKS, parts), classes, test)

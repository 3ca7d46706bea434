"""Seven kernels of Flowers17: from the published distance matrices, or from the images.

The publishers' matrices (``distancematrices17gcfeat06.mat`` with colour, shape and texture,
``distancematrices17itfeat08.mat`` with HSV, HOG and two SIFT variants) are used when a user has
put them into ``flowers17/``. Otherwise seven descriptors of colour, texture and shape are computed
from the images; these are ours, so curves agree with the paper's in kind, not in value.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from experiments._store import write_atomically
from experiments.datasets import DatasetNotFound, data_home, load_flowers17_images
from kernull._typing import Array
from kernull.errors import MissingDependencyError

__all__ = [
    "CLASSES",
    "DESCRIPTORS",
    "class_features",
    "class_kernels",
    "kernel_of_distances",
    "published_distances",
]

CLASSES = 17
IMAGES_PER_CLASS = 80
PUBLISHED = ("distancematrices17gcfeat06.mat", "distancematrices17itfeat08.mat")
#: Images are brought to this many pixels a side first.
SIDE = 128


def published_distances(
    home: str | os.PathLike[str] | None = None,
) -> dict[str, Array] | None:
    """The publishers' distance matrices (1360 x 1360) by name; None where the files are not.

    Every variable whose name starts with ``D_`` is one matrix.
    """
    folder = (data_home() if home is None else Path(home)) / "flowers17"
    if not all((folder / name).is_file() for name in PUBLISHED):
        return None
    out: dict[str, Array] = {}
    for name in PUBLISHED:
        for variable, matrix in loadmat(folder / name).items():
            if variable.startswith("D_"):
                out[variable.removeprefix("D_")] = np.asarray(matrix, dtype=float)
    if not out:
        raise ValueError(
            f"{str(folder)!r}: no variable of {PUBLISHED} starts with 'D_'; these are not the "
            "published distance matrices."
        )
    return out


def kernel_of_distances(d: Array) -> Array:
    """exp(-d / mean(d)), symmetric, with negative eigenvalues set to zero.

    A distance matrix need not give a positive semidefinite kernel; the nearest one is taken.
    """
    K = np.exp(-d / d.mean())
    K = (K + K.T) / 2
    values, vectors = np.linalg.eigh(K)
    if values[0] < 0:
        K = (vectors * np.maximum(values, 0.0)) @ vectors.T
        K = (K + K.T) / 2
    return np.asarray(K)


def class_kernels(label: int, folder: Path | None = None) -> tuple[Array, tuple[str, ...], str]:
    """Kernels (7, 80, 80) of one class, their names, and where they come from.

    Parameters
    ----------
    label : int
        Class, 0 to 16.
    folder : path, optional
        Where descriptors are kept between runs.
    """
    rows = slice(label * IMAGES_PER_CLASS, (label + 1) * IMAGES_PER_CLASS)
    published = published_distances()
    if published is not None:
        kernels = [kernel_of_distances(d[rows, rows]) for d in published.values()]
        return np.stack(kernels), tuple(published), "the published distance matrices"
    features = class_features(label, folder)
    kernels = [kernel_of_distances(_chi_square(x)) for x in features.values()]
    return np.stack(kernels), tuple(features), "descriptors computed from the images"


def class_features(label: int, folder: Path | None = None) -> dict[str, Array]:
    """Seven descriptors of the 80 images of a class, from the folder if they are there."""
    path = None if folder is None else folder / f"flowers17_class_{label:02d}.npz"
    if path is not None and path.is_file():
        with np.load(path) as stored:
            return {name: stored[name] for name in DESCRIPTORS}
    _check_skimage()
    images = load_flowers17_images(labels=[label])
    arrays = [np.asarray(item.image.resize((SIDE, SIDE)), dtype=float) / 255.0 for item in images]
    if len(arrays) != IMAGES_PER_CLASS:
        raise DatasetNotFound(f"Flowers17: class {label} has {len(arrays)} images; expected 80.")
    out = {
        name: np.stack([_share(describe(image)) for image in arrays])
        for name, describe in DESCRIPTORS.items()
    }
    if path is not None:
        content = io.BytesIO()
        np.savez_compressed(content, **out)  # type: ignore[arg-type]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
    return out


def _check_skimage() -> None:
    try:
        import skimage  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "the descriptors of Flowers17 need scikit-image: pip install scikit-image."
        ) from None


def _share(values: Any) -> Array:
    flat = np.asarray(values, dtype=float).ravel()
    return flat / max(float(flat.sum()), np.finfo(float).tiny)


def _chi_square(X: Array) -> Array:
    """Sum (x - y)^2 / (x + y) between the rows of non-negative descriptors."""
    out = np.zeros((len(X), len(X)))
    for i, row in enumerate(X):
        total = row + X
        difference = (row - X) ** 2
        out[i] = np.divide(difference, total, out=np.zeros_like(total), where=total > 0).sum(axis=1)
    return out


def _histogram(image: Array, bins: tuple[int, int, int], low: Any, high: Any) -> Array:
    ranges = list(zip(low, high, strict=True))
    return np.histogramdd(image.reshape(-1, 3), bins=bins, range=ranges)[0]


def _rgb(image: Array) -> Array:
    return _histogram(image, (6, 6, 6), (0, 0, 0), (1, 1, 1))


def _hsv(image: Array) -> Array:
    from skimage.color import rgb2hsv

    return _histogram(rgb2hsv(image), (12, 4, 4), (0, 0, 0), (1, 1, 1))


def _lab(image: Array) -> Array:
    from skimage.color import rgb2lab

    return _histogram(rgb2lab(image), (4, 8, 8), (0, -100, -100), (100, 100, 100))


def _grey(image: Array) -> Array:
    return np.asarray(image @ np.array([0.299, 0.587, 0.114]))


def _hog(image: Array) -> Array:
    from skimage.feature import hog

    return np.asarray(hog(_grey(image), 9, (16, 16), (2, 2)))


def _patterns(points: int, radius: int) -> Callable[[Array], Array]:
    def describe(image: Array) -> Array:
        from skimage import feature as untyped

        feature: Any = untyped
        grey = np.round(255 * _grey(image)).astype(np.uint8)
        codes = feature.local_binary_pattern(grey, points, radius, "uniform").astype(int)
        quarters = [half for row in np.split(codes, 2) for half in np.split(row, 2, axis=1)]
        return np.stack([np.bincount(q.ravel(), minlength=points + 2) for q in quarters])

    return describe


def _edges(image: Array) -> Array:
    """Gradient magnitude by orientation in a 4 x 4 grid."""
    down, right = np.gradient(_grey(image))
    angle = np.mod(np.arctan2(down, right), np.pi)
    bins = np.minimum((angle / np.pi * 12).astype(int), 11)
    weight = np.hypot(down, right)
    step = SIDE // 4
    out = np.zeros((4, 4, 12))
    for i in range(4):
        for k in range(4):
            part = np.s_[i * step : (i + 1) * step, k * step : (k + 1) * step]
            out[i, k] = np.bincount(bins[part].ravel(), weight[part].ravel(), 12)
    return out


#: The seven descriptors by name; all non-negative.
DESCRIPTORS: dict[str, Callable[[Array], Array]] = {
    "rgb": _rgb,
    "hsv": _hsv,
    "lab": _lab,
    "hog": _hog,
    "lbp fine": _patterns(8, 1),
    "lbp coarse": _patterns(16, 3),
    "edges": _edges,
}

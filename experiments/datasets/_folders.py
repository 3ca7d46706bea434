"""Image sets published as folders: Caltech-256, and 1001 Abnormal Objects with PASCAL VOC."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets._home import DatasetNotFound, data_home

__all__ = [
    "ABNORMAL_CLASSES",
    "CLUTTER",
    "AbnormalImages",
    "ImageFiles",
    "load_abnormal1001",
    "load_caltech256",
]

CALTECH_SOURCE = "https://data.caltech.edu/records/nyy15-4j048"
ABNORMAL_SOURCE = "the authors of 'Object-Centric Anomaly Detection by Attribute-Based Reasoning'"
VOC_SOURCE = "http://host.robots.ox.ac.uk/pascal/VOC/"

#: Class number of Caltech-256's images that belong to no class.
CLUTTER = 257
#: Classes of 1001 Abnormal Objects by the names of PASCAL VOC.
ABNORMAL_CLASSES = {
    "aeroplane": ("aeroplane", "airplane"),
    "boat": ("boat",),
    "car": ("car",),
    "chair": ("chair",),
    "motorbike": ("motorbike", "motor-bike", "motorcycle"),
    "sofa": ("sofa",),
}
IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".gif")


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Image files with their classes.

    Attributes
    ----------
    paths : tuple of pathlib.Path
        The files, class by class.
    labels : ndarray of shape (n,), int64
        The class of each file.
    names : dict of int to str
        Names of the classes.
    """

    paths: tuple[Path, ...]
    labels: NDArray[np.int64]
    names: dict[int, str]


@dataclass(frozen=True, eq=False)
class AbnormalImages:
    """Normal and abnormal images of one class of objects.

    Attributes
    ----------
    train, validation : tuple of pathlib.Path
        Normal images: PASCAL VOC's own training and validation lists of the class.
    abnormal : tuple of pathlib.Path
        Images of 1001 Abnormal Objects.
    """

    train: tuple[Path, ...]
    validation: tuple[Path, ...]
    abnormal: tuple[Path, ...]


def load_caltech256(*, home: str | os.PathLike[str] | None = None) -> ImageFiles:
    """List Caltech-256 as published: ``256_ObjectCategories/001.ak47/001_0001.jpg`` and so on.

    Parameters
    ----------
    home : path-like, optional
        Folder that holds ``256_ObjectCategories/``, or ``caltech256/256_ObjectCategories/``; by
        default :func:`data_home`.

    Returns
    -------
    ImageFiles
        Classes 1 to 256, and 257 for clutter. Files of other kinds that the archive holds are
        left out.

    Raises
    ------
    DatasetNotFound
        If the folder is not there or holds no class.
    """
    root = _find_folder("256_ObjectCategories", "caltech256", "Caltech-256", CALTECH_SOURCE, home)
    paths: list[Path] = []
    labels: list[int] = []
    names: dict[int, str] = {}
    for folder in sorted(entry for entry in root.iterdir() if entry.is_dir()):
        match = re.fullmatch(r"(\d{3})\.(.+)", folder.name)
        if match is None:
            continue
        label = int(match[1])
        names[label] = match[2]
        wanted = re.compile(rf"{match[1]}_\d{{4}}\.jpg", re.IGNORECASE)
        files = sorted(file for file in folder.iterdir() if wanted.fullmatch(file.name))
        paths += files
        labels += [label] * len(files)
    if not paths:
        raise DatasetNotFound(
            f"Caltech-256: {str(root)!r} holds no folder such as '001.ak47' with images such as "
            f"'001_0001.jpg'. Unpack the archive of {CALTECH_SOURCE} there."
        )
    return ImageFiles(tuple(paths), np.array(labels, dtype=np.int64), names)


def load_abnormal1001(label: str, *, home: str | os.PathLike[str] | None = None) -> AbnormalImages:
    """List one class of 1001 Abnormal Objects and its normal images of PASCAL VOC.

    The abnormal images are published as one folder a class, ``abnormal1001/Airplane/*.jpg`` and
    so on (any case; ``Motorbike``, ``Motor-bike`` and ``Aeroplane`` are known too). Normal ones
    are those of PASCAL VOC, ``VOCdevkit/VOC20xx`` as published, that
    ``ImageSets/Main/<class>_train.txt`` and ``<class>_val.txt`` mark with 1.

    Parameters
    ----------
    label : {"aeroplane", "boat", "car", "chair", "motorbike", "sofa"}
        The class.
    home : path-like, optional
        Folder that holds both; by default :func:`data_home`.

    Returns
    -------
    AbnormalImages

    Raises
    ------
    DatasetNotFound
        If one of the two is not there.
    """
    if label not in ABNORMAL_CLASSES:
        raise ValueError(f"label: got {label!r}; expected one of {', '.join(ABNORMAL_CLASSES)}.")
    folder = data_home() if home is None else Path(home).expanduser()
    root = folder / "abnormal1001"
    found = [
        entry
        for entry in (sorted(root.iterdir()) if root.is_dir() else [])
        if entry.is_dir() and entry.name.lower() in ABNORMAL_CLASSES[label]
    ]
    abnormal = tuple(sorted(file for entry in found for file in entry.iterdir() if _is_image(file)))
    if not abnormal:
        raise DatasetNotFound(
            f"1001 Abnormal Objects not found: looked for images in a folder such as "
            f"{str(root / label.capitalize())!r}. Get them from {ABNORMAL_SOURCE}, one folder a "
            f"class in {str(root)!r}, or set KERNULL_DATA to the folder that holds 'abnormal1001'."
        )
    voc = _find_voc(folder)
    return AbnormalImages(
        _voc_images(voc, label, "train"), _voc_images(voc, label, "val"), abnormal
    )


def _find_folder(
    name: str, parent: str, what: str, source: str, home: str | os.PathLike[str] | None
) -> Path:
    folder = data_home() if home is None else Path(home).expanduser()
    for candidate in (folder / parent / name, folder / name):
        if candidate.is_dir():
            return candidate
    raise DatasetNotFound(
        f"{what} not found: looked for the folders {str(folder / parent / name)!r} and "
        f"{str(folder / name)!r}. Get it from {source}, unpack it there, or set KERNULL_DATA to "
        f"the folder that holds {name!r}."
    )


def _find_voc(folder: Path) -> Path:
    years = sorted(folder.glob("VOCdevkit/VOC20*"), reverse=True)  # the newest is the largest
    for root in years:
        if (root / "ImageSets" / "Main").is_dir():
            return root
    raise DatasetNotFound(
        "PASCAL VOC, the normal images of 1001 Abnormal Objects, not found: looked for "
        f"{str(folder / 'VOCdevkit' / 'VOC2012' / 'ImageSets' / 'Main')!r} (or another year). Get "
        f"it from {VOC_SOURCE} and unpack it in {str(folder)!r}."
    )


def _voc_images(root: Path, label: str, part: str) -> tuple[Path, ...]:
    listing = root / "ImageSets" / "Main" / f"{label}_{part}.txt"
    if not listing.is_file():
        raise DatasetNotFound(f"PASCAL VOC: {str(listing)!r} is not there.")
    names = []
    for line in listing.read_text(encoding="utf-8").splitlines():
        fields = line.split()
        # 1: the object is there; 0: hard to see; -1: not there.
        if len(fields) == 2 and fields[1] == "1":
            names.append(fields[0])
    return tuple(root / "JPEGImages" / f"{name}.jpg" for name in names)


def _is_image(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in IMAGE_ENDINGS

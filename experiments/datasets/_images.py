"""Image sets: MNIST (IDX files) and Oxford Flowers17 (a tar of JPEG files)."""

from __future__ import annotations

import gzip
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.datasets._home import find_file
from kernull.errors import MissingDependencyError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FlowerImage", "Mnist", "load_flowers17_images", "load_mnist"]

MNIST_SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FLOWERS_SOURCE = "https://www.robots.ox.ac.uk/~vgg/data/flowers/17/"

IMAGES_PER_FLOWER = 80
N_FLOWERS = 17
UNSIGNED_BYTE = 0x08  # the IDX type code of MNIST


@dataclass(frozen=True, eq=False)
class Mnist:
    """MNIST in its published split.

    Attributes
    ----------
    train_images : ndarray of shape (60000, 28, 28), uint8
        Training images, 0 background to 255 ink.
    train_labels : ndarray of shape (60000,), int64
        Training digits.
    test_images : ndarray of shape (10000, 28, 28), uint8
        Test images.
    test_labels : ndarray of shape (10000,), int64
        Test digits.
    """

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlowerImage:
    """One image of Flowers17.

    Attributes
    ----------
    number : int
        The number in the file's name, 1 to 1360.
    label : int
        The class, 0 to 16: ``(number - 1) // 80``.
    image : PIL.Image.Image
        The image in RGB.
    """

    number: int
    label: int
    image: Image


def load_mnist(*, home: str | os.PathLike[str] | None = None) -> Mnist:
    """Load MNIST from the four gzipped IDX files in ``mnist/``.

    Parameters
    ----------
    home : path-like, optional
        Folder that holds ``mnist/``; by default :func:`data_home`.

    Returns
    -------
    Mnist
        Training and test images and digits.

    Raises
    ------
    DatasetNotFound
        If one of the four files is not in the data folder.

    Examples
    --------
    >>> from experiments.datasets import load_mnist
    >>> load_mnist().test_images.shape  # doctest: +SKIP
    (10000, 28, 28)
    """
    train_images, train_labels = _mnist_part("train", home)
    test_images, test_labels = _mnist_part("t10k", home)
    return Mnist(train_images, train_labels, test_images, test_labels)


def load_flowers17_images(
    *, labels: Iterable[int] | None = None, home: str | os.PathLike[str] | None = None
) -> Iterator[FlowerImage]:
    """Iterate over the images of Oxford Flowers17, decoding one at a time.

    The archive ``flowers17/17flowers_images.tar`` is read in place; nothing is unpacked to disk.
    Images come in the order of their numbers, so in class order with 80 a class. A missing file
    or a missing Pillow is reported at the call, not at the first image.

    Parameters
    ----------
    labels : iterable of int, optional
        Classes to read, 0 to 16; all by default. Images of the others are not decoded.
    home : path-like, optional
        Folder that holds ``flowers17/``; by default :func:`data_home`.

    Returns
    -------
    iterator of FlowerImage
        Number, class (0 to 16) and RGB image.

    Raises
    ------
    DatasetNotFound
        If the archive is not in the data folder.
    MissingDependencyError
        If Pillow is not installed.

    Examples
    --------
    >>> from experiments.datasets import load_flowers17_images
    >>> first = next(load_flowers17_images())  # doctest: +SKIP
    >>> first.number, first.label, first.image.mode  # doctest: +SKIP
    (1, 0, 'RGB')
    """
    path = find_file(
        "flowers17/17flowers_images.tar",
        what="Oxford Flowers17 images",
        source=FLOWERS_SOURCE,
        home=home,
    )
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "load_flowers17_images needs Pillow to decode images; install it with "
            "`pip install pillow`"
        ) from error
    # A separate generator: one in this function would postpone the checks above.
    wanted = frozenset(range(N_FLOWERS) if labels is None else labels)
    return _flowers(path, wanted)


def _flowers(path: Path, wanted: frozenset[int]) -> Iterator[FlowerImage]:
    """Yield the images of the archive in the order of their numbers."""
    from PIL import Image

    with tarfile.open(path) as archive:
        numbered: dict[int, tarfile.TarInfo] = {}
        for member in archive:
            match = re.fullmatch(r"(?:.*/)?image_(\d{4})\.jpg", member.name)
            # Plain files only: a link in an archive may point anywhere.
            if match and member.isfile():
                numbered[int(match[1])] = member
        for number in sorted(numbered):
            label = (number - 1) // IMAGES_PER_FLOWER
            if not 0 <= label < N_FLOWERS:
                raise ValueError(
                    f"{str(path)!r} holds image number {number}; Flowers17 has 1 to "
                    f"{N_FLOWERS * IMAGES_PER_FLOWER}"
                )
            if label not in wanted:
                continue
            content = archive.extractfile(numbered[number])
            assert content is not None  # plain files always have content
            with content, Image.open(content) as encoded:
                # convert() decodes, so that the image outlives the archive.
                yield FlowerImage(number, label, encoded.convert("RGB"))


def _mnist_part(
    part: str, home: str | os.PathLike[str] | None
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images and labels of one half ("train" or "t10k") of MNIST."""
    images_path, labels_path = (
        find_file(f"mnist/{part}-{kind}-ubyte.gz", what="MNIST", source=MNIST_SOURCE, home=home)
        for kind in ("images-idx3", "labels-idx1")
    )
    images, labels = _read_idx(images_path, ndim=3), _read_idx(labels_path, ndim=1)
    if len(images) != len(labels):
        raise ValueError(
            f"{str(images_path)!r} holds {len(images)} images but {str(labels_path)!r} holds "
            f"{len(labels)} labels"
        )
    return images, labels.astype(np.int64)


def _read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Read a gzipped IDX file of unsigned bytes.

    The header is two zero bytes, the type code, the number of axes, and one big-endian 32-bit
    length an axis; the entries follow in row-major order.
    """
    with gzip.open(path, "rb") as file:
        content = file.read()
    header = 4 + 4 * ndim
    if content[:4] != bytes((0, 0, UNSIGNED_BYTE, ndim)) or len(content) < header:
        raise ValueError(
            f"{str(path)!r} is not an IDX file of unsigned bytes with {ndim} axes: "
            f"it begins with {content[:4]!r}"
        )
    shape = tuple(int(length) for length in np.frombuffer(content, ">u4", ndim, offset=4))
    expected, found = int(np.prod(shape, dtype=np.int64)), len(content) - header
    if expected != found:
        raise ValueError(
            f"{str(path)!r} promises shape {shape}, {expected} entries, but holds {found}"
        )
    # A copy, as views of bytes are read-only.
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()

"""Downloads into the cache (with pooch): addresses, conversions and checksums of contents.

A checksum is of what a file says, not of how it is packed: archives are repacked now and then
without a change of contents. Of a table that is published with more or fewer digits, shape, mean,
spread and a few entries are compared instead.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["REMOTE", "DownloadError", "Remote", "download", "offline"]


class DownloadError(OSError):
    """A file could not be downloaded, or is not what it should be."""


@dataclass(frozen=True)
class Remote:
    """Where a file of the data folder comes from.

    Parameters
    ----------
    url : str
        Address of the file, or of an archive with several.
    convert : callable
        From the downloaded bytes to the contents of the file; raises `DownloadError` where the
        contents are not those expected.
    """

    url: str
    convert: Callable[[bytes], bytes]


def offline() -> bool:
    """True where the environment variable ``KERNULL_OFFLINE`` forbids downloads."""
    return os.environ.get("KERNULL_OFFLINE", "") not in ("", "0")


def download(relative: str, folder: Path, fetch: Callable[[str], bytes] | None = None) -> Path:
    """Download one file of `REMOTE` into a folder, check it, and return its path.

    Parameters
    ----------
    relative : str
        Path below the data folder.
    folder : path
        The cache.
    fetch : callable, optional
        From an address to bytes; pooch by default.
    """
    remote = REMOTE[relative]
    try:
        content = (fetch or _fetch)(remote.url)
    except ImportError:
        raise DownloadError("downloads need pooch: pip install pooch") from None
    except Exception as error:  # pooch lets through what requests, urllib and sockets raise
        raise DownloadError(f"{remote.url}: {type(error).__name__}: {error}") from error
    path = folder / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: an interrupted download must not pass for the file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(remote.convert(content))
    os.replace(temporary, path)
    return path


def _fetch(url: str) -> bytes:
    import pooch as untyped

    pooch: Any = untyped
    # The checksum is taken of the contents after conversion, hence none here.
    path = pooch.retrieve(url, known_hash=None, path=pooch.os_cache("kernull") / "downloads")
    return Path(path).read_bytes()


def _require_digest(digest: Any, expected: str) -> None:
    found = digest.hexdigest()
    if found != expected:
        raise DownloadError(f"contents have the checksum {found}; expected {expected}")


def _gzip_of(expected: str) -> Callable[[bytes], bytes]:
    """Keep a gzip file whose contents have this SHA-256."""

    def convert(content: bytes) -> bytes:
        _require_digest(hashlib.sha256(gzip.decompress(content)), expected)
        return content

    return convert


def _flowers(expected: str) -> Callable[[bytes], bytes]:
    """From the published tgz to a plain tar of the images; SHA-256 over names and bytes."""

    def convert(content: bytes) -> bytes:
        images: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                if member.isfile() and name.endswith(".jpg"):
                    file = archive.extractfile(member)
                    assert file is not None  # plain files always have content
                    images[name] = file.read()
        digest = hashlib.sha256()
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name in sorted(images):
                digest.update(name.encode())
                digest.update(images[name])
                entry = tarfile.TarInfo(f"17flowers/{name}")
                entry.size = len(images[name])
                archive.addfile(entry, io.BytesIO(images[name]))
        _require_digest(digest, expected)
        return out.getvalue()

    return convert


def _digits_view(view: str, columns: int, *expected: float) -> Callable[[bytes], bytes]:
    """From UCI's zip to a CSV with a header and the digit in the last column.

    ``expected`` are mean, standard deviation, and the entries at the first row and column, at row
    1000 and the middle column, and at the last row and column.
    """

    def convert(content: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [n for n in archive.namelist() if n.rpartition("/")[2] == f"mfeat-{view}"]
            if not names:
                raise DownloadError(f"the archive holds no file mfeat-{view}")
            table = np.loadtxt(io.StringIO(archive.read(names[0]).decode()), ndmin=2)
        if table.shape != (2000, columns):
            raise DownloadError(f"mfeat-{view}: shape {table.shape}; expected (2000, {columns})")
        found = (
            table.mean(),
            table.std(),
            table[0, 0],
            table[1000, columns // 2],
            table[-1, -1],
        )
        if not np.allclose(found, expected, rtol=1e-3, atol=1e-6):
            raise DownloadError(f"mfeat-{view}: mean, std and entries {found}; expected {expected}")
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(range(columns + 1))
        writer.writerows([*row.tolist(), i // 200] for i, row in enumerate(table))
        return out.getvalue().encode()

    return convert


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_UCI_DIGITS = "https://archive.ics.uci.edu/static/public/72/multiple+features.zip"
_FLOWERS = "https://www.robots.ox.ac.uk/~vgg/data/flowers/17/17flowers.tgz"
_MNIST_DIGESTS = {
    "train-images-idx3": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_FLOWERS_DIGEST = "2819589db62a0bfd68efb41ba106f2c546e3d5847460d63bb3826981bcb26779"
_DIGITS = {
    "fou": (76, 0.132032, 0.100713, 0.065882, 0.082388, 0.085241),
    "fac": (216, 318.27, 352.498, 98, 369, 20),
    "kar": (64, 0.0530848, 2.65077, -10.297, -1.5502, 0.040369),
    "pix": (240, 3.02674, 2.72578, 0, 0, 0),
    "zer": (47, 88.6364, 117.192, 0.011033, 196.47, 408.17),
    "mor": (6, 1052.7, 2750.01, 1, 209.69, 3808),
}

#: Files that can be downloaded, by their path below the data folder. The Delft files have no
#: address that we could confirm; they must be put into the folder by hand.
REMOTE: Mapping[str, Remote] = MappingProxyType(
    {
        **{
            f"mnist/{name}-ubyte.gz": Remote(f"{_MNIST}{name}-ubyte.gz", _gzip_of(digest))
            for name, digest in _MNIST_DIGESTS.items()
        },
        **{
            f"mfeat/mfeat-{view}.csv": Remote(
                _UCI_DIGITS, _digits_view(view, int(columns), *expected)
            )
            for view, (columns, *expected) in _DIGITS.items()
        },
        "flowers17/17flowers_images.tar": Remote(_FLOWERS, _flowers(_FLOWERS_DIGEST)),
    }
)

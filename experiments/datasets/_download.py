"""Downloads into the cache (with requests): addresses, conversions and checksums of contents.

A checksum is of what a file says, not of how it is packed: archives are repacked now and then
without a change of contents. Of a table, it is taken of all its entries to five digits, as they
are published with more or fewer. What does not pass is not kept, in any folder.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any
from urllib.parse import urljoin

import numpy as np

from kernull._runtime import write_whole
from kernull._typing import Array

__all__ = ["REMOTE", "DownloadError", "Remote", "download", "offline", "table_digest"]

#: Bytes of one download and of a file in it, and how often it may be sent elsewhere.
MAX_BYTES = 2**29
MAX_REDIRECTS = 5
#: What reading an error page or half a file raises.
_DAMAGED = (ValueError, OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile)


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
        From an address to bytes; `requests` over https by default.
    """
    remote = REMOTE[relative]
    try:
        content = (fetch or _fetch)(remote.url)
    except ImportError:
        raise DownloadError("downloads need requests: pip install requests") from None
    except DownloadError:
        raise
    except Exception as error:  # whatever requests, urllib and sockets raise
        raise DownloadError(f"{remote.url}: {type(error).__name__}: {error}") from error
    # Files of one archive are kept together, so that it is downloaded once.
    for name, other in REMOTE.items():
        if other.url == remote.url:
            path = folder / name
            converted = _converted(other, content)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(converted, path)
    return folder / relative


def _converted(remote: Remote, content: bytes) -> bytes:
    try:
        return remote.convert(content)
    except DownloadError as error:
        raise DownloadError(f"{remote.url}: {error}") from error
    except _DAMAGED as error:
        raise DownloadError(
            f"{remote.url}: what was downloaded is not as expected: {error}"
        ) from error


def _fetch(url: str) -> bytes:
    """The bytes at an address, over https all the way; nothing is kept."""
    import requests

    with requests.Session() as session:
        for _ in range(MAX_REDIRECTS + 1):
            if not url.lower().startswith("https://"):
                raise DownloadError(f"{url}: is not a safe address; expected https")
            with session.get(url, stream=True, allow_redirects=False, timeout=60) as response:
                if response.is_redirect:
                    url = urljoin(url, response.headers["location"])
                    continue
                response.raise_for_status()
                out = bytearray()
                for part in response.iter_content(2**16):
                    out += part
                    if len(out) > MAX_BYTES:
                        raise DownloadError(f"{url}: more than {MAX_BYTES:,} bytes")
                announced = response.headers.get("content-length")
                if announced is not None and response.raw.tell() != int(announced):
                    raise DownloadError(f"{url}: {response.raw.tell()} of {announced} bytes came")
                return bytes(out)
    raise DownloadError(f"{url}: more than {MAX_REDIRECTS} redirections")


def _require_digest(digest: Any, expected: str) -> None:
    found = digest.hexdigest()
    if found != expected:
        raise DownloadError(f"contents have the checksum {found}; expected {expected}")


def _bounded(file: gzip.GzipFile | IO[bytes]) -> bytes:
    """What a file in an archive holds."""
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise DownloadError(f"unpacks to more than {MAX_BYTES:,} bytes")
    return content


def _gunzip(content: bytes) -> bytes:
    with gzip.open(io.BytesIO(content)) as file:
        return _bounded(file)


def _gzip_of(expected: str) -> Callable[[bytes], bytes]:
    """Keep a gzip file whose contents have this SHA-256."""

    def convert(content: bytes) -> bytes:
        _require_digest(hashlib.sha256(_gunzip(content)), expected)
        return content

    return convert


def _flowers(expected: str) -> Callable[[bytes], bytes]:
    """From the published tgz to a plain tar of the images; SHA-256 over names and bytes."""

    def convert(content: bytes) -> bytes:
        with tarfile.open(fileobj=io.BytesIO(_gunzip(content))) as archive:
            images = {
                member.name.rpartition("/")[2]: file.read()
                for member in archive
                if member.isfile() and member.name.endswith(".jpg")
                if (file := archive.extractfile(member)) is not None
            }
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


def _digits_view(view: str, columns: int, expected: str) -> Callable[[bytes], bytes]:
    """From UCI's zip to a CSV with a header and the digit in the last column.

    ``expected`` is the SHA-256 of all entries to five digits; UCI's text has more, other copies
    have just these.
    """

    def convert(content: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            (name,) = (n for n in archive.namelist() if n.rpartition("/")[2] == f"mfeat-{view}")
            with archive.open(name) as file:
                table = np.loadtxt(io.BytesIO(_bounded(file)), ndmin=2)
        if table.shape != (2000, columns):
            raise DownloadError(f"mfeat-{view}: shape {table.shape}; expected (2000, {columns})")
        _require_digest(table_digest(table), expected)
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(range(columns + 1))
        writer.writerows([*row.tolist(), i // 200] for i, row in enumerate(table))
        return out.getvalue().encode()

    return convert


def table_digest(table: Array) -> Any:
    """SHA-256 of the entries of a table, to five digits."""
    lines = (" ".join(f"{value + 0.0:.5g}" for value in row) for row in table.tolist())
    return hashlib.sha256("\n".join(lines).encode())


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
#: Columns, and the digest of the entries, of the views of the digits.
_DIGITS = {
    "fou": (76, "a6f65c036da91a30e6fff7b4e6d91650d848c0200caeb4414d8b3086692bef8b"),
    "fac": (216, "3ae5373dbce87e53b54f4c0737a360acf84b534b091f113f2ec172932435fc43"),
    "kar": (64, "bdf25653286936d3d4c003402e7a4c40bd4adacf88baad4490dc98d9e6f7a3f7"),
    "pix": (240, "2916099da1738a4ddd8610aee5fbb340b97e35059f4e7e8c27c646f933cdf24a"),
    "zer": (47, "8efb817b9ea286c0bb0f616cc588b7a9b826c9d2eb1463c5dfcf0da0074c4890"),
    "mor": (6, "594114e93235995b74b351769ab46ca6920de497b0cdcf9b678071426fdf2401"),
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
            f"mfeat/mfeat-{view}.csv": Remote(_UCI_DIGITS, _digits_view(view, columns, digest))
            for view, (columns, digest) in _DIGITS.items()
        },
        "flowers17/17flowers_images.tar": Remote(_FLOWERS, _flowers(_FLOWERS_DIGEST)),
    }
)

"""Archives of data sets: what they hold is limited, and nothing is unpacked to disk."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from kernull.safety import archives
from kernull.safety.archives import allowed

__all__ = ["gunzip", "tar_files", "zip_file"]


def gunzip(content: bytes) -> bytes:
    """The contents of a gzip file.

    Raises
    ------
    ValueError
        If it is none, is cut short, or unpacks to too much.
    """
    if not content:
        raise ValueError("is no gzip file: it is empty")
    out, limit, rest = io.BytesIO(), allowed(len(content)), content
    try:
        while rest:
            unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
            out.write(unpacker.decompress(rest, limit + 1 - out.tell()))
            if out.tell() > limit:
                raise ValueError(f"unpacks to more than {limit:,} bytes")
            if not unpacker.eof:
                raise ValueError("is a gzip file that is cut short")
            rest = unpacker.unused_data.lstrip(b"\0")  # files may be padded
    except zlib.error as error:
        raise ValueError(f"is no gzip file: {error}") from error
    return out.getvalue()


def tar_files(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every plain file of a tar archive (packed or not); links are passed over.

    Raises
    ------
    ValueError
        If it is none, is cut short, or holds too much.
    """
    if content[:2] == b"\x1f\x8b":
        content = gunzip(content)
    limit, total = allowed(len(content)), 0
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for number, member in enumerate(archive):
                total += member.size
                if number >= archives.MAX_MEMBERS or total > limit:
                    raise ValueError(
                        f"holds more than {archives.MAX_MEMBERS:,} files or {limit:,} bytes"
                    )
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    yield member.name, file.read()
    except (tarfile.TarError, EOFError) as error:
        raise ValueError(f"is no whole tar archive: {error}") from error


def zip_file(content: bytes, wanted: str) -> bytes:
    """The bytes of the file of this name, in whatever folder of a zip archive it lies.

    Raises
    ------
    ValueError
        If it is none, has no such file, or the file is too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = [i for i in archive.infolist() if i.filename.rpartition("/")[2] == wanted]
            if not found:
                raise ValueError(f"holds no file {wanted}")
            return _member(archive, found[0], allowed(len(content)))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"is no whole zip archive: {error}") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    # What the archive says of sizes is checked by reading no more than that.
    if info.file_size > limit:
        raise ValueError(f"unpacks to more than {limit:,} bytes")
    with archive.open(info) as file:
        return file.read(info.file_size)

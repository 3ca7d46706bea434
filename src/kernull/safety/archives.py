"""Files and archives: what they hold is limited, and nothing is unpacked to disk."""

from __future__ import annotations

import io
import math
import os
import stat
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

#: What a file may unpack to: so many bytes, or so many times its own size where that is more.
MAX_UNPACKED = 2**30
MAX_RATIO = 10
#: Files in an archive.
MAX_MEMBERS = 100_000


def read_file(path: Path, most: int) -> bytes:
    """The bytes of a plain file; a ValueError, to be put behind its name, where it has more."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise ValueError("is no plain file")
            if state.st_size > most:
                raise ValueError(f"has {state.st_size:,} bytes; expected at most {most:,}")
            return file.read(state.st_size)  # should it grow meanwhile
    except FileNotFoundError as error:
        raise ValueError("there is no such file") from error
    except IsADirectoryError as error:
        raise ValueError("is a folder, not a file") from error


def allowed(packed: int) -> int:
    """Bytes that a packed file of this size may unpack to."""
    return max(MAX_UNPACKED, MAX_RATIO * packed)


def check_npz(source: Path | IO[bytes]) -> None:
    """Refuse an NPZ file whose arrays take more memory than the file can account for.

    So is one where an array's header announces more than lies behind it. A file that is open is
    left at its beginning.
    """
    if isinstance(source, Path):
        with source.open("rb") as file:
            return check_npz(file)
    limit = allowed(source.seek(0, io.SEEK_END))
    with zipfile.ZipFile(source) as archive:
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS or sum(info.file_size for info in infos) > limit:
            raise ValueError(f"unpacks to more than {limit:,} bytes or {MAX_MEMBERS:,} arrays")
        for info in infos:
            with archive.open(info) as file:
                _check_npy(info, file)
    source.seek(0)
    return None


def _check_npy(info: zipfile.ZipInfo, file: IO[bytes]) -> None:
    readers: dict[tuple[int, int], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"{info.filename!r} is no array of a version that is read")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError(f"{info.filename!r} holds Python objects, which could run code")
    if math.prod(shape) * dtype.itemsize != info.file_size - file.tell():
        raise ValueError(f"{info.filename!r} announces another size than it has")

"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["atomic_write", "write_whole"]


def write_whole(data: bytes, path: Path) -> None:
    """Write bytes to a file; errors name that file, not a temporary one."""
    try:
        with atomic_write(path) as part:
            part.write_bytes(data)
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Give a temporary file beside ``path`` that takes its name when all went well.

    On any error, Ctrl-C included, the temporary file goes and ``path`` stays as it was. A link
    stays a link to what is written; a pipe or a device gets the content.
    """
    final = Path(path).resolve()
    special = final.exists() and not final.is_file() and not final.is_dir()
    folder = None if special else final.parent
    handle, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".part", dir=folder)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        if special:
            with part.open("rb") as source, final.open("wb") as target:
                shutil.copyfileobj(source, target)
            return
        _flush(part)
        os.chmod(part, _mode(final))
        os.replace(part, final)
    finally:  # there is none left where it took its name
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # folders cannot be flushed everywhere
        _flush(final.parent)


def _flush(path: Path) -> None:
    """Wait until the disk has a file, or what a folder lists."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced, or those of any new file."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask

"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: Bytes of a file's name that the name of its temporary file repeats.
LONGEST_STEM = 200


def write_whole(data: bytes, path: Path) -> None:
    """Write bytes to a file; errors name that file, not a temporary one."""
    with errors_name(path), atomic_write(path) as part:
        part.write_bytes(data)


@contextlib.contextmanager
def errors_name(path: str | Path) -> Iterator[None]:
    """Let errors of the system name a file, not the temporary one in its place."""
    try:
        yield
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
    mode = None if special else _permissions(final)
    part = _private_file() if special else _name_beside(final)
    try:  # from here on: a signal may come just when the file is there
        if not special:
            # The system itself takes the umask off the mode of new files; asking for the umask
            # would mean to set it, for all threads, and to set it back.
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            os.close(os.open(part, flags, 0o666 if mode is None else 0o600))
        yield part
        if special:
            with part.open("rb") as source, final.open("wb") as target:
                shutil.copyfileobj(source, target)
            return
        _flush(part)
        if mode is not None:
            os.chmod(part, mode)
        os.replace(part, final)
    finally:  # there is none left where it took its name
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # folders cannot be flushed everywhere
        _flush(final.parent)


def _private_file() -> Path:
    """An empty file in the system's folder for temporary files, for nobody else to read."""
    handle, name = tempfile.mkstemp(suffix=".part")
    os.close(handle)
    return Path(name)


def _permissions(path: Path) -> int | None:
    """Those of a file that is there."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    return None


def _name_beside(final: Path) -> Path:
    """The name of a file in the same folder that nobody else has thought of."""
    # Names may have 255 bytes, and the final one may take them all.
    stem = os.fsencode(final.name)[:LONGEST_STEM].decode("utf-8", "ignore")
    return final.with_name(f".{stem}.{secrets.token_hex(8)}.part")


def _flush(path: Path) -> None:
    """Wait until the disk has a file, or what a folder lists."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

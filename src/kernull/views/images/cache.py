"""Features on disk, addressed by what they were computed from.

One SQLite file holds the features of one network under one preprocessing and region, a row an
image, by the hash of the image. A batch is one transaction: a process killed in the middle loses
that batch and nothing else. Every row carries a checksum; a row that does not match, like a file
that is no database any more, counts as missing and is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32]

T = TypeVar("T")

WAIT = 60.0  # seconds, for another process that is writing
#: No database, a broken one, or one with other tables: each can only be thrown away. Not so a
#: file that is locked or read-only, or a full disk.
_DAMAGED = (
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT,
)  # fmt: skip
_TABLES = (
    "CREATE TABLE IF NOT EXISTS features (image BLOB PRIMARY KEY, content BLOB, checksum INTEGER)",
    "CREATE TABLE IF NOT EXISTS space (id INTEGER PRIMARY KEY, description TEXT)",
)
_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'features'"
_OF_IMAGE = "SELECT content, checksum FROM features WHERE image = ?"


class FeatureCache:
    """Features of one network under one preprocessing and region, in a file of a folder.

    ``space`` is everything but the image that the features depend on; its hash names the file.
    """

    def __init__(self, folder: str | os.PathLike[str], space: str) -> None:
        digest = hashlib.blake2b(space.encode(), digest_size=16).hexdigest()
        self.path = Path(folder).expanduser() / f"features-{digest}.sqlite"
        self.space = space
        self._warned = False

    def get(self, digests: Iterable[bytes], n_features: int) -> dict[bytes, Features]:
        """Features of those images that are here, by the image's digest."""
        wanted = set(digests)  # read again where the file was damaged

        def read(connection: sqlite3.Connection) -> dict[bytes, Features]:
            found: dict[bytes, Features] = {}
            if connection.execute(_HAS_TABLE).fetchone() is None:  # its writer was killed early
                return found
            for image in wanted:
                for content, checksum in connection.execute(_OF_IMAGE, (image,)):
                    if _intact(image, content, checksum, n_features):
                        found[image] = np.frombuffer(content, "<f4").astype(np.float32)
            return found

        return (self._with_file(read) or {}) if self.path.exists() else {}

    def put(self, digests: Sequence[bytes], features: Features) -> None:
        """Store the features of a batch: all of them or, if that fails, none."""
        rows = []
        for image, values in zip(digests, features, strict=True):
            content = np.ascontiguousarray(values, dtype="<f4").tobytes()
            rows.append((image, content, _checksum(image, content)))

        def write(connection: sqlite3.Connection) -> None:
            # Asking for the lock at once: two that read first and write then cannot wait for
            # each other. Without the commit, closing the file undoes everything.
            connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                connection.execute(table)
            connection.execute("INSERT OR IGNORE INTO space VALUES (0, ?)", (self.space,))
            connection.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")

        self._with_file(write)

    def _with_file(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something with the open file; None where that cannot be done.

        A cache saves time. It never stops the work: where it cannot be used, that is said once.
        """
        for attempt in range(2):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                file = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
                with contextlib.closing(file) as connection:
                    connection.text_factory = bytes  # damaged text is no reason to fail
                    return action(connection)
            except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
                if attempt == 0 and _is_damage(error):
                    self._start_again(error)
                    continue
                if not self._warned:
                    self._warned = True
                    warnings.warn(
                        f"cache: {str(self.path)!r} cannot be used ({error}); going on without it.",
                        stacklevel=2,
                    )
                return None
        return None

    def _start_again(self, error: Exception) -> None:
        warnings.warn(
            f"cache: {str(self.path)!r} is damaged ({error}); it is removed, and the features are "
            "computed again.",
            stacklevel=2,
        )
        for path in (self.path, self.path.with_name(self.path.name + "-journal")):
            path.unlink(missing_ok=True)


def _is_damage(error: Exception) -> bool:
    # Messages that quote a damaged schema cannot always be decoded.
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, UnicodeDecodeError) or (code is not None and code & 0xFF in _DAMAGED)


def _checksum(image: bytes, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(image))


def _intact(image: bytes, content: Any, checksum: Any, n_features: int) -> bool:
    return (
        isinstance(content, bytes)
        and len(content) == 4 * n_features
        and checksum == _checksum(image, content)
    )

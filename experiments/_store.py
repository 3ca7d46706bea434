"""Finished cells on disk: one small file each, written at once and atomically."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments._cells import Cell, Row, Rows

__all__ = ["Record", "Store", "write_atomically"]


@dataclass(frozen=True)
class Record:
    """A finished cell."""

    rows: Rows
    seconds: float


class Store:
    """Folder of finished cells.

    Parameters
    ----------
    folder : path
        Created when the first cell is stored.
    settings : str
        Fingerprint of the settings; files made under others count as missing.
    """

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder = folder
        self.settings = settings

    def path(self, cell: Cell) -> Path:
        """File of a cell: readable, and unique by a few digits of a hash of the whole key."""
        key = f"{cell.data}\x1f{cell.method}\x1f{cell.repeat}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:8]
        readable = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{cell.data}_{cell.method}")[:80]
        return self.folder / f"{readable}_{cell.repeat:03d}_{digest}.json"

    def get(self, cell: Cell) -> Record | None:
        """The record of a finished cell; None where it is missing, foreign or unreadable."""
        try:
            content = json.loads(self.path(cell).read_text(encoding="utf-8"))
            if content["settings"] != self.settings:
                return None
            return Record(content["rows"], float(content["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, cell: Cell, record: Record) -> None:
        """Store a finished cell; a reader sees all of it or nothing."""
        content = {
            "cell": [cell.data, cell.method, cell.repeat],
            "settings": self.settings,
            "seconds": record.seconds,
            "rows": record.rows,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(cell), json.dumps(content, indent=0))

    def rows(self, cells: Iterable[Cell]) -> Rows:
        """Rows of all finished cells in the order of the cells, each with the cell's key."""
        out: Rows = []
        for cell in cells:
            record = self.get(cell)
            if record is None:
                continue
            key: Row = {"data": cell.data, "method": cell.method, "repeat": cell.repeat}
            out.extend({**key, **row} for row in record.rows)
        return out

    def sweep(self) -> None:
        """Remove what killed writers left behind (never a finished cell)."""
        if self.folder.is_dir():
            for leftover in self.folder.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and rename it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    data = content.encode("utf-8") if isinstance(content, str) else content
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)

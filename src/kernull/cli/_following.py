"""A file that grows, or standard input, as tables of the rows that came."""

from __future__ import annotations

import io
import os
import sys
import time
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kernull.cli._console import DataError, note
from kernull.cli._options import TextForm
from kernull.tables.reading import CHUNK_ROWS
from kernull.tables.table import Table

#: A line that is longer is no row.
MAX_PENDING = 2**24


@dataclass
class Follower:
    """Reads what is new in a CSV file, or ``-``; lines that are not ended yet wait."""

    path: str
    form: TextForm
    until_end: bool
    interval: float
    quiet: bool
    #: The header line, once it was read, with what stands before it.
    header: bytes = b""
    #: Bytes of the file that were given out as rows, header included: where to go on later.
    place: int = 0
    #: Lines up to there, so that messages name the lines of the file.
    lines: int = 0
    _pending: bytes = field(default=b"", repr=False)

    @property
    def label(self) -> str:
        """The file, for messages."""
        return "standard input" if self.path == "-" else self.path

    def tables(self) -> Iterator[Table]:
        """Tables of the rows that came since the last one."""
        said = self.quiet
        for data in self._bytes():
            ready = self._ready(data)
            if ready.strip():
                extra = self.lines - self.header.count(b"\n")
                for rows in _tables(self.label, self.header + ready, self.form, said):
                    yield replace(rows, lines=[line + extra for line in rows.lines or ()])
                said = True
            self.place, self.lines = self.place + len(ready), self.lines + ready.count(b"\n")

    def count_lines(self, file: Any) -> None:
        """Count the lines of the file up to ``place``."""
        left = self.place
        while left > 0 and (piece := file.read(min(left, 2**22))):
            self.lines, left = self.lines + piece.count(b"\n"), left - len(piece)

    def _ready(self, data: bytes) -> bytes:
        """Whole lines of what is there; the header line is kept apart."""
        self._pending += data
        if len(self._pending) > MAX_PENDING and b"\n" not in self._pending:
            raise DataError(f"{self.label}: a line has more than {MAX_PENDING:,} bytes; no table.")
        # An empty piece is the end: what is there is all there is.
        end = len(self._pending) if data == b"" else self._pending.rfind(b"\n") + 1
        while end and not _is_header(self.header):
            if self.header == b"" and self._pending.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                raise DataError(f"{self.label}: is UTF-16, which watch cannot follow; write UTF-8.")
            if self._pending.lstrip().startswith(b"{"):
                raise DataError(f"{self.label}: is JSON, which watch cannot follow; write CSV.")
            cut = self._pending[:end].find(b"\n") + 1 or end
            line, self._pending = self._pending[:cut], self._pending[cut:]
            self.header += line if line.endswith(b"\n") else line + b"\n"
            self.place, self.lines, end = self.place + cut, self.lines + 1, end - cut
        ready = self._pending[:end]
        if ready.count(b'"') % 2 and data:  # a cell with a line break, not all here
            return b""
        self._pending = self._pending[end:]
        return ready

    def _bytes(self) -> Iterator[bytes]:
        """What comes, as it comes; an empty piece is the end."""
        if self.path == "-":
            stream: Any = sys.stdin.buffer
            read = getattr(stream, "read1", stream.read)
            while data := read(2**20):
                yield data
            yield b""
            return
        while True:
            with open(self.path, "rb") as file:
                at = self.place + len(self._pending)
                if os.fstat(file.fileno()).st_size < at:
                    note(f"{self.path}: became shorter; it is read from its beginning.", self.quiet)
                    self.header, self._pending = b"", b""
                    self.place = self.lines = at = 0
                file.seek(at)
                data = file.read(2**22)
            if data:
                yield data
            elif self.until_end:
                yield b""
                return
            else:
                time.sleep(self.interval)


def _is_header(lines: bytes) -> bool:
    """Whether the last of these lines has the names: no empty line, no comment, no ``sep=;``."""
    last = lines.rstrip(b"\n").rpartition(b"\n")[2].strip().lstrip(BOM_UTF8)
    comment = last.startswith(b"#") and not any(mark in last for mark in (b",", b";", b"\t", b"|"))
    return bool(last) and not comment and last.strip(b'"')[:4].lower() != b"sep="


def _tables(label: str, content: bytes, form: TextForm, quiet: bool) -> Iterator[Table]:
    from kernull.errors import TableError
    from kernull.tables.text_files import open_text

    try:
        source = open_text(label, io.BytesIO(content), form.text(), CHUNK_ROWS, None)
        for said in source.notes:
            note(f"{label}: {said}", quiet)
        for rows, _ in source.chunks():
            yield rows
    except TableError as error:
        raise DataError(str(error)) from None

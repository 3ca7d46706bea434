"""Plain text tables, read by pyarrow where it is installed.

`kernull.tables.text_files` finds out separator, encoding, header and decimal mark, and reads the
first rows. What follows is read here in blocks of bytes, as long as each block is plain: rows of
one width, cells quoted as a whole or not at all, no blank lines. From the first block that is not,
the csv module goes on. Cells are the same either way.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from typing import Any

import numpy as np

#: Bytes of a block.
BLOCK = 2**23
#: Bytes that are left to read from which on it pays to load pyarrow (0.1 s).
WORTH = 2**21
#: Encodings in which the bytes of line ends, quotes and separators are part of nothing else.
ENCODINGS = ("utf-8", "utf-8-sig", "cp1252", "iso8859-1", "ascii")


class PlainRows:
    """Rows of a file from a place on, by column and so many at a time.

    After all of them, ``rest`` is the place in the file where what is not plain begins, and
    ``left()`` gives the rows before it that were too few to be given.
    """

    def __init__(
        self, raw: Any, place: int, sep: str, encoding: str, width: int, count: int
    ) -> None:
        self.raw, self.rest, self.sep, self.encoding = raw, place, sep, encoding
        self.width, self.count = width, count
        self.held: Any = None  # rows that were read and not given

    def __iter__(self) -> Iterator[list[list[str]]]:
        """Columns of ``count`` cells each."""
        import pyarrow

        for table in self._blocks():
            self.held = table if self.held is None else pyarrow.concat_tables([self.held, table])
            while self.held.num_rows >= self.count:
                given = self.held.slice(0, self.count)
                self.held = self.held.slice(self.count)
                yield _cells(given)

    def left(self) -> list[list[str]]:
        """Rows that were read and not given."""
        columns = [] if self.held is None else _cells(self.held)
        return [list(row) for row in zip(*columns, strict=True)]

    def _blocks(self) -> Iterator[Any]:
        behind = b""  # a line that goes on in the next piece
        self.raw.seek(self.rest)
        while True:
            piece = self.raw.read(BLOCK)
            block = behind + piece
            end = block.rfind(b"\n") + 1 if piece else len(block)
            block, behind = block[:end], block[end:]
            table = self._parse(block) if block else None
            if table is None:
                return
            self.rest += len(block)
            yield table

    def _parse(self, block: bytes) -> Any:
        """A block as a table of pyarrow; None where it is not plain."""
        lines = _count_plain_lines(block, self.sep.encode())
        if lines == 0:
            return None
        try:
            text = block.decode(self.encoding)
        except UnicodeDecodeError:
            return None
        table = _parse(text.encode(), self.sep, self.width)
        return table if table is not None and table.num_rows == lines else None


def plain_rows(
    raw: Any, size: int | None, lines: int, sep: str, encoding: str, width: int, count: int
) -> PlainRows | None:
    """Rows of a file behind so many lines; None where the csv module has to go on.

    ``size`` is that of the file, None where it is packed or a stream.
    """
    name = codecs.lookup(encoding).name
    if size is None or name not in ENCODINGS or not sep.isascii():
        return None
    here = raw.tell()
    place = _place(raw, lines)
    raw.seek(here)
    if place is None or size - place < WORTH:
        return None
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return None
    # The mark at the beginning of a file of UTF-8 is a character elsewhere.
    return PlainRows(raw, place, sep, name.removesuffix("-sig"), width, count)


def _place(raw: Any, lines: int) -> int | None:
    """The place in a file where so many lines end; None where a line may end in another way."""
    place = 0
    raw.seek(0)
    while lines:
        piece = raw.read(BLOCK)
        ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n")) + 1
        if not len(ends):
            return None
        end = int(ends[lines - 1]) if lines <= len(ends) else len(piece)
        if piece.count(b"\r", 0, end) != piece.count(b"\r\n", 0, end):
            return None
        place, lines = place + end, max(lines - len(ends), 0)
    return place


def _count_plain_lines(block: bytes, sep: bytes) -> int:
    """The number of lines of a block; 0 where lines or quotes are not plain."""
    if block.startswith((b"\n", b"\r", codecs.BOM_UTF8)) or b"\n\n" in block or b"\0" in block:
        return 0
    if b"\r" in block and (b"\n\r" in block or block.count(b"\r") != block.count(b"\r\n")):
        return 0
    if b'"' in block and not _has_plain_quotes(block, sep):
        return 0
    return block.count(b"\n") + (not block.endswith(b"\n"))


def _has_plain_quotes(block: bytes, sep: bytes) -> bool:
    """Whether quotes open where cells begin, close where they end, and are doubled between."""
    data = np.frombuffer(b"\n" + block + b"\n", np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    if len(quotes) % 2:
        return False
    edge = np.zeros(256, dtype=bool)
    edge[list(sep + b"\r\n")] = True
    opening, closing = quotes[::2], quotes[1::2]
    doubled = closing[:-1] + 1 == opening[1:]
    begins, ends = edge[data[opening - 1]], edge[data[closing + 1]]
    begins[1:] |= doubled
    ends[:-1] |= doubled
    return bool(begins.all() and ends.all())


def _parse(block: bytes, sep: str, width: int) -> Any:
    """Lines as a table of text; None where a row is too wide, too narrow, or has a long cell."""
    import pyarrow
    import pyarrow.compute
    from pyarrow import csv as arrow_csv

    names = [str(i) for i in range(width)]
    size = len(block) + 1
    read = arrow_csv.ReadOptions(use_threads=False, block_size=size, column_names=names)
    parse = arrow_csv.ParseOptions(
        delimiter=sep, quote_char='"', double_quote=True, escape_char=False,
        newlines_in_values=True, ignore_empty_lines=False,
    )  # fmt: skip
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pyarrow.string()), check_utf8=False, null_values=[],
        strings_can_be_null=False, quoted_strings_can_be_null=False,
    )  # fmt: skip
    try:
        table = arrow_csv.read_csv(pyarrow.BufferReader(block), read, parse, convert)
    except pyarrow.ArrowInvalid:
        return None
    lengths = [pyarrow.compute.binary_length(column) for column in table.columns]
    longest = max(pyarrow.compute.max(column).as_py() for column in lengths)
    return table if longest <= csv.field_size_limit() else None


def _cells(table: Any) -> list[list[str]]:
    return [column.to_numpy().tolist() for column in table.columns]

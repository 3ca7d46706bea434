"""Plain text tables, read by pyarrow where it is installed.

`kernull.tables.text_files` finds out separator, encoding, header and decimal mark, and reads the
first rows. What follows is read here in blocks of bytes, as long as each block is plain: rows of
one width, cells quoted as a whole or not at all, no blank lines. From the first block that is not,
the csv module goes on. Cells are the same either way.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

#: Bytes of a block.
BLOCK = 2**23
#: Bytes that are left to read from which on it pays to load pyarrow (0.1 s).
WORTH = 2**21
#: Encodings in which the bytes of line ends, quotes and separators are part of nothing else.
ENCODINGS = ("utf-8", "cp1252", "iso8859-1", "ascii")


def plain_encoding(encoding: str) -> str:
    """That of what follows the first bytes: a mark there is a character elsewhere."""
    return codecs.lookup(encoding).name.removesuffix("-sig")


def plain_rows(
    raw: Any, size: int | None, lines: int, sep: str, encoding: str, width: int
) -> Iterator[Sequence[str]] | None:
    """Rows of a file behind so many lines; None where the csv module has to go on.

    ``size`` is that of the file, None where it is packed or a stream. After the last row, the file
    stands where what is not plain begins.
    """
    name = plain_encoding(encoding)
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
    return _plain_rows(raw, place, sep, name, width)


def _plain_rows(
    raw: Any, place: int, sep: str, encoding: str, width: int
) -> Iterator[Sequence[str]]:
    raw.seek(place)
    while block := raw.read(BLOCK):
        if len(block) == BLOCK:  # without the line that goes on behind it
            block = block[: block.rfind(b"\n") + 1]
        table = _parse(block, sep, encoding, width)
        if table is None:
            break
        yield from zip(*_cells(table), strict=True)
        place += len(block)
        raw.seek(place)
    raw.seek(place)


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


def _parse(block: bytes, sep: str, encoding: str, width: int) -> Any:
    """Lines as a table of text; None where they are not plain, or a cell is long."""
    lines = _count_plain_lines(block, sep.encode())
    try:
        block = block.decode(encoding).encode()
    except UnicodeDecodeError:
        return None
    if not lines:
        return None
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
    fits = table.num_rows == lines and longest <= csv.field_size_limit()
    return table if fits else None


def _cells(table: Any) -> list[list[str]]:
    return [column.to_numpy().tolist() for column in table.columns]

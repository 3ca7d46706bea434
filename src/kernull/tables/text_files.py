"""CSV, its relatives and JSON lines, read in chunks with the standard library.

A text file may hold anything. Lines have a largest length, and the csv module bounds its cells, so
a stray quote or one endless line ends in an error soon, whatever the size of the file.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from kernull._text import listed
from kernull.errors import TableError
from kernull.tables.cells import as_numbers, decimal_marks, is_missing
from kernull.tables.table import Source, Table, _check_names

#: Longer lines are no table: 16 million characters.
MAX_LINE = 2**24
#: Bytes that the encoding is judged by.
SAMPLE_BYTES = 2**18
SEPARATORS = ",;\t|"
#: What reading raises: of damaged .gz files too.
READ_ERRORS = (OSError, EOFError, zlib.error)


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written; None is found out from its beginning."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None and (len(self.sep) != 1 or self.sep in '"\r\n'):
            raise ValueError(f"sep: got {self.sep!r}; expected one character, such as ';'.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal: got {self.decimal!r}; expected '.' or ','.")
        if self.sep == self.decimal == ",":
            raise ValueError("decimal: a comma cannot separate cells and decimals; set sep=';'.")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding: got {self.encoding!r}; expected a name such as 'utf-8', 'cp1252' "
                    "or 'utf-16'."
                ) from None


def open_text(label: str, raw: Any, form: TextFormat, chunk_rows: int, size: int | None) -> Source:
    """Open a text file as a table; ``size`` is that of the file in bytes, where it is known."""
    notes: list[str] = []
    buffered = io.BufferedReader(raw, SAMPLE_BYTES)
    try:
        sample = buffered.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]
    except READ_ERRORS as error:
        raise TableError(f"{label}: cannot be read ({error}).") from None
    _refuse_binary(label, sample, form.encoding)
    encoding = form.encoding or _encoding(sample, label, notes)
    lines = _Lines(label, io.TextIOWrapper(buffered, encoding=encoding, newline=""))
    if re.match(rb"(?:\xef\xbb\xbf)?\s*\{", sample):
        return _open_json_lines(lines, chunk_rows, notes)
    first, said = _first_line(lines, notes)
    if not first.strip():
        raise TableError(f"{label}: has empty lines only; expected a header line and rows.")
    sep = form.sep or said or _separator(first, label)
    reader = csv.reader(chain([first], lines), delimiter=sep)
    head, _ = next(_rows(lines, reader, "the header"))
    if not any(cell.strip() for cell in head):
        raise TableError(f"{label}: the first line is empty; expected a header line and rows.")
    numbers = any(not as_numbers(head, mark)[2].any() for mark in form.decimal or ".,")
    headless = numbers and not all(map(is_missing, head))
    if headless:
        names = [f"x{i}" for i in range(len(head))]
        notes.append("has no header line; columns are called x0, x1, ...")
    else:
        names = [" ".join(cell.split()) for cell in head]
    _check_names(label, names, f" in the header (line {lines.count})")
    before = [(head, lines.count)] if headless else []
    rows = [*before, *islice(_rows(lines, reader), chunk_rows - len(before))]
    decimal = form.decimal or _decimal(names, [row for row, _ in rows], sep, notes)
    rows_of_file = chain(rows, _rows(lines, reader))
    chunks = _chunks(buffered, lines, names, decimal, rows_of_file, chunk_rows)
    return Source(label, tuple(names), chunks, size, notes)


def _decimal(
    names: list[str], rows: list[Sequence[str]], sep: str, notes: list[str]
) -> str | dict[str, str]:
    """The decimal mark, by column where columns differ; commas are said."""
    cells = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    marks = decimal_marks(dict(zip(names, cells, strict=False)), "." if sep == "," else ",")
    if "," not in marks.values():
        return "."
    usual, wrong = sorted(",.", key=list(marks.values()).count, reverse=True)
    said = {",": "comma", ".": "point"}
    but = [name for name, mark in marks.items() if mark != usual]
    more = f", in {listed(but)} with a decimal {said[wrong]}" if but else ""
    notes.append(
        f"numbers are read with a decimal {said[usual]}{more} (decimal={wrong!r} if that is wrong)"
    )
    return marks if but else usual


def _first_line(lines: _Lines, notes: list[str]) -> tuple[str, str | None]:
    """The header line, and the separator that a line before it names, as Excel's ``sep=;`` does.

    Empty lines and comments before it are skipped.
    """
    comments, sep = 0, None
    for line in lines:
        text = line.strip().lstrip("\ufeff")
        named = text.strip('"')
        if named[:4].lower() == "sep=" and len(named) == 5 and sep is None:
            sep = named[4]
        elif text.startswith("#") and not any(mark in text for mark in SEPARATORS):
            comments += 1
        elif text:
            if comments:
                notes.append(f"comments before the header are skipped (lines: {comments})")
            return line, sep
    return "", sep


class _Lines:
    """Lines of a text file, none longer than `MAX_LINE`."""

    def __init__(self, label: str, text: io.TextIOWrapper) -> None:
        self.label, self.text, self.count = label, text, 0  # lines that were read
        self.ended = False  # whether there are no more

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self.text.readline(MAX_LINE)
        except UnicodeDecodeError as error:
            raise TableError(
                f"{self.label}: is not {error.encoding} near line {self.count + 1}; name the "
                "encoding (encoding='cp1252', for example)."
            ) from None
        except READ_ERRORS as error:
            raise TableError(
                f"{self.label}: cannot be read after line {self.count} ({error})."
            ) from None
        if not line:
            self.ended = True
            raise StopIteration
        self.count += 1
        if len(line) == MAX_LINE:
            raise TableError(
                f"{self.label}: line {self.count} has more than {MAX_LINE:,} characters; this is "
                "no table."
            )
        return line


def _rows(lines: _Lines, reader: Any, what: str = "") -> Iterator[tuple[Sequence[str], int]]:
    """Rows with their lines. Blank lines count as lines, not as rows."""
    before = lines.count
    try:
        for row in reader:
            if lines.ended:  # a row ends with its line, except inside quotes
                raise TableError(
                    f"{lines.label}: a quote opened on line {_opening_line(row[-1], lines.count)} "
                    "is never closed; close or remove it."
                )
            before = lines.count
            if row:
                yield row, before
    except csv.Error as error:
        place = what or f"line {lines.count}"
        opened = "" if what else f" on line {before + 1}"
        quote = f" (is a quote{opened} not closed?)" if "field larger" in str(error) else ""
        raise TableError(f"{lines.label}: cannot be read near {place}: {error}{quote}.") from None


def _opening_line(cell: str, last: int) -> int:
    """The line on which a cell began that goes on to the last line of a file."""
    breaks = len(re.findall("\r\n|\r|\n", cell))
    return last - breaks + cell.endswith(("\r", "\n"))


def _chunks(
    raw: Any, lines: _Lines, names: list[str], decimal: str | Mapping[str, str],
    rows: Iterator[tuple[Sequence[str], int]], chunk_rows: int,
) -> Iterator[tuple[Table, int]]:  # fmt: skip
    start, width = 0, len(names)
    with lines.text:
        while part := list(islice(rows, chunk_rows)):
            broken = {i: len(row) for i, (row, _) in enumerate(part) if len(row) != width}
            whole = ([""] * width if i in broken else row for i, (row, _) in enumerate(part))
            columns = dict(zip(names, zip(*whole, strict=True), strict=True))
            where = [line for _, line in part]
            start += len(part)
            done = raw.tell() if raw.seekable() else start
            yield Table(lines.label, start - len(part), columns, where, decimal, broken), done


def _open_json_lines(lines: _Lines, chunk_rows: int, notes: list[str]) -> Source:
    """One JSON object per line, as ``kernull score -o scores.jsonl`` writes them."""
    records = _records(lines)
    first = list(islice(records, chunk_rows))
    names = tuple(dict.fromkeys(name for record, _ in first for name in record))

    def chunks() -> Iterator[tuple[Table, int]]:
        start, rows = 0, first
        with lines.text:
            while rows:
                columns = {name: [record.get(name) for record, _ in rows] for name in names}
                start += len(rows)
                where = [line for _, line in rows]
                yield Table(lines.label, start - len(rows), columns, where), start
                rows = list(islice(records, chunk_rows))

    return Source(lines.label, names, chunks(), None, notes)


def _records(lines: _Lines) -> Iterator[tuple[dict[str, Any], int]]:
    for line in lines:
        if not (text := line.strip().lstrip("\ufeff")):
            continue
        place = f"{lines.label}: line {lines.count}"
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TableError(
                f"{place} is not JSON ({error}); expected one object per line, or save the table "
                "as CSV or Parquet."
            ) from None
        if not isinstance(record, dict) or not record:
            raise TableError(f"{place}: expected an object with a value for each column.")
        nested = [name for name, cell in record.items() if isinstance(cell, dict | list)]
        if nested:
            raise TableError(f"{place}: {nested[0]!r} holds several values; give each a column.")
        yield record, lines.count


def _separator(line: str, label: str) -> str:
    if label.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    line = re.sub(r"(?<=\d),(?=\d+[;\t|])", "", line)  # a decimal comma, where another mark follows
    counts = {mark: line.count(mark) for mark in SEPARATORS}
    return max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else ","


def _encoding(sample: bytes, label: str, notes: list[str]) -> str:
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        notes.append("is read as UTF-16 (encoding= if that is wrong)")
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8-sig")().decode(sample)
    except UnicodeDecodeError:
        notes.append("is not UTF-8 and is read as Windows-1252 (encoding= if that is wrong)")
        return "cp1252"
    return "utf-8-sig"


def is_model_file(path: str) -> bool:
    """Whether a file is a model of `kernull.save`."""
    try:
        with open(path, "rb") as file:
            return _is_model(file.read(SAMPLE_BYTES))
    except OSError:
        return False


def _is_model(sample: bytes) -> bool:
    return sample[8:9] == b"{" and b'"kernull' in sample


def _refuse_binary(label: str, sample: bytes, encoding: str | None) -> None:
    if label.lower().endswith((".npz", ".npy")):
        raise TableError(f"{label}: NumPy files are not read as tables; pass the arrays (np.load).")
    known = {
        b"PK\x03\x04": "an Excel or ZIP file; give it its own suffix (.xlsx, .ods)",
        b"\xd0\xcf\x11\xe0": "an old Excel file; call it .xls",
        b"PAR1": "a Parquet file; call it .parquet",
        b"ARRO": "an Arrow file; save it as Parquet or CSV",
        b"\x1f\x8b": "compressed; give it the suffix .gz",
        b"%PDF": "a PDF",
    }
    for magic, what in known.items():
        if sample.startswith(magic):
            raise TableError(f"{label}: is not a text file but {what}.")
    if _is_model(sample):
        raise TableError(f"{label}: is a model; expected a table.")
    wide = encoding is not None and codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    wide = wide or sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in sample and not wide:
        if sample[1:400:2].count(0) > 150:
            raise TableError(f"{label}: seems to be UTF-16: use encoding='utf-16-le'.")
        raise TableError(f"{label}: holds zero bytes; this is no text file.")
    if re.match(rb"(?:\xef\xbb\xbf)?\s*\[\s*[\[{]", sample):
        raise TableError(
            f"{label}: JSON is read as lines of one object each (.jsonl); save the table so, or as "
            "CSV or Parquet."
        )

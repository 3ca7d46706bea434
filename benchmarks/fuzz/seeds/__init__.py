"""Small valid tables of every binary format. ``small.xls`` was written by xlwt."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ["name", "size", "when", "good"]
ROWS: list[list[Any]] = [
    [f"part {i}", 1.5 * i, datetime(2024, 1, 2, 3, 4, i), i % 2 == 0] for i in range(12)
]
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


def xls() -> bytes:
    """NAMES and ROWS as a sheet, beside another."""
    return (Path(__file__).parent / "small.xls").read_bytes()


@cache
def xlsx() -> bytes:
    """The same."""
    from openpyxl import Workbook

    book, content = Workbook(), io.BytesIO()
    for row in [NAMES, *ROWS]:
        book.active.append(row)
    book.create_sheet("other").append(["z"])
    book.save(content)
    return content.getvalue()


def ods(
    rows: Sequence[Sequence[Any]] = (NAMES, *ROWS), extra: str = "", cut: bool = False
) -> bytes:
    """The same, or other rows, with some more XML behind them; ``cut`` ends it behind a row."""
    lines = "".join(f"<table:table-row>{''.join(map(_ods, row))}</table:table-row>" for row in rows)
    sheets = f'<table:table table:name="parts">{lines}{extra}</table:table>'
    spaces = " ".join(f'xmlns:{name}="{OFFICE}:{name}:1.0"' for name in ("office", "table", "text"))
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces}><office:body>'
        f"<office:spreadsheet>{sheets}</office:spreadsheet></office:body></office:document-content>"
    )
    document = document.rpartition("</table:table>")[0] if cut else document
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    space = f'xmlns:manifest="{OFFICE}:manifest:1.0"'
    manifest = (
        f'<manifest:manifest {space}><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{kind}"/></manifest:manifest>'
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", kind, zipfile.ZIP_STORED)
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", document)
    return content.getvalue()


def _ods(cell: Any) -> str:
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, bool):
        kind = f'office:value-type="boolean" office:boolean-value="{str(cell).lower()}"'
    elif isinstance(cell, datetime):
        kind = f'office:value-type="date" office:date-value="{cell.isoformat()}"'
    elif isinstance(cell, float | int):
        kind = f'office:value-type="float" office:value="{cell}"'
    elif cell.startswith("="):
        return f'<table:table-cell table:formula="of:{cell}"/>'
    else:
        kind = 'office:value-type="string"'
    return f"<table:table-cell {kind}><text:p>{cell}</text:p></table:table-cell>"


@cache
def parquet() -> tuple[bytes, ...]:
    """Columns of many types, in pages of several encodings."""
    import pyarrow

    n, rng = 40, np.random.default_rng(0)
    codes = pyarrow.array([f"c{i % 7}" for i in range(n)]).dictionary_encode()
    text = pyarrow.array([f"some longer text {i % 9}" for i in range(n)], pyarrow.string_view())
    bytes_ = pyarrow.array([b"xx" if i % 3 == 0 else None for i in range(n)])
    times = pyarrow.array([datetime(2024, 1, 1) + timedelta(hours=i) for i in range(n)])
    lists = pyarrow.array([["a", "bb"], None] * (n // 2))
    numbers = pyarrow.array(rng.normal(size=n))
    return tuple(
        data
        for columns in (
            {"number": numbers, "code": codes, "count": np.arange(n)},
            {"text": text, "bytes": bytes_, "half": np.arange(n).astype(np.float16)},
            {"time": times, "lists": lists, "good": np.arange(n) % 2 == 0},
        )
        for data in _pages(pyarrow.table(columns))
    )


def _pages(table: Any) -> Iterator[bytes]:
    from pyarrow import parquet

    for settings in (
        {"compression": "none"},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
    ):
        content = io.BytesIO()
        parquet.write_table(table, content, write_statistics=False, **settings)
        yield content.getvalue()


def far_codes() -> bytes:
    """A Parquet file of which a column has codes from 0 to 128, all of them changed to 255."""
    import pyarrow
    from pyarrow import parquet

    codes = np.arange(200) % 129
    names = pyarrow.array([f"c{i}" for i in range(129)])
    column = pyarrow.DictionaryArray.from_arrays(codes.astype(np.int32), names)
    content = io.BytesIO()
    table = pyarrow.table({"code": column, "size": np.arange(200.0)})
    parquet.write_table(table, content, compression="none", write_statistics=False)
    packed = codes.astype(np.uint8).tobytes()
    if content.getvalue().count(packed) != 1:
        raise RuntimeError("Parquet is packed in another way")
    return content.getvalue().replace(packed, b"\xff" * 200)


def far_cell(place: str = "XFD1048576") -> bytes:
    """An .xlsx file of 5 kB with a cell far from all others."""
    from openpyxl import Workbook

    book, content = Workbook(), io.BytesIO()
    for row in (["a", "b"], [1, 2]):
        book.active.append(row)
    book.active[place] = 3
    book.save(content)
    return content.getvalue()

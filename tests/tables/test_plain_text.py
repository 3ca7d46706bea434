"""Text that pyarrow reads has the cells that the csv module reads."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.fuzz.tables import make_table, spoil_quotes
from kernull.errors import TableError
from kernull.tables import TextFormat, open_table, plain_text

pytest.importorskip("pyarrow")

CELLS = [
    "",
    "1",
    "1.5",
    "-2",
    "ab",
    " x ",
    "é",
    "日",
    "NA",
    "null",
    "#",
    "x" * 40,
    "\ufeff",
    "\x0b",
]
#: Cells as they are written, most of them plain.
WRITTEN = [*CELLS, '"q"', '"a""b"', '""', '""""', '"a,b"', '"a;b"']
ODD = [
    "\ufeff",
    'a"b',
    '"a"b',
    '"',
    '""x',
    '"a\nb"',
    "\r",
    "\n",
    "1,2",
    '"\r\n"',
    "\0",
    '\ufeff"x"',
]


def outcome(path, sep, encoding, chunk_rows, plain, block=64):
    """All that is read, or the error; and how many rows pyarrow read of it."""
    read = 0
    real = plain_text._cells

    def cells(table):
        nonlocal read
        read += table.num_rows
        return real(table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_text, "BLOCK", block)
        patch.setattr(plain_text, "WORTH", 0 if plain else np.inf)
        patch.setattr(plain_text, "_cells", cells)
        try:
            source = open_table(str(path), chunk_rows, TextFormat(sep, encoding=encoding))
            chunks = [
                (chunk.start, {n: list(c) for n, c in chunk.columns.items()}, list(chunk.lines),
                 chunk.decimal, dict(chunk.broken))
                for chunk, _ in source.chunks()
            ]  # fmt: skip
        except TableError as error:
            return str(error), read
    return (source.names, source.notes, chunks), read


def same(path, sep=None, encoding=None, chunk_rows=2, block=64):
    """Compare both readers; how many rows pyarrow read."""
    found, read = outcome(path, sep, encoding, chunk_rows, plain=True, block=block)
    expected, none = outcome(path, sep, encoding, chunk_rows, plain=False, block=block)
    assert none == 0
    assert found == expected
    return read


@st.composite
def files(draw):
    sep = draw(st.sampled_from(",,,,;;;;\t| a"))
    end = draw(st.sampled_from(["\n"] * 5 + ["\r\n"] * 3 + ["\r"]))
    width = draw(st.integers(1, 4))
    odd = draw(st.sampled_from([0, 0, 0, 1]))
    cell = st.sampled_from([*WRITTEN[width == 1 :], *ODD * odd])
    rows = draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=4, max_size=30))
    if draw(st.sampled_from([False, False, True])):
        place = draw(st.integers(0, len(rows)))
        rows.insert(place, draw(st.lists(cell, max_size=5)))
    lines = [sep.join(f"c{i}" for i in range(width)), *map(sep.join, rows)]
    text = end.join(lines) + draw(st.sampled_from(["", end, end * 2]))
    encoding = draw(st.sampled_from(["utf-8"] * 5 + ["utf-8-sig", "cp1252", "latin-1", "utf-16"]))
    return text.encode(encoding, "replace"), sep, encoding


@settings(max_examples=400, deadline=None)
@given(files(), st.integers(1, 5), st.integers(8, 200))
@example((b"a\n1\n2\n\xef\xbb\xbf3\n4\n", ",", "utf-8-sig"), 2, 8)
@example((b'a,b\n1,2\n"""",""\n"","x""y"\n3,4\n', ",", "utf-8"), 1, 8)
@example((b"a\n1\n2\n3\n\xff\n", ",", None), 2, 8)
def test_any_text(tmp_path_factory, file, chunk_rows, block):
    content, sep, encoding = file
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(content)
    same(path, sep, encoding, chunk_rows, block)


@pytest.mark.parametrize("kind", ["plain", "cells", "names", "both", "bytes", "quotes"])
def test_tables_as_nobody_should_write_them(tmp_path, kind):
    path = tmp_path / "t.csv"
    for seed in range(60):
        rng = np.random.default_rng([5, seed])
        path.write_bytes(spoil_quotes(rng) if kind == "quotes" else make_table(rng, kind))
        same(path, chunk_rows=3, block=200)


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a,b\n" + b"1,x\n" * 10, 8),
        (b"a,b\r\n" + b"1,x\r\n" * 9 + b"1,x", 8),
        (b'a,b\n"1","x, y"\n' + b'2,"say ""so"""\n' * 9, 8),
        ("a;b\n".encode("cp1252") + "1,5;größe\n".encode("cp1252") * 10, 8),
        (b"\xef\xbb\xbfa,b\n" + b"1,x\n" * 10, 8),
        (b"a,b\n" + b"1,x\n" * 4 + b"1\n" + b"1,x\n" * 5, 0),
        (b"a,b\n" + b"1,x\n" * 4 + b"\n" + b"1,x\n" * 5, 0),
        (b'a,b\n' + b"1,x\n" * 4 + b'1,"x\ny"\n' + b"1,x\n" * 5, 0),
        (b"a,b\n" + b"1,x\n" * 4 + b'1,x"\n' + b"1,x\n" * 5, 0),
        (b"a,b\n" + b"1,x\n" * 4 + b"1,x\r" + b"1,x\n" * 5, 0),
        (b"a,b\n" + b"1,x\n" * 9 + b"1," + b"x" * 140_000 + b"\n", 0),
    ],
)  # fmt: skip
def test_what_pyarrow_reads(tmp_path, content, rows):
    (tmp_path / "t.csv").write_bytes(content)
    assert same(tmp_path / "t.csv", block=2**20) == rows


def test_doubt_comes_late(tmp_path):
    """Blocks before it are pyarrow's; lines are counted on."""
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * 50 + b"1,\xff\n" + b"1,x\n" * 50)
    assert same(tmp_path / "t.csv", encoding="cp1252") == 99
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * 50 + b"1\n" + b"1,x\n" * 50)
    assert 0 < same(tmp_path / "t.csv") < 50


def test_files_by_the_module_alone(tmp_path, monkeypatch):
    """Without pyarrow, and packed ones."""
    content = b"a,b\n" + b"1,x\n" * 10
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    (tmp_path / "t.csv").write_bytes(content)
    assert same(tmp_path / "t.csv.gz") == 0
    assert same(tmp_path / "t.csv") > 0
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.csv", None)
    assert same(tmp_path / "t.csv") == 0

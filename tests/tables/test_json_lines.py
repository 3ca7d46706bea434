"""Tables of one JSON object per line."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from kernull import read_table
from kernull.errors import TableError
from kernull.tables import open_table


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz", "t.json"])
def test_json_lines(name, tmp_path):
    """They were read as CSV, without a word."""
    text = '\n{"a": 1.5, "b": "x"}\n{"b": "y", "a": null, "on": true}\n\n{"a": -2}\n'
    pack = gzip.compress if name.endswith("gz") else bytes
    (tmp_path / name).write_bytes(pack(text.encode("utf-8-sig" if name == "t.jsonl" else "utf-8")))
    table = read_table(tmp_path / name)
    assert (table.names, list(table.lines)) == (["a", "b", "on"], [2, 3, 5])
    np.testing.assert_array_equal(table.numbers("a"), [1.5, np.nan, -2.0])
    assert table.columns["on"] == [None, True, None]
    chunks = [chunk for chunk, _ in open_table(str(tmp_path / name), chunk_rows=2).chunks()]
    assert [(len(chunk), chunk.start) for chunk in chunks] == [(2, 0), (1, 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ('{\n"a": 1}\n', "line 1 is not JSON.*one object per line"),
        ('{"a": 1}\n[1]\n', "line 2: expected an object"),
        ('{"a": 1}\n{"a": [1, 2]}\n', "line 2: 'a' holds several values"),
        ('[{"a": 1}]', r"lines of one object each \(.jsonl\)"),
        ('{"a": 1' + "0" * 400 + "}", "'a', row 1 .line 1.: '10+…' is too large"),
    ],
)
def test_json_that_is_no_table(text, said, tmp_path):
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(TableError, match=said):
        read_table(tmp_path / "t.jsonl").numbers("a")

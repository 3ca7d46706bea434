"""Spreadsheets: what is in their cells, and files that are out for memory."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import zipfile
from datetime import date, datetime, time, timedelta

import pytest

from benchmarks.fuzz import seeds
from kernull import read_table
from kernull.errors import TableError
from kernull.tables import as_table, excel_files, open_table

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")


def save(path, *rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_cells_are_what_was_written(tmp_path):
    cells = [
        1, 1.5, -2.0, 2**60, 1e300, "x", "  x ", True, False, datetime(2024, 1, 2, 3, 4, 5),
        date(2024, 5, 6), time(3, 4, 5), timedelta(hours=30), "#N/A", None, "007", "end",
    ]  # fmt: skip
    names = [f"c{i}" for i in range(len(cells))]
    found = read_table(save(tmp_path / "t.xlsx", names, cells)).columns
    want = [datetime(2024, 5, 6) if type(c) is date else None if c == "#N/A" else c for c in cells]
    assert [found[name][0] for name in names] == want
    assert type(found["c0"][0]) is int
    assert type(found["c7"][0]) is bool


@pytest.mark.parametrize("kind", ["xlsx", "xls", "ods"])
def test_every_format_gives_the_same_cells(tmp_path, kind):
    (tmp_path / f"t.{kind}").write_bytes(getattr(seeds, kind)())
    table = open_table(str(tmp_path / f"t.{kind}")).read()
    rows = zip(*table.columns.values(), strict=True)
    assert table.names == seeds.NAMES
    assert [list(row) for row in rows] == seeds.ROWS


def test_a_table_that_does_not_begin_in_the_corner(tmp_path):
    rows = [None, "a", "b"], [None, 1, 2], [None, None, None], [None, None, 3]
    table = read_table(save(tmp_path / "t.xlsx", [None], *rows))
    assert table.columns == {"": [None, None], "a": [1, None], "b": [2, 3]}


def save_formulas(path, count, formula):
    """A column of numbers, and one with formulas without values in some rows, counted from 1."""
    rows = [["a", "b", "c"], *([i, 0.5 * i, i % 7] for i in range(count))]
    for row in formula:
        rows[row - 1][1] = f"=A{row}*2"
    return path.write_bytes(seeds.ods(rows)) if path.suffix == ".ods" else save(path, *rows)


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
@pytest.mark.parametrize("row", [2, 300])
def test_formulas_without_values_are_empty_cells_which_a_warning_says(tmp_path, kind, row):
    path = tmp_path / f"t.{kind}"
    save_formulas(path, 299, range(row, 301))
    with pytest.warns(UserWarning, match="formulas that were never computed are read as empty"):
        table = read_table(path)
    assert len(table.numbers("a")) == 299
    expected = [0.5 * i for i in range(row - 2)] + [None] * (301 - row)
    assert list(table.columns["b"]) == expected


def test_cells_beyond_the_header_are_told(tmp_path):
    """Their column was left out, without a word."""
    path = save(tmp_path / "t.xlsx", ["a", "b", "c"], [], *[[1, 2, 3, 4]] * 5)
    with pytest.raises(TableError, match=r"row 3 has 4 cells, the header has 3; name the column"):
        read_table(path)
    path = save(tmp_path / "t.xlsx", ["a", "b", "NA"], [1, 2, 3, " "], [4, 5, 6])
    assert read_table(path).columns == {"a": [1, 4], "b": [2, 5], "NA": [3, 6]}


def test_formulas_with_values_are_read(tmp_path):
    path = save(tmp_path / "t.xlsx", ["a", "b", "c"], [1.5, "=A2*2", '=""'], [2.5, 7, "x"])
    parts = {}
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"].decode()
    sheet = sheet.replace("<f>A2*2</f><v />", "<f>A2*2</f><v>3</v>")
    sheet = sheet.replace('<c r="C2"><f>', '<c r="C2" t="str"><f>')  # as Excel writes empty text
    parts["xl/worksheets/sheet1.xml"] = sheet.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert read_table(path).columns == {"a": [1.5, 2.5], "b": [3, 7], "c": [None, "x"]}


@pytest.mark.parametrize("kind", ["xlsx", "xls", "ods"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_files_that_are_cut_off(tmp_path, kind, share):
    content = getattr(seeds, kind)()
    (tmp_path / f"t.{kind}").write_bytes(content[: int(share * len(content))])
    with pytest.raises(TableError, match=r"is damaged(,| or) cut off"):
        read_table(tmp_path / f"t.{kind}")


def test_a_file_with_a_password(tmp_path):
    """Encrypted .xlsx files are compound files, as .xls files are."""
    start, name = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "EncryptedPackage".encode("utf-16-le")
    (tmp_path / "t.xlsx").write_bytes(start + bytes(1016) + name + bytes(4096))
    with pytest.raises(TableError, match="protected by a password; open it in Excel"):
        read_table(tmp_path / "t.xlsx")


def test_an_empty_sheet_before_others(tmp_path):
    book = openpyxl.Workbook()
    book.create_sheet("data").append(["a"])
    book.save(tmp_path / "t.xlsx")
    said = r"'Sheet' is empty; name another one \(sheet='data'\): it has 'data'\."
    with pytest.raises(TableError, match=said):
        read_table(tmp_path / "t.xlsx")


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(seeds.ods())))
    assert open_table("-").read().names == seeds.NAMES


# -- files that are out for time or memory ---------------------------------------------------


def test_a_cell_far_from_all_others_is_refused(tmp_path):
    """Rust ends the process that asks for 550 GB."""
    (tmp_path / "t.xlsx").write_bytes(seeds.far_cell())
    with pytest.raises(TableError, match=r"cannot be read within 768 MB .* far from all others"):
        read_table(tmp_path / "t.xlsx")
    (tmp_path / "t.xlsx").write_bytes(seeds.far_cell("A1048576"))
    assert read_table(tmp_path / "t.xlsx").columns == {"a": [1, 3], "b": [2, None]}


def test_archives_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(excel_files, "MAX_CONTENT", 10_000)
    monkeypatch.setattr(excel_files, "MAX_RATIO", 2)
    (tmp_path / "t.xlsx").write_bytes(seeds.xlsx())
    with pytest.raises(TableError, match=r"unpacks to .* bytes, more than 11,\d+; use CSV"):
        read_table(tmp_path / "t.xlsx")


def test_a_reader_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(excel_files, "SECONDS", 0)
    (tmp_path / "t.xlsx").write_bytes(seeds.far_cell("XFD1000"))
    with pytest.raises(TableError, match="and 0 s"):
        read_table(tmp_path / "t.xlsx")


def test_a_file_without_an_end_is_refused(tmp_path):
    """It was read for ever."""
    (tmp_path / "t.ods").write_bytes(seeds.ods(cut=True))
    with pytest.raises(TableError, match="cannot be read within 768 MB and 1 s"):
        read_table(tmp_path / "t.ods")


def test_rows_that_nobody_asks_for_leave_no_process(tmp_path, monkeypatch):
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    path = save(tmp_path / "t.xlsx", ["a", "b"], *[[i, "x" * 200] for i in range(60_000)])
    source = open_table(str(path))
    del source
    gc.collect()
    assert [process.returncode is None for process in started] == [False]


# -- Arrow data ------------------------------------------------------------------------------

READ = """
import sys
from kernull import read_table
print(read_table(sys.argv[1]).text("code"))
"""
ADOPT = """
import numpy as np, pyarrow
from kernull.tables import as_table
offsets = pyarrow.py_buffer(np.array([0, 4_000, 10], dtype="i4"))
text = pyarrow.StringArray.from_buffers(2, offsets, pyarrow.py_buffer(b"0123456789"))
frame = pyarrow.table({"a": text})
if FRAME == "pandas":
    import pandas
    frame = pandas.DataFrame({"a": pandas.Series(pandas.arrays.ArrowExtensionArray(text))})
print(as_table(frame).text("a"))
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (READ, "cannot be read (In column 0: Invalid: Dictionary indices invalid"),
        (ADOPT.replace("FRAME", "'pyarrow'"), "its Arrow data is not valid ("),
        (ADOPT.replace("FRAME", "'pandas'"), "its Arrow data is not valid ("),
    ],
)
def test_arrow_data_that_leads_elsewhere_in_memory(tmp_path, program, said):
    """Such a table ended the process, or its cells were what lay there."""
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(seeds.far_codes())
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "t.parquet")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.returncode
    assert "kernull.errors.TableError" in done.stderr
    assert said in done.stderr
    assert done.stdout == ""


def test_valid_arrow_data_is_taken():
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", None], "b": [1.0, 2.0]}).convert_dtypes(
        dtype_backend="pyarrow"
    )
    for table in (frame, pyarrow.Table.from_pandas(frame)):
        assert as_table(table).text("a") == ["x", ""]

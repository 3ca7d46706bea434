"""Reading tables: every format gives the same numbers, and every flaw its row."""

from __future__ import annotations

import gzip
import time
import tracemalloc
from datetime import datetime

import numpy as np
import pytest

from kernull import TableViews, read_table
from kernull.errors import TableError
from kernull.tables import TextFormat, as_table, open_table, text_files

VALUES = {"a": np.array([1.5, -2.0, 3e-7]), "b": np.array([4, 5, 6])}


def read(path) -> dict[str, np.ndarray]:
    chunk = open_table(str(path)).read()
    return {name: chunk.numbers(name) for name in chunk.columns}


def write(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text("a,b\n1.5,4\n-2.0,5\n3e-7,6\n")
    elif kind == "tsv":
        path.write_text("a\tb\n1.5\t4\n-2.0\t5\n3e-7\t6\n")
    elif kind == "semicolon.csv":
        path.write_bytes("\ufeffa;b\r\n1.5;4\r\n-2.0;5\r\n\r\n3e-7;6\r\n".encode())
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(b"a,b\n1.5,4\n-2.0,5\n3e-7,6\n"))
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(VALUES), path)
    elif kind == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in [list(VALUES), *zip(*VALUES.values(), strict=True)]:
            book.active.append([getattr(cell, "item", lambda c=cell: c)() for cell in row])
        book.save(path)
    elif kind == "comma.csv":
        path.write_text("a;b\n1,5;4\n-2,0;5\n3e-7;6\n")
    else:
        path.write_bytes("a,b\n1.5,4\n-2.0,5\n3e-7,6\n".encode("utf-16"))
    return path


@pytest.mark.parametrize(
    "kind",
    [
        "csv",
        "tsv",
        "semicolon.csv",
        "csv.gz",
        "parquet",
        "xlsx",
        "comma.csv",
        "utf16.csv",
    ],
)
def test_every_format_gives_the_same_numbers(tmp_path, kind):
    found = read(write(tmp_path, kind))
    assert list(found) == ["a", "b"]
    for name, values in VALUES.items():
        np.testing.assert_array_equal(found[name], values.astype(float))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_chunks_cover_the_table_in_order(tmp_path, kind):
    path = write(tmp_path, kind)
    parts = [chunk for chunk, _ in open_table(str(path), chunk_rows=2).chunks()]
    assert [part.start for part in parts] == [0, 2]
    joined = np.concatenate([part.numbers("a") for part in parts])
    np.testing.assert_array_equal(joined, VALUES["a"])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("abc", "column 'b', row 3 (line 4): 'abc' is not a number"),
        ("inf", "column 'b', row 3 (line 4): 'inf' is not a finite number"),
    ],
)
def test_a_bad_cell_is_named_by_column_row_and_line(tmp_path, cell, said):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,2\n3,4\n5,{cell}\n6,7\n")
    with pytest.raises(TableError) as error:
        read(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_line_numbers_count_quoted_line_breaks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,note\n1,"two\nlines"\nx,ok\n')
    with pytest.raises(TableError, match=r"row 2 \(line 4\)"):
        open_table(str(path)).read().numbers("a")


def test_line_numbers_hold_in_later_chunks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 10 + "x\n")
    parts = [chunk for chunk, _ in open_table(str(path), chunk_rows=4).chunks()]
    with pytest.raises(TableError, match=r"row 11 \(line 12\)"):
        parts[-1].numbers("a")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "has empty lines only"),
        (b"a,b\n", "has columns but no rows"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 cells, the header has 2"),
        (b"\na,a\n1,2\n", "columns 1 and 2 are called 'a' in the header (line 2); name"),
        (b"a,b\n" + b"1,2\n" * 70_000 + b"1,\xff\n", "is not utf-8 near line"),
    ],
)
def test_broken_files_say_what_is_wrong(tmp_path, content, said):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError) as error:
        open_table(str(path)).read()
    assert said in str(error.value)


def test_wrong_content_under_a_suffix(tmp_path):
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="is not a Parquet file"):
        open_table(str(tmp_path / "t.parquet"))


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "no.csv", tmp_path):
        with pytest.raises(OSError, match=r"no such file|is a folder"):
            open_table(str(path))


def test_a_table_without_header_gets_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n")
    source = open_table(str(path))
    assert source.notes == ["has no header line; columns are called x0, x1, ..."]
    assert source.names == ("x0", "x1")
    np.testing.assert_array_equal(source.read().numbers("x0"), [1.0, 3.0])


def test_empty_cells_are_gaps(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,NA\n,2\nnan,?\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.numbers("a"), [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(table.numbers("b"), [np.nan, 2.0, np.nan])


def test_all_bad_cells_are_counted_and_ten_are_listed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 40 + "x\n" * 25)
    with pytest.raises(TableError) as error:
        read_table(path).numbers("a")
    assert "25 cells cannot be used" in str(error.value)
    assert str(error.value).count("'x' is not a number") == 10
    assert "and 15 more" in str(error.value)


def test_a_damaged_gz_file(tmp_path):
    data = bytearray(gzip.compress(b"a,b\n" + b"".join(b"%d,2\n" % i for i in range(9000))))
    data[5000:5100] = bytes(100)
    (tmp_path / "t.csv.gz").write_bytes(data)
    with pytest.raises(TableError, match="cannot be read"):
        read_table(tmp_path / "t.csv.gz")


# -- text files in other countries -----------------------------------------------------------


def test_detection_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe;länge\n1,5;2\n-1.234,25;3\n".encode("cp1252"))
    source = open_table(str(path))
    assert source.names == ("größe", "länge")
    assert ["Windows-1252" in note for note in source.notes] == [True, False]
    assert "decimal comma" in source.notes[1]
    np.testing.assert_array_equal(source.read().numbers("größe"), [1.5, -1234.25])
    with pytest.warns(UserWarning, match="read as Windows-1252"):
        read_table(path, decimal=",")


def test_what_is_said_is_not_guessed(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes("a|ß\n1,5|2\n".encode("cp1252"))
    source = open_table(str(path), form=TextFormat("|", ",", "cp1252"))
    assert (source.names, source.notes) == (("a", "ß"), [])
    np.testing.assert_array_equal(source.read().numbers("a"), [1.5])


def test_points_among_decimal_commas_are_not_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;2\n2.5;3\n")
    with pytest.raises(TableError, match="row 1"):  # neither mark fits all
        read_table(path).numbers("a")
    with pytest.raises(TableError, match="row 2"):
        read_table(path, decimal=",").numbers("a")


@pytest.mark.parametrize(
    ("text", "values", "note"),
    [
        ("a;b\n1,5;2\n2,5;0,25\n3,5;1.25\n4,5;3,25\n", [1.5, 2.5, 3.5, 4.5], "decimal comma ("),
        ("a;b\n1,5;0.5\n2,5;1.5\n", [1.5, 2.5], "in 'b' with a decimal point"),
        ("a;b\n1,076;1\n2,076;0.5\n", None, None),  # thousands, where the others have points
        ("a;b\n1,076;1\n2,076;0,5\n", [1.076, 2.076], "decimal comma ("),
        ('a,b\n"1,5",x\n"2,5",y\n', [1.5, 2.5], "decimal comma ("),
        ("a;b\n1,5%;1\n2,5 %;2\n", [1.5, 2.5], "decimal comma ("),
        ('a,b\n"1,500",x\n"2,500",y\n', None, None),
        ("1,5;2;4,5\n2,5;3;5,5\n", [1.5, 2.5], "has no header"),
    ],
)
def test_the_decimal_mark_is_that_of_most_cells_of_a_column(text, values, note, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    source = open_table(str(tmp_path / "t.csv"))
    assert any(note in said for said in source.notes) if note else not source.notes
    table = source.read()
    if values is None:
        with pytest.raises(TableError, match=r"decimal mark \(decimal=',' if all"):
            table.numbers("a")
    else:
        assert table.numbers(table.names[0]).tolist() == values


def test_a_point_among_decimal_commas_is_told_with_its_line(tmp_path):
    """One such cell made identifiers of all columns."""
    rows = [f"{i % 7},{i * 37 % 100:02d};{i % 5},5" for i in range(60)]
    rows[30] = "1.25;2,5"
    (tmp_path / "t.csv").write_text("\n".join(["a;b", *rows]))
    with pytest.warns(UserWarning, match="decimal comma"):
        table = read_table(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"column 'a', row 31 \(line 32\): '1.25' has another"):
        TableViews().fit(table)
    plain = TableViews().fit({"a": [row.split(";")[0] for row in rows], "b": np.arange(60.0) % 7})
    assert (plain.columns_[0].kind, plain.used_) == ("left out", ["b"])
    assert "decimal=','" in plain.columns_[0].why


@pytest.mark.parametrize(
    "wrong",
    [{"sep": ";;"}, {"decimal": "x"}, {"encoding": "klingon"}, {"sep": ",", "decimal": ","}],
)
def test_wrong_formats_are_named(wrong, tmp_path):
    with pytest.raises(ValueError, match=r"sep|decimal|encoding"):
        read_table(tmp_path / "t.csv", **wrong)


def test_excel_gives_dates_and_gaps_and_sheets(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "when", None], [1.5, datetime(2024, 1, 2, 3), None], [None, None, None],
                [None, datetime(2024, 1, 3), None]):  # fmt: skip
        book.active.append(row)
    book.create_sheet("other").append(["z"])
    book["other"].append([3])
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(UserWarning, match="sheet 'Sheet' is read, of 2"):
        table = read_table(tmp_path / "t.xlsx")
    assert table.names == ["a", "when"]
    assert len(table) == 2
    assert read_table(tmp_path / "t.xlsx", sheet="other").numbers("z").tolist() == [3.0]
    with pytest.raises(TableError, match="no sheet 'nope'"):
        read_table(tmp_path / "t.xlsx", sheet="nope")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [1, 2], "b": 3}, "column 'b' has one value for all rows"),
        ({"a": [1, 2], "b": np.ones((2, 2))}, "column 'b' has several per row"),
        ({"a": [1, 2], "b": [3]}, "got {'a': 2, 'b': 1}"),
    ],
)
def test_columns_that_make_no_table(columns, said):
    with pytest.raises(TableError, match=said):
        as_table(columns)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"PK\x03\x04abc", "Excel or ZIP"), (b"\xd0\xcf\x11\xe0abc", "old Excel file; call it .xls"),
     (b"a,b\n1,\0\n", "zero bytes"), (b"\x1f\x8babc", "compressed"), (b"ARROW1", "an Arrow file")],
)  # fmt: skip
def test_other_files_under_the_name_of_a_csv(tmp_path, content, said):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(TableError, match=said):
        open_table(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("save", [np.save, np.savez])
def test_files_of_arrays(tmp_path, save):
    """Of .npz, the suffix .xlsx was advised."""
    path = tmp_path / ("t.npy" if save is np.save else "t.npz")
    save(path, np.ones(3))
    with pytest.raises(TableError, match="NumPy files are not read as tables; pass the arrays"):
        read_table(path)


def test_parquet_columns_of_lists_are_told(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.0, 2.0], "b": [[1], [2]], "c": [{"x": 1}] * 2, "d": [b"x", b"y"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    notes = open_table(str(tmp_path / "t.parquet")).notes
    assert [note.rpartition(", ")[0] for note in notes] == [
        "column 'b' holds list<element: int64>",
        "column 'c' holds struct<x: int64>",
        "column 'd' holds binary",
    ]


# -- files that are out for time or memory ---------------------------------------------------


def test_a_stray_quote_in_the_header_ends_soon(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,"b\n' + "1,2\n" * 500_000)  # 2 MB took 97 s
    started = time.perf_counter()
    with pytest.raises(TableError, match=r"near the header.*quote not closed"):
        open_table(str(path))
    assert time.perf_counter() - started < 2.0


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
@pytest.mark.parametrize("quoted", ['"', '1,"', '"1\n","'])
def test_a_quote_that_is_never_closed_is_named_by_its_line(tmp_path, end, last, quoted):
    """It took the rest of the file into one cell, as one row that was not judged."""
    path = tmp_path / "t.csv"
    rows = ["1,2"] * 20
    rows[9] = f"{quoted}1,2".replace("\n", end)
    path.write_bytes((end.join(["a,b", *rows]) + (last and end)).encode())
    line = 12 if "\n" in quoted else 11
    for chunk_rows in (4, 100):
        with pytest.raises(TableError, match=f"a quote opened on line {line} is never closed"):
            open_table(str(path), chunk_rows).read()


def test_a_quote_that_swallows_more_than_a_cell_holds_is_named_by_its_row(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n" + '1,"2\n' + "1,2\n" * 50_000)
    with pytest.raises(TableError, match=r"larger .* \(is a quote on line 3 not closed\?\)"):
        open_table(str(tmp_path / "t.csv")).read()


def test_one_endless_line_is_refused_before_it_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE", 2**18)
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b\n1,2\n")
        for _ in range(64):
            file.write(b"9" * 2**20)  # 64 MB in one line
    tracemalloc.start()
    with pytest.raises(TableError, match="line 3 has more than 262,144 characters"):
        open_table(str(path)).read()
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()

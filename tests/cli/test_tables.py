"""Reading tables: every format gives the same numbers, and every flaw its row."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from kernull.cli._errors import DataError, UsageError
from kernull.cli._features import (
    Feature,
    choose_features,
    features_of_model,
    matrix,
    read_views,
    view_columns,
)
from kernull.cli._tables import open_table

VALUES = {"a": np.array([1.5, -2.0, 3e-7]), "b": np.array([4, 5, 6])}


def read(path) -> dict[str, np.ndarray]:
    chunk = open_table(str(path)).read()
    return {name: chunk.numbers(name) for name in chunk.columns}


def write(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    pyarrow = (
        pytest.importorskip("pyarrow") if kind in ("parquet", "arrow", "stream.arrow") else None
    )
    if kind == "csv":
        path.write_text("a,b\n1.5,4\n-2.0,5\n3e-7,6\n")
    elif kind == "tsv":
        path.write_text("a\tb\n1.5\t4\n-2.0\t5\n3e-7\t6\n")
    elif kind == "semicolon.csv":
        path.write_bytes("\ufeffa;b\r\n1.5;4\r\n-2.0;5\r\n\r\n3e-7;6\r\n".encode())
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(b"a,b\n1.5,4\n-2.0,5\n3e-7,6\n"))
    elif kind == "npz":
        np.savez(path, **VALUES)
    elif kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(VALUES), path)
    elif kind == "arrow":
        from pyarrow import feather

        feather.write_feather(pyarrow.table(VALUES), str(path))
    else:
        table = pyarrow.table(VALUES)
        with pyarrow.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)
    return path


@pytest.mark.parametrize(
    "kind",
    ["csv", "tsv", "semicolon.csv", "csv.gz", "npz", "parquet", "arrow", "stream.arrow"],
)
def test_every_format_gives_the_same_numbers(tmp_path, kind):
    found = read(write(tmp_path, kind))
    assert list(found) == ["a", "b"]
    for name, values in VALUES.items():
        np.testing.assert_array_equal(found[name], values.astype(float))


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet", "arrow"])
def test_chunks_cover_the_table_in_order(tmp_path, kind):
    path = write(tmp_path, kind)
    parts = [chunk for chunk, _ in open_table(str(path), chunk_rows=2).chunks()]
    assert [part.start for part in parts] == [0, 2]
    joined = np.concatenate([part.numbers("a") for part in parts])
    np.testing.assert_array_equal(joined, VALUES["a"])


def test_arrays_of_several_columns_are_numbered(tmp_path):
    np.savez(tmp_path / "t.npz", colour=np.arange(6.0).reshape(3, 2), size=np.ones(3))
    assert list(read(tmp_path / "t.npz")) == ["colour_0", "colour_1", "size"]


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.array([object()], dtype=object))
    with pytest.raises(DataError, match="plain arrays"):
        open_table(str(tmp_path / "t.npz"))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("abc", "column 'b', row 3 (line 4): 'abc' is not a number"),
        ("", "column 'b', row 3 (line 4): the cell is empty"),
        ("nan", "column 'b', row 3 (line 4): the cell is empty or NaN"),
        ("inf", "column 'b', row 3 (line 4): 'inf' is not a finite number"),
    ],
)
def test_a_bad_cell_is_named_by_column_row_and_line(tmp_path, cell, said):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,2\n3,4\n5,{cell}\n6,7\n")
    with pytest.raises(DataError) as error:
        read(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_line_numbers_count_quoted_line_breaks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,note\n1,"two\nlines"\nx,ok\n')
    with pytest.raises(DataError, match=r"row 2 \(line 4\)"):
        open_table(str(path)).read().numbers("a")


def test_line_numbers_hold_in_later_chunks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 10 + "x\n")
    parts = [chunk for chunk, _ in open_table(str(path), chunk_rows=4).chunks()]
    with pytest.raises(DataError, match=r"row 11 \(line 12\)"):
        parts[-1].numbers("a")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the first line is empty"),
        (b"a,b\n", "has columns but no rows"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 cells, the header has 2"),
        (b"a,a\n1,2\n", "two columns are called 'a'"),
        (b"a,b\n1,\xff\xfe\n", "t.csv: "),
    ],
)
def test_broken_files_say_what_is_wrong(tmp_path, content, said):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        open_table(str(path)).read()
    assert said in str(error.value)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.npz"])
def test_wrong_content_under_a_suffix(tmp_path, name):
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"is not an? (Parquet|Arrow|NPZ)"):
        open_table(str(tmp_path / name))


def test_a_missing_file_and_a_folder_are_usage_errors(tmp_path):
    for path in (tmp_path / "no.csv", tmp_path):
        with pytest.raises(UsageError):
            open_table(str(path))


def test_a_table_without_header_gets_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n")
    source = open_table(str(path))
    assert source.headless
    assert source.names == ("x0", "x1")
    np.testing.assert_array_equal(source.read().numbers("x0"), [1.0, 3.0])


# -- features and views ----------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,city,when\n1,Rome,2020-01-01\n2,Paris,2020-01-02\n3,Rome,2020-01-03\n")
    return open_table(str(path)).read()


def test_text_columns_are_named_and_refused(mixed):
    with pytest.raises(DataError, match=r"'city', 'when' are not numeric.*--drop.*--encode"):
        choose_features(mixed, list(mixed.columns), [], [])


def test_encoded_columns_are_found_again_by_name(mixed):
    features = choose_features(mixed, list(mixed.columns), ["when"], ["city"])
    names = [feature.name for feature in features]
    assert names == ["age", "city=Paris", "city=Rome"]
    found = features_of_model(names, 3, tuple(mixed.columns), "t.csv", [])
    assert found == features
    np.testing.assert_array_equal(matrix(mixed, found), [[1, 0, 1], [2, 1, 0], [3, 0, 1]])


def test_a_column_name_with_an_equals_sign_is_found(mixed):
    found = features_of_model(["a=b=c"], 1, ("a=b", "x"), "t.csv", [])
    assert found == [Feature("a=b", "c")]


def test_missing_columns_are_named():
    with pytest.raises(DataError, match=r"lacks 'b', 'd'"):
        features_of_model(["a", "b", "d"], 3, ("a", "c"), "t.csv", [])


def test_views_by_pattern_and_by_file(tmp_path):
    file = tmp_path / "views.toml"
    file.write_text('[views]\ncolour = ["col_*"]\nsize = "w"\n')
    views = read_views(str(file), ["size=h,d", "rest=x?"])
    assert views == {"colour": ["col_*"], "size": ["w", "h", "d"], "rest": ["x?"]}
    columns = view_columns(views, ["col_r", "col_g", "w", "h", "d", "x1"])
    assert columns == {"colour": ["col_r", "col_g"], "size": ["w", "h", "d"], "rest": ["x1"]}


@pytest.mark.parametrize("option", ["colour", "=a", "colour=", "colour=,"])
def test_a_malformed_view_says_what_is_expected(option):
    with pytest.raises(UsageError, match="NAME=PATTERN"):
        read_views(None, [option])


def test_a_pattern_that_matches_nothing_is_an_error():
    with pytest.raises(UsageError, match=r"no column matches 'z\*'"):
        view_columns({"v": ["z*"]}, ["a", "b"])

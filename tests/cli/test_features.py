"""Columns of models without a table, and views and kinds from options."""

from __future__ import annotations

import time

import pytest

from kernull.cli._console import DataError, UsageError
from kernull.cli._settings import features_of_model, read_kinds, read_views


def test_a_column_called_k_equals_5_is_no_category_of_k():
    with pytest.raises(DataError, match="lacks 'k=5'"):
        features_of_model(["k=5", "x"], 2, ("k", "x"), "t.csv", [])
    assert features_of_model(["k=5"], 1, ("k", "k=5"), "t.csv", []) == ["k=5"]


def test_missing_columns_are_named():
    with pytest.raises(DataError, match=r"lacks 'b', 'd'"):
        features_of_model(["a", "b", "d"], 3, ("a", "c"), "t.csv", [])


def test_many_columns_are_found_in_time():
    """20,000 columns took 137 s."""
    names = [f"c{i}" for i in range(20_000)]
    started = time.perf_counter()
    assert len(features_of_model(names, 20_000, names[::-1], "t.csv", ["c7"][:0])) == 20_000
    assert time.perf_counter() - started < 2.0


def test_views_by_pattern_and_by_file(tmp_path):
    file = tmp_path / "views.toml"
    file.write_text('[views]\ncolour = ["col_*"]\nsize = "w"\n')
    views = read_views(str(file), ["size=h,d", "rest=x?"])
    assert views == {"colour": ["col_*"], "size": ["w", "h", "d"], "rest": ["x?"]}


@pytest.mark.parametrize("option", ["colour", "=a", "colour=", "colour=,"])
def test_a_malformed_view_says_what_is_expected(option):
    with pytest.raises(UsageError, match="NAME=PATTERN"):
        read_views(None, [option])


def test_kinds_from_options():
    kinds = read_kinds(["a=b=category", "n*=number"], ["x"], ["y"])
    assert kinds == {"a=b": "category", "n*": "number", "y": "category", "x": "left out"}
    with pytest.raises(UsageError, match="PATTERN=KIND"):
        read_kinds(["category"], [], [])

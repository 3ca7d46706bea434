"""Columns of models without a table, and views and kinds from options."""

from __future__ import annotations

import time

import numpy as np
import pytest

from kernull.cli._console import DataError, UsageError
from kernull.cli._settings import Feature, features_of_model, matrix, read_kinds, read_views
from kernull.tables import Table


@pytest.fixture
def mixed():
    return Table("t.csv", 0, {"age": ["1", "2", "3"], "city": ["Rome", "Paris", "Rome"]})


def test_encoded_columns_of_old_models_are_found_by_name(mixed):
    found = features_of_model(["age", "city=Paris", "city=Rome"], 3, mixed.names, "t.csv", [])
    assert found == [Feature("age"), Feature("city", "Paris"), Feature("city", "Rome")]
    X, bad = matrix(mixed, found, ["age", "city"])
    np.testing.assert_array_equal(X, [[1, 0, 1], [2, 1, 0], [3, 0, 1]])
    assert bad.shape == (3, 2)
    assert not bad.any()


def test_a_column_name_with_an_equals_sign_is_found():
    found = features_of_model(["a=b=c", "a=b=d"], 2, ("a=b", "x"), "t.csv", [])
    assert found == [Feature("a=b", "c"), Feature("a=b", "d")]


def test_a_number_called_k_equals_5_is_no_category_of_k():
    """It was read as category 5 of k, and every row was flagged."""
    with pytest.raises(DataError, match="lacks 'k=5'"):
        features_of_model(["k=5", "x"], 2, ("k", "x"), "t.csv", [])
    assert features_of_model(["k=5"], 1, ("k", "k=5"), "t.csv", []) == [Feature("k=5")]


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

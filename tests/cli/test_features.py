"""Views and kinds from options."""

from __future__ import annotations

import pytest

from kernull.cli._console import UsageError
from kernull.cli._settings import read_kinds, read_views


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

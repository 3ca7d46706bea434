"""Views and kinds from options and files."""

from __future__ import annotations

import pytest

from kernull.cli._learn import parameters
from kernull.cli._options import Parameters


def test_views_by_pattern(tmp_path):
    views = parameters(Parameters(view=["size=h,d", "rest=x?", "size=w"]))["views"]
    assert views == {"size": ["h", "d", "w"], "rest": ["x?"]}
    assert parameters(Parameters(view=['one="p, bar",r']))["views"] == {"one": ["p, bar", "r"]}


@pytest.mark.parametrize("option", ["colour", "=a", "colour=", "colour=,"])
def test_a_malformed_view_names_what_is_expected(option):
    with pytest.raises(ValueError, match="NAME=PATTERN"):
        parameters(Parameters(view=[option]))


def test_kinds_from_options_and_a_file(tmp_path):
    (tmp_path / "fit.toml").write_text('[kinds]\ny = "category"\nx = "number"\n')
    asked = Parameters(config=str(tmp_path / "fit.toml"), kind=["a=b=category"], drop=["x"])
    assert parameters(asked)["kinds"] == {"a=b": "category", "y": "category", "x": "left out"}
    with pytest.raises(ValueError, match="PATTERN=KIND"):
        parameters(Parameters(kind=["category"]))


def test_values_are_those_of_toml_and_texts_otherwise():
    asked = parameters(Parameters(set=["p=inf", "widths=[1, 2.5]", "decision=sum", "empty=['-9']"]))
    assert asked == {"p": float("inf"), "widths": [1, 2.5], "decision": "sum", "empty": ["-9"]}

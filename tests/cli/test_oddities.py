"""Tables, names and places that are unusual and yet common."""

from __future__ import annotations

import json
import os
import threading

import numpy as np
import pytest

from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv

ODD = ["size [cm]", "[/]", "温度[c]", "star*", "b"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    write_csv(folder / "train.csv", ODD, make_rows(60, 0))
    done = kernull(
        "fit", "train.csv", "-o", "m.kernull", "--view", "x=size [cm]", "--view", "y=[/],温度[c]",
        "--view", "z=star*,b", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_brackets_in_names_are_no_patterns_and_no_markup(odd):
    done = kernull("fit", "train.csv", "-o", "f.kernull", "--views", "features", cwd=odd)
    assert done.returncode == 0, done.stderr
    shown = kernull("info", "f.kernull", cwd=odd).stdout
    assert all(name in done.stdout and name in shown for name in ODD)
    kept = kernull("score", "m.kernull", "train.csv", "--keep", "size [cm]", cwd=odd).stdout
    assert kept.startswith("row,size [cm],score")


def test_blank_lines_do_not_end_a_table(tables):
    lines = (tables / "new.csv").read_text().splitlines()
    (tables / "gaps.csv").write_text("\n".join([*lines[:4], "", "", *lines[4:]]) + "\n")
    plain = kernull("score", "model.kernull", "new.csv", cwd=tables).stdout
    for chunk in ("1", "2", "20000"):
        found = kernull("score", "model.kernull", "gaps.csv", "--chunk-rows", chunk, cwd=tables)
        assert found.stdout.count("\n") == plain.count("\n") == 41


@pytest.mark.parametrize("name", ["score", "row", "flag", "p", "view", "remarks"])
def test_columns_that_the_output_has_itself_are_not_kept(tables, name):
    write_csv(tables / "own.csv", [*COLUMNS, name], np.column_stack([make_rows(5, 1), np.ones(5)]))
    done = kernull("score", "model.kernull", "own.csv", "--keep", name, cwd=tables)
    assert done.returncode == 2
    assert f"--keep: the output has a column '{name}' too" in done.stderr


@pytest.mark.parametrize(
    "command", [["fit", "labelled.csv", "-o", "n.kernull"], ["report", "model.kernull", "new.csv"]]
)
def test_a_normal_label_needs_a_column(tables, command):
    done = kernull(*command, "--normal", "good", cwd=tables)
    assert done.returncode == 2
    assert "--normal: got 'good' without --label" in done.stderr
    assert not (tables / "n.kernull").exists()


def test_a_link_stays_a_link(tables):
    for name, command in {
        "page.html": ["report", "model.kernull", "new.csv"],
        "linked.kernull": ["fit", "train.csv"],
    }.items():
        link = tables / f"link-{name}"
        link.symlink_to(name)
        assert kernull(*command, "-o", link.name, cwd=tables).returncode == 0
        assert link.is_symlink()
        assert (tables / name).stat().st_size > 1000


def test_a_pipe_gets_the_content(tables):
    pipe, got = tables / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert kernull("report", "model.kernull", "new.csv", "-o", "pipe", cwd=tables).returncode == 0
    reader.join(timeout=30)
    assert got[0].rstrip().endswith("</html>")


def test_values_that_overflow_are_flagged_and_ranked(tables):
    fit = ["fit", "train.csv", "-o", "poly.kernull", "--set", "kernels=polynomial"]
    assert kernull(*fit, cwd=tables).returncode == 0
    write_csv(tables / "huge.csv", COLUMNS, [[1e200, -1e200, 1e200, 1e200, -1e200], [0.0] * 5])
    for command in ("score", "explain"):
        done = kernull(command, "poly.kernull", "huge.csv", "--json", cwd=tables)
        assert done.returncode == 0, done.stderr
        assert "NaN" not in done.stdout
        assert "Infinity" not in done.stdout
    lines = kernull("score", "poly.kernull", "huge.csv", "--json", cwd=tables).stdout.splitlines()
    first = json.loads(lines[0])
    assert first["score"] < -1e6  # evidence has no end, and is a number
    assert first["flag"] == 1


def test_a_header_may_span_lines(tables):
    lines = (tables / "train.csv").read_text().splitlines()
    header = '"col_r","col_g","col\nb",width,height'
    (tables / "tall.csv").write_text("\n".join([header, *lines[1:]]) + "\n")
    done = kernull("fit", "tall.csv", "-o", "tall.kernull", "--views", "features", cwd=tables)
    assert done.returncode == 0, done.stderr
    assert "col b" in done.stdout
    (tables / "tall.csv").write_text("\n".join([header, *lines[1:4], "1,2,x,4,5"]) + "\n")
    done = kernull("score", "tall.kernull", "tall.csv", cwd=tables)
    assert "row 4 (line 6) is not judged: in col b, 'x' is not a number" in done.stderr


@pytest.mark.parametrize("command", [
    ["fit", "train.csv", "-o", "x.kernull", "--label", "widht"],
    ["fit", "train.csv", "-o", "x.kernull", "--drop", "widht"],
    ["fit", "train.csv", "-o", "x.kernull", "--kind", "widht=category"],
    ["fit", "train.csv", "-o", "x.kernull", "--view", "a=widht"],
    ["score", "model.kernull", "new.csv", "--keep", "widht"],
    ["score", "model.kernull", "new.csv", "--drop", "widht"],
    ["explain", "model.kernull", "new.csv", "--id", "widht"],
    ["report", "model.kernull", "new.csv", "--id", "widht"],
    ["evaluate", "model.kernull", "new.csv", "--label", "widht"],
], ids=lambda command: f"{command[0]} {command[-2]}")  # fmt: skip
def test_a_column_by_a_wrong_name_is_met_by_the_right_one(tables, command):
    done = kernull(*command, cwd=tables)
    assert done.returncode == 2, done.stderr
    said = done.stderr.splitlines()[-1]
    assert "'widht' (did you mean 'width'?)" in said
    assert "'col_r', 'col_g', 'col_b', 'width', 'height'" in said


@pytest.mark.parametrize("command", [
    ["score", "-o", "out.csv"], ["score", "-o", "out.csv", "--chunk-rows", "30"],
    ["explain", "--flagged"], ["report", "-o", "out.html"],
])  # fmt: skip
def test_rows_that_were_learned_from_are_told(tables, command):
    """None of them is flagged, and nothing said why."""
    said = "warning: these are the rows that the model learned from."
    for data, learned in (("train.csv", True), ("new.csv", False)):
        done = kernull(command[0], "model.kernull", data, *command[1:], cwd=tables)
        assert done.returncode == 0, done.stderr
        assert (said in done.stderr) == learned
        assert "fit_predict" not in done.stderr


def test_a_text_for_nothing_that_no_cell_has_is_told(tables):
    done = kernull("fit", "train.csv", "-o", "x.kernull", "--empty", "nix", cwd=tables)
    assert "train.csv: --empty: no cell is 'nix'." in done.stderr
    written = f"{make_rows(30, 1)[2, 0]}000"  # the number of a cell, written longer
    done = kernull("score", "model.kernull", "new.csv", "--empty", written, cwd=tables)
    assert done.stdout.splitlines()[3].endswith("empty: col_r")

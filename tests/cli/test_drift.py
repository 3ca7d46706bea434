"""kernull score --drift: one line on all rows together."""

from __future__ import annotations

import json

import pytest

from kernull.explain import drift
from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv


@pytest.fixture(scope="module")
def batches(tables):
    """Rows that have not changed, and rows of which one column is 2.5 deviations higher."""
    write_csv(tables / "same.csv", COLUMNS, make_rows(200, 11))
    moved = make_rows(200, 12)
    moved[:, 3] += 2.5
    write_csv(tables / "moved.csv", COLUMNS, moved)
    return tables


def found(folder, data, *options):
    done = kernull(
        "score", "model.kernull", data, "-o", "s.csv", "--drift", "--json", *options, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["drift"]


def test_rows_that_have_not_changed(batches):
    drift = found(batches, "same.csv")
    assert drift["drifted"] is False
    assert drift["p_value"] > 0.01
    assert (drift["rows"], drift["left_out_rows"], drift["columns"]) == (200, 80, [])
    assert drift["words"].startswith("No drift: taken together, these 200 rows rank among")


def test_rows_that_have(batches):
    drift = found(batches, "moved.csv")
    assert drift["drifted"] is True
    assert drift["p_value"] < 0.01
    assert [column["column"] for column in drift["columns"]] == ["width"]
    assert drift["low"] > 2 * drift["low_expected"]
    words = drift["words"]
    assert words.startswith("Drift: taken together, these 200 rows rank lower among 80 left-out")
    assert "Moved most: width (median 2." in words


def test_chunks_and_a_sample_change_little(batches, monkeypatch):
    whole = found(batches, "moved.csv")
    parts = found(batches, "moved.csv", "--chunk-rows", "7")
    assert parts == {**whole, "p_value": pytest.approx(whole["p_value"])}
    monkeypatch.setattr(drift, "SAMPLE", 60)
    few = found(batches, "moved.csv", "--chunk-rows", "7")
    assert few["p_value"] == parts["p_value"]  # of all rows
    assert [column["column"] for column in few["columns"]] == ["width"]


def test_the_line_is_a_result(batches):
    """Where the rows go to standard output it must not stand among them; -q does not hide it."""
    to_file = kernull("score", "model.kernull", "moved.csv", "-o", "s.csv", "--drift", "-q",
                      cwd=batches)  # fmt: skip
    assert to_file.stdout.startswith("Drift: ")
    assert to_file.stdout.count("\n") == 1
    assert to_file.stderr == ""
    piped = kernull("score", "model.kernull", "moved.csv", "--drift", "-q", cwd=batches)
    assert piped.stderr == to_file.stdout
    assert len(piped.stdout.splitlines()) == 201
    lines = kernull("score", "model.kernull", "moved.csv", "--drift", "--json", cwd=batches).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    assert len(rows) == 201
    assert rows[-1]["drift"]["words"] == to_file.stdout.rstrip()
    plain = kernull("score", "model.kernull", "moved.csv", "-q", cwd=batches)
    assert plain.stderr == ""


def test_rows_without_a_rank_are_left_aside(batches):
    lines = (batches / "same.csv").read_text().splitlines()
    (batches / "torn.csv").write_text("\n".join([*lines[:101], "1,x,3,4,5", "1,2", ",,,,"]) + "\n")
    assert found(batches, "torn.csv")["rows"] == 101
    (batches / "none.csv").write_text("\n".join([lines[0], "1,x,3,4,5"]) + "\n")
    none = found(batches, "none.csv")
    assert none == {"drifted": None, "words": "Drift: no row was judged."}


def test_a_missing_view_has_ranks_of_its_own(batches):
    """Without the view that moved, the rest is as it was."""
    drift = found(batches, "moved.csv", "--missing-view", "size")
    assert drift["drifted"] is False
    assert drift["rows"] == 200


def emptied(lines, column, rows):
    """Lines of a CSV file with a column empty in the first rows."""
    cut = [line.split(",") for line in lines[1 : rows + 1]]
    gone = [",".join([*cells[:column], "", *cells[column + 1 :]]) for cells in cut]
    return "\n".join([lines[0], *gone, *lines[rows + 1 :]]) + "\n"


@pytest.mark.parametrize("rows", [100, 200])
def test_a_column_that_is_empty_has_moved(batches, rows):
    """Filled in by the other columns it ranks as normal rows do, and has no values to compare."""
    lines = (batches / "same.csv").read_text().splitlines()
    (batches / "empty.csv").write_text(emptied(lines, 3, rows))
    drift = found(batches, "empty.csv")
    assert drift["drifted"] is True
    assert drift["columns"][0]["column"] == "width"
    assert drift["columns"][0]["distance"] == rows / 200
    assert (
        f"width (empty: {rows / 2:.0f}% of the rows, 0% in training; size {rows / 200:.2f})"
        in drift["words"]
    )


def test_a_column_of_rows_that_cannot_be_judged_has_moved(batches):
    assert kernull("fit", "train.csv", "-o", "two.kernull", "--drop", "col_*", "--drop", "height",
                   cwd=batches).returncode == 0  # fmt: skip
    lines = (batches / "same.csv").read_text().splitlines()
    (batches / "void.csv").write_text(emptied(lines, 3, 200))
    done = kernull("score", "two.kernull", "void.csv", "-o", "s.csv", "--drift", cwd=batches)
    assert "width (empty: 100% of the rows, 0% in training; size 1.00)" in done.stdout


@pytest.mark.parametrize("known", [10, 80])
def test_rows_that_were_learned_from_give_no_verdict(batches, known):
    """They rank above all that is new: some of them hide that the others have moved."""
    old = (batches / "train.csv").read_text().splitlines()[: known + 1]
    new = (batches / "moved.csv").read_text().splitlines()[1:101]
    (batches / "mixed.csv").write_text(
        "\n".join([old[0], *new[:50], *old[:0:-1], *new[50:]]) + "\n"
    )
    drift = found(batches, "mixed.csv")
    assert (drift["drifted"], drift["p_value"], drift["learned_rows"]) == (None, None, known)
    said = f"Drift: unknown, since {known} of these {100 + known} rows are among those"
    assert drift["words"].startswith(said)
    part = found(batches, "mixed.csv", "--missing-view", "size")
    assert part["learned_rows"] == known


def test_a_few_rows_that_were_learned_from_leave_the_verdict(batches):
    old = (batches / "train.csv").read_text().splitlines()[:4]
    new = (batches / "moved.csv").read_text().splitlines()[1:]
    (batches / "few.csv").write_text("\n".join([*old, *new]) + "\n")
    drift = found(batches, "few.csv")
    assert (drift["drifted"], drift["learned_rows"]) == (True, 3)

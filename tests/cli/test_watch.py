"""Following rows as they come, and the test that notices drift."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from kernull.cli._drift import DriftTest
from tests.cli.conftest import COLUMNS, environment, kernull, make_rows, write_csv


def run_length(test: DriftTest, draw, most: int) -> int:
    return next((t for t in range(1, most + 1) if test.see(draw())), most)


def test_false_alarms_are_as_rare_as_stated():
    """Mean run length at least A while nothing changes; runs are cut, which only shortens them."""
    rng = np.random.default_rng(0)
    A = 100
    lengths = [
        run_length(DriftTest(rng.normal(size=50), A, seed), rng.normal, 20 * A)
        for seed in range(150)
    ]
    error = np.std(lengths) / np.sqrt(len(lengths))
    assert np.mean(lengths) + 2 * error > A


@pytest.mark.parametrize("shift", [-1.0, 1.5])
def test_drift_is_noticed_soon(shift):
    rng = np.random.default_rng(1)
    test = DriftTest(rng.normal(size=500), 10_000)
    quiet = [test.see(score) for score in rng.normal(size=300)]
    assert not any(quiet)
    assert run_length(test, lambda: rng.normal() + shift, 1000) < 150


def test_many_flags_are_noticed_too():
    rng = np.random.default_rng(2)
    test = DriftTest(rng.normal(size=500), 10_000)
    draw = lambda: rng.normal() - 6.0 * (rng.random() < 0.15)  # noqa: E731
    assert run_length(test, draw, 2000) < 400


def test_ties_and_nothing_raise_no_alarm():
    test = DriftTest([0.0] * 100, 1000)
    assert not any(test.see(0.0) for _ in range(500))
    assert not test.see(float("nan"))


def test_a_file_is_followed_to_its_end(tables):
    done = kernull("watch", "model.kernull", "new.csv", "--until-end", "--json", cwd=tables)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    flagged = {event["row"] for event in events if event["event"] == "row"}
    want = json.loads(
        kernull("explain", "model.kernull", "new.csv", "--flagged", "--json", cwd=tables).stdout
    )
    assert flagged == {record["row"] for record in want}
    assert flagged & set(range(31, 41))
    assert "40 rows" in done.stderr


def test_standard_input_in_words_and_drift(tables):
    rows = np.vstack([make_rows(20, 5), make_rows(60, 6, shift=6.0)])
    write_csv(tables / "drifting.csv", COLUMNS, rows)
    content = (tables / "drifting.csv").read_bytes()
    done = kernull(
        "watch", "model.kernull", "-", "--alarm-every", "1000", cwd=tables, stdin=content
    )
    assert done.returncode == 0, done.stderr
    assert "DRIFT at row" in done.stdout
    assert "false at most once in 1,000 rows" in done.stdout
    assert "is usual for rows like this" in done.stdout
    flagged = [line for line in done.stdout.splitlines() if ": flagged" in line]
    assert all("unusual" in line and "p = " not in line for line in flagged)  # as explain says it
    everything = kernull("watch", "model.kernull", "-", "--every-row", cwd=tables, stdin=content)
    assert everything.stdout.count("row ") >= 80


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_rows_are_judged_as_they_are_written(tables):
    path = tables / "growing.csv"
    lines = (tables / "new.csv").read_text().splitlines()
    path.write_text(lines[0] + "\n" + lines[1][:5])  # a row that is not ended yet
    child = subprocess.Popen(
        [sys.executable, "-m", "kernull.cli", "watch", "model.kernull", "growing.csv",
         "--every-row", "--interval", "0.05"],
        cwd=tables, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with path.open("a") as file:
        file.write(lines[1][5:] + "\n" + "9,9,9,9,9\n")
    assert child.stdout.readline().startswith("row 1: normal")
    assert child.stdout.readline().startswith("row 2: flagged")
    time.sleep(0.1)
    child.send_signal(2)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, "2 rows, 1 flagged" in said) == (0, True)


@pytest.mark.parametrize(
    ("args", "said"), [(["no.csv"], "no such file"), (["model.kernull"], "CSV files only"),
                       (["new.csv", "--id", "nope", "--until-end"], "no column 'nope'")]
)  # fmt: skip
def test_what_cannot_be_watched(tables, args, said):
    done = kernull("watch", "model.kernull", *args, cwd=tables)
    assert (done.returncode, said in done.stderr) == (2, True)


# -- cells and lines that cannot be read -----------------------------------------------------

#: Rows after a header of five columns: odd, unreadable, too short, odd.
SPOILT = "9,9,9,0,0\n0,x,0,inf,0\n0,0,0\n9,9,9,0,0\n"


def test_unreadable_rows_do_not_end_the_watch(tables):
    path, state = tables / "spoilt.csv", tables / "spoilt.json"
    path.write_text(",".join(COLUMNS) + "\n" + SPOILT)
    call = ("watch", "model.kernull", "spoilt.csv", "--until-end", "--state", "spoilt.json")
    done = kernull(*call, cwd=tables)
    assert done.returncode == 0
    rows = done.stdout.splitlines()
    assert [row[:15] for row in (rows[0], rows[3])] == ["row 1: flagged:", "row 4: flagged:"]
    assert rows[1:3] == [
        "row 2: not judged: in col_g, 'x' is not a number, in width, 'inf' is not a finite number",
        "row 3: not judged: line 4 has 3 cells, the header has 5",
    ]
    for said in (
        "spoilt.csv: column 'col_g', row 2 (line 3): 'x' is not a number; the row is not judged.",
        "spoilt.csv: line 4 has 3 cells, the header has 5; the row is not judged.",
        "4 rows, 4 flagged (2 of them not judged)",
    ):
        assert said in done.stderr
    assert json.loads(state.read_text())["rows"] == 4
    with path.open("a") as file:
        file.write("0,0,0,0,y\n")
    again = kernull(*call, "--json", cwd=tables)  # lines count on from the first call
    assert "column 'height', row 5 (line 6): 'y' is not a number" in again.stderr
    assert "5 rows, 5 flagged (3 of them not judged)" in again.stderr
    event = json.loads(again.stdout)
    assert (event["score"], event["not_judged"]) == (None, "in height, 'y' is not a number")


def test_unreadable_rows_are_not_scored(tables):
    (tables / "spoilt2.csv").write_text(",".join(COLUMNS) + "\n" + SPOILT)
    done = kernull("score", "model.kernull", "spoilt2.csv", "--chunk-rows", "2", cwd=tables)
    assert done.returncode == 0
    assert "4 of 4 rows flagged (100.0%), 2 of them not judged." in done.stderr
    assert "column 'col_g', row 2 (line 3): 'x' is not a number" in done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(",")[1] == "nan" for line in lines[1:]] == [False, True, True, False]
    why = kernull("explain", "model.kernull", "spoilt2.csv", "--row", "2", cwd=tables)
    assert why.stdout.startswith("row 2: flagged, not judged: in col_g, 'x' is not a number")
    assert "(line 3): 'x' is not a number; the row is not judged." in why.stderr
    labelled = ",".join(COLUMNS) + ",y\n9,9,9,0,0,-1\n0,x,0,inf,0,1\n"
    (tables / "spoilt4.csv").write_text(labelled)
    judged = kernull("evaluate", "model.kernull", "spoilt4.csv", "--label", "y", cwd=tables)
    assert "(line 3): 'x' is not a number; the row is not judged." in judged.stderr
    summary = kernull("score", "model.kernull", "spoilt2.csv", "-o", "s.tsv", "--json", cwd=tables)
    assert json.loads(summary.stdout)["not_judged"] == 2
    page = kernull("report", "model.kernull", "spoilt2.csv", "-o", "spoilt.html", cwd=tables)
    assert (page.returncode, "line 4 has 3 cells" in page.stderr) == (1, True)
    strict = kernull("score", "model.kernull", "spoilt2.csv", "--missing", "error", cwd=tables)
    assert strict.returncode == 1
    assert "complete or remove" in strict.stderr


def test_messages_name_options_that_the_command_has(tables):
    """Python's words for parameters become options; scoring has no --kind."""
    lines = (tables / "train.csv").read_text().splitlines()
    (tables / "bad.csv").write_text("\n".join([*lines, "1,2,x,4,5"]) + "\n")
    fit = kernull("fit", "bad.csv", "-o", "bad.kernull", cwd=tables)
    assert "(--drop 'col_b')" in fit.stderr
    assert "(--empty 'x'), or say what the column is: --kind 'col_b=category'." in fit.stderr
    score = kernull("score", "model.kernull", "bad.csv", "--missing", "error", cwd=tables)
    assert score.stderr.endswith("'x' is not a number; correct it, or leave the cell empty.\n")
    (tables / "less.csv").write_text("col_r\n1\n")
    less = kernull("score", "model.kernull", "less.csv", cwd=tables)
    assert "To do without, use --drop NAME." in less.stderr


def test_a_model_without_a_table_goes_on_too(tables):
    import pandas

    from kernull import MultiKernelFisherNull, save

    save(MultiKernelFisherNull().fit(pandas.read_csv(tables / "train.csv")), tables / "a.kernull")
    (tables / "spoilt3.csv").write_text(",".join(COLUMNS) + "\n" + SPOILT + "0,0,,0,0\n")
    done = kernull("score", "a.kernull", "spoilt3.csv", cwd=tables)
    assert "5 of 5 rows flagged (100.0%), 3 of them not judged." in done.stderr
    strict = kernull("score", "a.kernull", "spoilt3.csv", "--missing", "error", cwd=tables)
    assert strict.returncode == 1


def test_json_lines_are_not_followed(tables):
    done = kernull("watch", "model.kernull", "-", cwd=tables, stdin=b'{"a": 1}\n{"a": 2}\n')
    assert done.returncode == 1
    assert "standard input: is JSON, which watch cannot follow" in done.stderr

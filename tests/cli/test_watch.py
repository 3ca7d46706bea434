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

"""What a fit shows while it learns, and how much of a table and a machine it takes."""

from __future__ import annotations

import json
import os
import re
import time

import numpy as np
import pytest

from kernull.cli import _learn
from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv


def test_a_sample_a_storage_and_cores(tables, tmp_path):
    out = str(tmp_path / "model.kernull")
    result = kernull(
        "fit", "train.csv", "-o", out, "--sample", "40", "--storage", "tiled", "--jobs", "1",
        "--json", cwd=tables,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["training_rows"] == 40
    assert said["parameters"]["storage"] == "tiled"


def test_rows_in_time_are_left_out_by_stretches(tmp_path):
    rows, x = ["a,b,c,d"], np.zeros(4)
    rng = np.random.default_rng(0)
    for _ in range(240):
        x = 0.9 * x + rng.normal(size=4)
        rows.append(",".join(f"{value:.4f}" for value in x))
    (tmp_path / "log.csv").write_text("\n".join(rows))
    rates = []
    for more in ([], ["--stretch", "40"]):
        result = kernull("fit", "log.csv", "-o", "m.kernull", "--json", *more, cwd=tmp_path)
        assert ("--stretch" in result.stderr) == (not more), result.stderr
        assert "groups=" not in result.stderr
        assert "--false-alarm-rate" in result.stderr
        rates.append(json.loads(result.stdout)["false_alarm_rate"])
    assert rates == [0.05, pytest.approx(1 / 7)]  # six stretches count as six rows
    refused = kernull(
        "fit", "log.csv", "-o", "m.kernull", "--stretch", "40", "--sample", "90", cwd=tmp_path
    )
    assert refused.returncode == 2
    assert "--sample" in refused.stderr
    refused = kernull("fit", "log.csv", "-o", "m.kernull", "--stretch", "49", cwd=tmp_path)
    assert refused.returncode == 2
    assert "at most 48" in refused.stderr


def test_a_file_of_options_may_say_how_many_rows(tables, tmp_path):
    (tmp_path / "fit.toml").write_text('sample = 30\nstorage = "dense"\n')
    result = kernull(
        "fit", "train.csv", "-o", str(tmp_path / "model.kernull"), "--json",
        "--config", str(tmp_path / "fit.toml"), cwd=tables,
    )  # fmt: skip
    assert json.loads(result.stdout)["training_rows"] == 30, result.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [(["--storage", "disk"], "--storage: got 'disk'"), (["--sample", "1"], "--sample")],
)
def test_nonsense_is_refused_by_option(options, named, tables, tmp_path):
    out = str(tmp_path / "model.kernull")
    result = kernull("fit", "train.csv", "-o", out, *options, cwd=tables)
    assert result.returncode == 2
    assert named in result.stderr


def test_lines_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_learn, "EVERY", 0.05)
    with _learn.learning("Learning from 9 rows", quiet=False):
        time.sleep(0.2)
    assert "Learning from 9 rows: 0 s so far." in capsys.readouterr().err
    with _learn.learning("Learning from 9 rows", quiet=True):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_cores_are_given_back(monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    with _learn.cores(1):
        assert os.environ["LOKY_MAX_CPU_COUNT"] == "1"
    assert "LOKY_MAX_CPU_COUNT" not in os.environ


def test_rows_that_lose_their_weight_are_told(tmp_path):
    rows = make_rows(60, 0)
    rows[[7, 40]] *= 9.0
    kinds = ["b"] * 5 + ["a"] * 55
    write_csv(tmp_path / "some.csv", [*COLUMNS, "kind"], np.column_stack([rows, kinds]))
    call = ("fit", "some.csv", "-o", "m.kernull", "--contamination", "0.04")
    labels = ("--label", "kind", "--normal", "a")
    told = kernull(*call, *labels, cwd=tmp_path).stderr
    assert "2 rows stand out and hardly count: 8, 41." in told
    assert "without rarity and evidence" in told
    one = kernull(*call[:-1], "0.02", cwd=tmp_path).stderr
    assert re.search(r"1 row stands out and hardly counts: \d+\.", one)
    many = kernull(*call[:-1], "0.3", cwd=tmp_path).stderr
    assert re.search(r"18 rows stand out .*: (\d+, ){11}\d+ and 6 more, which --json lists", many)
    assert json.loads(kernull(*call, *labels, "--json", cwd=tmp_path).stdout)["suspects"] == [8, 41]
    assert "suspects" not in kernull(*call, "--json", "--sample", "50", cwd=tmp_path).stdout
    assert "stand out" not in kernull(*call[:4], cwd=tmp_path).stderr

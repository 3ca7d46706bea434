"""What a fit tells of rows that follow each other, and of rows that lose their weight."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv


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
    refused = kernull("fit", "log.csv", "-o", "m.kernull", "--stretch", "49", cwd=tmp_path)
    assert refused.returncode == 2
    assert "at most a fifth" in refused.stderr


def test_rows_that_lose_their_weight_are_told(tmp_path):
    rows = make_rows(60, 0)
    rows[[7, 40]] *= 9.0
    kinds = ["b"] * 5 + ["a"] * 55
    write_csv(tmp_path / "some.csv", [*COLUMNS, "kind"], np.column_stack([rows, kinds]))
    call = ("fit", "some.csv", "-o", "m.kernull", "--set", "contamination=0.04")
    labels = ("--label", "kind", "--normal", "a")
    told = kernull(*call, *labels, cwd=tmp_path).stderr
    assert "Rows that stand out and hardly count, 2: 8, 41." in told
    one = kernull(*call[:-1], "contamination=0.02", cwd=tmp_path).stderr
    assert re.search(r"hardly count, 1: \d+\.", one)
    many = kernull(*call[:-1], "contamination=0.3", cwd=tmp_path).stderr
    assert re.search(r"hardly count, 18: (\d+, ){11}\d+ and 6 more, which --json lists", many)
    assert json.loads(kernull(*call, *labels, "--json", cwd=tmp_path).stdout)["suspects"] == [8, 41]
    assert "hardly" not in kernull(*call[:4], cwd=tmp_path).stderr

"""--quiet silences progress and remarks, never that a promise is not kept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernull.cli._console import _warnings_in_one_line
from kernull.errors import CannotFlagWarning, GapsWarning
from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv


def test_a_rate_that_cannot_be_kept_is_said(tables, tmp_path):
    fit = ("fit", "train.csv", "-o", str(tmp_path / "m.kernull"), "-q")
    done = kernull(*fit, "--false-alarm-rate", "0.0001", cwd=tables)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("warning: --false-alarm-rate 0.0001 needs at least 9999")
    assert "the lowest rate these can certify is 0.0123, which is used instead" in done.stderr
    kept = kernull(*fit, "--false-alarm-rate", "0.05", cwd=tables)
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "")


def test_rows_in_time_are_told(tmp_path):
    rng, x, rows = np.random.default_rng(0), np.zeros(5), []
    for _ in range(240):
        x = 0.9 * x + rng.normal(size=5)
        rows.append(x.round(4).tolist())
    write_csv(tmp_path / "log.csv", COLUMNS, rows)
    done = kernull("fit", "log.csv", "-o", "m.kernull", "-q", cwd=tmp_path)
    assert done.stderr.startswith("warning: rows next to each other are alike")
    assert "--stretch" in done.stderr
    assert done.stderr.count("\n") == 1


def test_rows_that_were_learned_from_are_told(tables):
    done = kernull("score", "model.kernull", "train.csv", "-q", cwd=tables)
    assert done.stderr.startswith("warning: these are the rows that the model learned from")


def test_what_was_done_to_the_rows_is_not(tmp_path):
    rows = make_rows(60, 0).astype(object)
    rows[3, 1] = ""
    write_csv(tmp_path / "gaps.csv", COLUMNS, rows)
    loud = kernull("fit", "gaps.csv", "-o", "m.kernull", cwd=tmp_path)
    assert "1 empty cell of the training rows" in loud.stderr
    assert kernull("fit", "gaps.csv", "-o", "m.kernull", "-q", cwd=tmp_path).stderr == ""


@pytest.mark.parametrize("category", [CannotFlagWarning, ConvergenceWarning])
def test_promises_of_every_kind(category, capsys):
    with _warnings_in_one_line(quiet=True):
        warnings.warn("this", category, stacklevel=2)
        warnings.warn("that", GapsWarning, stacklevel=2)
    assert capsys.readouterr().err == "warning: this\n"

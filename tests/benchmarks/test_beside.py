"""The default beside peers: the page follows from its table, and judges judge."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from benchmarks.beside import MEASURES, NAMES, RESULTS, Judge, means, page

ROWS = list(csv.DictReader((RESULTS / "beside.csv").read_text(encoding="utf-8").splitlines()))


def test_the_page_follows_from_its_table():
    text = (RESULTS / "beside.md").read_text(encoding="utf-8")
    command = re.search(r"`(python -m benchmarks\.beside[^`]*)`", text).group(1)
    assert page(ROWS, command) == text


def test_everybody_was_asked_everything():
    found = means(ROWS)
    assert set(found) == {(name, measure) for name in NAMES for measure in MEASURES}
    tables = {tuple(sorted(by)) for (_, measure), (_, by) in found.items() if measure == "alarms"}
    assert len(tables) == 1


def test_means_by_hand():
    rows = [
        {"entrant": "a", "measure": "alarms", "table": t, "value": v}
        for t, v in (("x", "0.1"), ("x", "0.3"), ("y", "0.2"))
    ]
    mean, by = means(rows)["a", "alarms"]
    assert mean == pytest.approx(0.2)
    assert by == pytest.approx({"x": 0.2, "y": 0.2})


@pytest.mark.parametrize("name", NAMES)
def test_judges_flag_what_is_far(name):
    if "PyOD" in name:
        pytest.importorskip("pyod", reason="pyod is not installed")
    rng = np.random.default_rng(0)
    X, far = rng.normal(size=(80, 4)), rng.normal(size=(5, 4)) + 50.0
    judge = Judge(name, X, {"all": [0, 1, 2, 3]}, 0)
    assert judge.flagged(far).all()
    assert judge.scores(far).max() < np.median(judge.scores(rng.normal(size=(40, 4))))
    assert judge.flagged(X[:-1]).mean() < 0.4

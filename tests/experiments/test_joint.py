"""E9-joint: what is drawn, and the page from a small run."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import e9_joint, reproduce
from experiments._tables import read_table


@pytest.fixture
def digits(rng, monkeypatch):
    """Two views of ten digits, of which one says which digit it is."""
    y = np.repeat(np.arange(10), 40)
    views = {"good": y[:, None] + 0.1 * rng.normal(size=(400, 2)), "bad": rng.normal(size=(400, 3))}
    monkeypatch.setattr(e9_joint, "_load", lambda name: (views, y))
    return y


@pytest.fixture
def small(monkeypatch):
    """The quick settings with few rows and parameters."""
    few = {"validation": 10, "test": 10, "ps": [1.0, 2.0], "deltas": [0.01], "enrol": [10]}
    found = {**e9_joint.settings(True), **few}
    experiment = replace(e9_joint.EXPERIMENT, settings=lambda quick: found)
    monkeypatch.setattr(e9_joint, "EXPERIMENT", experiment)
    return found


def test_no_row_is_learned_from_and_judged(digits, small, rng):
    data = e9_joint.draw("any", 5, small, rng)
    parts = [*data.train, data.validation, data.test]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts)) == 10 * 25
    assert [len(part) for part in data.train] == [5] * 10
    drawn = data.views["good"].mean(axis=1).round()
    np.testing.assert_array_equal(drawn[data.validation], data.of_validation)
    np.testing.assert_array_equal(drawn[data.test], data.of_test)
    for digit, rows in enumerate(data.train):
        assert (drawn[rows] == digit).all()


def test_from_rows_to_page(digits, small, tmp_path):
    (outcome,) = reproduce("E9-joint", quick=True, out=tmp_path)
    page = outcome.page.read_text(encoding="utf-8")
    assert (outcome.page.parent / "weights_multiple_features.png").is_file()
    assert "joint (exact) minus" in page
    rows = read_table(outcome.page.parent / "results.csv")
    rows = [row for row in rows if row["by"] == "any p"]
    assert {row["method"] for row in rows} == set(e9_joint.METHODS)
    auc = {m: np.mean([float(r["auc"]) for r in rows if r["method"] == m]) for m in
           e9_joint.METHODS}  # fmt: skip
    # One view says all, the other nothing: weights that are learned from all tasks find it.
    assert auc[e9_joint.JOINT] > auc[e9_joint.SEPARATE] > auc[e9_joint.EQUAL] > 0.8

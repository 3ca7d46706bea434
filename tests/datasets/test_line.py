"""The made-up production line."""

from __future__ import annotations

import csv
import tomllib

import numpy as np
import pytest

from kernull.datasets import make_line


@pytest.fixture(scope="module")
def line():
    return make_line()


def test_it_is_as_described(line):
    assert line.good.shape == (400, 15)
    assert line.new.shape == (300, 15)
    kinds, counts = np.unique(line.verdict, return_counts=True)
    assert dict(zip(kinds.tolist(), counts.tolist(), strict=True)) == {
        "ok": 276, "bearing": 6, "clogged filter": 6, "slipping belt": 6, "scratch": 6,
    }  # fmt: skip
    assert [name for names in line.views.values() for name in names] == list(line.columns)
    assert {view: len(range(15)[s]) for view, s in line.slices.items()} == {
        view: len(names) for view, names in line.views.items()
    }


def test_faults_are_values_that_do_not_belong_together(line):
    """A regression of torque on power sees a slipping belt that torque alone does not show."""
    power, torque = (line.columns.index(name) for name in ("power", "torque"))
    slope, level = np.polyfit(line.good[:, power], line.good[:, torque], 1)
    belt = line.new[line.verdict == "slipping belt"]
    left = np.abs(line.good[:, torque] - slope * line.good[:, power] - level)
    assert (np.abs(belt[:, torque] - slope * belt[:, power] - level) > left.max()).sum() >= 3
    low, high = np.quantile(line.good[:, torque], [0.01, 0.99])
    assert ((low < belt[:, torque]) & (belt[:, torque] < high)).sum() >= 4


def test_columns_of_the_camera_are_those_of_its_pictures(line):
    light = 100 * line.pictures.mean(axis=(1, 2))
    np.testing.assert_allclose(line.new[:, line.columns.index("light")], light, atol=1e-3)


def test_the_seed_makes_the_line(line):
    again, other = make_line(), make_line(random_state=1)
    np.testing.assert_array_equal(again.new, line.new)
    assert not np.array_equal(other.new, line.new)


def test_files(line, tmp_path):
    folder = line.write(tmp_path / "line")
    rows = list(csv.DictReader((folder / "new.csv").read_text().splitlines()))
    assert [row["part"] for row in rows] == line.parts
    assert [row["verdict"] for row in rows] == line.verdict.tolist()
    values = np.array([[float(row[name]) for name in line.columns] for row in rows])
    np.testing.assert_array_equal(values, line.new)
    assert len(list(csv.DictReader((folder / "good.csv").read_text().splitlines()))) == 400
    assert tomllib.loads((folder / "views.toml").read_text())["views"] == line.views

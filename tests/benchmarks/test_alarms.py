"""The alarm bench: fair draws, passing rules as written, cells that resume."""

import csv

import numpy as np
import pytest

from benchmarks.alarms import experiment, protocol, report
from benchmarks.alarms.__main__ import main
from benchmarks.alarms.cases import CASES, Case, named
from benchmarks.alarms.generators import emptied, outliers
from experiments._cells import generator
from kernull.detector.calibration import Calibration


def test_cases_are_many_and_have_different_names():
    quick = [case for case in CASES if not case.full]
    assert len({case.key for case in CASES}) == len(CASES)
    assert len(quick) >= 25
    assert all(case.n * max(case.tasks, 1) <= 1500 and case.d <= 400 for case in quick)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_every_case_draws_rows_of_its_size_from_one_population(case):
    if case.n * case.d > 10**5:
        case = Case(case.name, case.make, 50, 20, options=case.options, times=case.times)
    rng = generator("test", case.key)
    populations = case.populations(rng)
    X, weights, groups = case.training(rng, populations)
    new, tasks = case.test(populations, 100)
    assert X.shape == (case.n * max(case.tasks, 1), case.d)
    assert new.shape == (100, case.d)
    assert np.isfinite(X).all()
    assert np.isfinite(outliers(rng, new)).all()
    assert weights is None or len(weights) == len(X)
    assert (groups is None) == (case.times == 1 and not case.tasks)
    assert (tasks is None) == (not case.tasks)


def test_tables_are_read_with_their_categories_and_gaps():
    case = named("categories and gaps in training rows, 400 x 12")
    rng = generator("test", case.key)
    populations = case.populations(rng)
    X, _, _ = case.training(rng, populations)
    holes = np.isnan(emptied(rng, X, case.gaps[0]))
    assert 0.08 < holes.mean() < 0.12
    planted = case.outliers(rng, X)
    assert (planted[:, -2:] == X[:, -2:]).all()
    assert (planted[:, :-2] != X[:, :-2]).any(axis=1).all()
    model = case.fit(X, None, None, "cross")
    assert [column.kind for column in model.table.columns_] == ["number"] * 10 + ["category"] * 2
    assert (model.p_values(planted) <= 0.05).mean() > 0.9


def line(**changes):
    base = {"calibration": "cross", "n": 400, "discrete": False}
    for name, value in (("fdp", 0.08), ("rare", 0.001)):
        base |= {name: value, f"{name}_se": 0.01}
    for name, rate in (("10", 0.1), ("5", 0.05), ("1", 0.01)):
        base |= {f"rate_{name}": rate, f"se_{name}": 0.001, f"attainable_{name}": rate}
    return base | changes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"rate_5": 0.0649}, []),
        ({"rate_5": 0.0651}, ["5"]),
        ({"rate_5": 0.0299}, ["5"]),
        ({"rate_5": 0.0, "rate_10": 0.0, "rate_1": 0.0, "discrete": True}, []),
        ({"rate_5": 0.0699, "discrete": True}, []),
        ({"rate_5": 0.0701, "discrete": True}, ["5"]),
        ({"rate_5": 0.021, "n": 20}, []),
        ({"rate_5": 0.079, "n": 20}, []),
        ({"rate_5": 0.081, "n": 20}, ["5"]),
        ({"rate_5": 0.0, "n": 20}, ["5"]),
        ({"rate_5": 0.0, "attainable_5": 0.1, "discrete": True}, []),
        ({"rate_5": 0.021, "attainable_5": 0.04}, []),
        ({"rate_5": 0.056, "attainable_5": 0.04}, ["5"]),
        ({"rate_5": 0.067, "calibration": "split"}, []),
        ({"rate_5": 0.069, "calibration": "split"}, ["5"]),
        ({"rate_1": 0.021}, ["1"]),
        ({"rate_1": 0.05, "attainable_1": 0.04}, []),
        ({"rate_1": 0.0, "rate_10": 0.2}, []),
        ({"fdp": 0.131}, ["fdp"]),
        ({"fdp": 0.129}, []),
        ({"rare": 0.0031}, ["rare"]),
    ],
)
def test_the_bounds_are_those_of_the_protocol(changes, expected):
    assert report.misses(line(**changes)) == expected


def test_attainable_rates():
    counted, smooth = Calibration.of(np.arange(25.0)), Calibration.of(np.arange(25.0), smooth=True)
    assert experiment.attainable(0.05, counted) == pytest.approx(1 / 26)
    assert experiment.attainable(0.01, counted) == pytest.approx(1 / 26)
    assert experiment.attainable(0.05, smooth) == 0.05


def test_a_tiny_run_writes_table_csv_and_picture_and_resumes(tmp_path, capsys):
    arguments = ["--only", "Gaussian, 20 x 5", "joint, five tasks, 20 x 50", "--seeds", "2"]
    arguments += ["--jobs", "1", "--no-extras", "--out", str(tmp_path)]
    assert main(arguments) in (0, 2)
    shown = capsys.readouterr().out
    with (tmp_path / "alarms.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(r["case"], r["calibration"]) for r in lines] == [
        ("joint, five tasks, 20 x 50", "own"),
        ("Gaussian, 20 x 5", "cross"),
        ("Gaussian, 20 x 5", "split"),
    ]
    assert all(0 <= float(r["rate_5"]) <= float(r["rate_10"]) <= 1 for r in lines)
    assert (tmp_path / "alarms.png").stat().st_size > 5000
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert len(files) == 6
    main(["report", *arguments])
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == files
    assert capsys.readouterr().out == shown


def test_cells_depend_on_case_and_repeat_alone(tmp_path):
    wanted = experiment.cells(seeds=1, only=lambda key: key == "Gaussian, 20 x 5")[0]
    rows = [experiment.run(wanted, protocol.SETTINGS, tmp_path)[0] for _ in range(2)]
    for row in rows:
        del row["time_fit"]
    assert rows[0] == rows[1]
    assert rows[0]["n"] == named(wanted.data).n


def test_shifts_are_measured():
    shifts = experiment.shifted(units=(1e-3, 1e3), repeats=1)
    assert [s["unit"] for s in shifts] == [1e-3, 1e3]
    text = report.page([], [{"unit": 1.0, "flagged": 0.1}, {"unit": 2.0, "flagged": 0.9}])
    assert "**90.0%**" in text

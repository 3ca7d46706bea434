"""The runner: order and workers do not matter, failures cost only themselves."""

import json

import numpy as np
import pytest

from experiments import (
    EXPERIMENTS,
    Cell,
    CellsFailedError,
    Experiment,
    Store,
    _runner,
    load_experiment,
    main,
    reproduce,
    run_cells,
)
from experiments._cells import fingerprint, generator
from experiments._tables import markdown, mean_std, write_results
from experiments.datasets import DatasetNotFound


def toy(run, name="toy"):
    cells = [Cell(f"set {i}", "method", r) for i in range(3) for r in range(2)]
    return Experiment(
        name,
        "a toy",
        settings=lambda quick: {"quick": quick},
        cells=lambda settings, repeats: cells,
        run=run,
        report=lambda rows, settings, folder: f"{len(rows)} rows",
    ), cells


@pytest.fixture
def register(monkeypatch):
    """Let the runner find an experiment that is not in the package."""

    def add(experiment):
        monkeypatch.setattr(_runner, "load_experiment", lambda name: experiment)
        return experiment

    return add


def draw(cell, settings, folder):
    return [{"value": float(generator("toy", cell.data, cell.repeat).random())}]


def test_order_does_not_matter(tmp_path, register):
    experiment, cells = toy(draw)
    register(experiment)
    first = run_cells(experiment, cells, {}, tmp_path / "a").rows(cells)
    second = run_cells(experiment, cells[::-1], {}, tmp_path / "b").rows(cells)
    assert first == second
    assert len({row["value"] for row in first}) == len(cells)


def test_finished_cells_are_not_run_again(tmp_path, register):
    ran = []

    def run(cell, settings, folder):
        ran.append(cell)
        return [{"value": 1.0}]

    experiment, cells = toy(run)
    register(experiment)
    done = []
    run_cells(experiment, cells[:4], {}, tmp_path)
    run_cells(experiment, cells, {}, tmp_path, progress=done.append)
    assert sorted(ran) == sorted(cells)
    assert done == [4, 1, 1]


def test_other_settings_are_other_results(tmp_path, register):
    experiment, cells = toy(lambda cell, settings, folder: [{"value": settings["x"]}])
    register(experiment)
    run_cells(experiment, cells, {"x": 1}, tmp_path)
    store = run_cells(experiment, cells, {"x": 2}, tmp_path)
    assert {row["value"] for row in store.rows(cells)} == {2}


def test_broken_files_count_as_missing(tmp_path, register):
    experiment, cells = toy(draw)
    register(experiment)
    store = run_cells(experiment, cells, {}, tmp_path)
    whole = store.path(cells[0]).read_text()
    for broken in ("", whole[: len(whole) // 2], "[]", "{}"):
        store.path(cells[0]).write_text(broken)
        assert store.get(cells[0]) is None
    again = run_cells(experiment, cells, {}, tmp_path)
    assert json.loads(again.path(cells[0]).read_text())["rows"] == json.loads(whole)["rows"]


def test_a_failing_cell_costs_only_itself(tmp_path, register):
    def run(cell, settings, folder):
        if cell.data == "set 1":
            raise RuntimeError("this set is cursed")
        return [{"value": 1.0}]

    experiment, cells = toy(run)
    register(experiment)
    with pytest.raises(CellsFailedError, match=r"(?s)2 of 6 cells failed.*this set is cursed"):
        run_cells(experiment, cells, {}, tmp_path)
    store = Store(tmp_path / "cells", fingerprint({}))
    assert [cell for cell in cells if store.get(cell) is None] == cells[2:4]


def test_a_module_elsewhere_declares_an_experiment(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "toy.py").write_text(
        "from experiments import Cell, Experiment\n"
        "EXPERIMENT = Experiment('elsewhere.toy', 'a toy', lambda quick: {}, lambda s, r: [],\n"
        "    lambda cell, settings, folder: [{'value': cell.repeat}], lambda r, s, f: '')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    experiment = load_experiment("elsewhere.toy")
    cells = [Cell("set", "method", r) for r in range(2)]
    rows = run_cells(experiment, cells, {}, tmp_path).rows(cells)
    assert [row["value"] for row in rows] == [0, 1]
    with pytest.raises(ValueError, match="experiment: got 'E99'"):
        load_experiment("E99")


def test_names_of_cells_do_not_collide(tmp_path):
    store = Store(tmp_path, "x")
    cells = [Cell("a b", "c", 0), Cell("a-b", "c", 0), Cell("a", "b_c", 0), Cell("a b", "c", 1)]
    assert len({store.path(cell) for cell in cells}) == len(cells)


def test_missing_data_is_skipped_only_by_all(tmp_path, monkeypatch):
    for variable in ("KERNULL_DATA", "KERNULL_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    with pytest.raises(DatasetNotFound, match="Multiple Features"):
        reproduce("E3", quick=True, out=tmp_path)
    only = {name: EXPERIMENTS[name] for name in ("E3", "E4")}
    monkeypatch.setattr("experiments._reproduce.EXPERIMENTS", only)
    outcomes = reproduce("all", quick=True, out=tmp_path)
    assert [outcome.page for outcome in outcomes] == [None, None]
    assert "KERNULL_DATA" in outcomes[0].skipped


def test_wrong_arguments_are_told(tmp_path, capsys):
    with pytest.raises(ValueError, match="experiment: got 'E99'"):
        reproduce(["E2", "E99"], out=tmp_path)
    with pytest.raises(ValueError, match="repeats"):
        reproduce("E2", repeats=0, out=tmp_path)
    with pytest.raises(ValueError, match="jobs"):
        reproduce("E2", jobs=0, out=tmp_path)
    assert main(["E99", "--out", str(tmp_path)]) == 1
    assert "E99" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_tables(tmp_path):
    rows = [
        {"data": "a", "x": 0.1, "time_ms": 3.0, "_curve": [1, 2]},
        {"data": "b", "x": np.float64(1 / 3).item()},
    ]
    write_results(rows, tmp_path)
    assert (tmp_path / "results.csv").read_text() == "data,x\na,0.1\nb,0.3333333333333333\n"
    assert (tmp_path / "timings.csv").read_text() == "data,x,time_ms\na,0.1,3.0\n"
    assert mean_std([1.0, 3.0]) == "2.0 ± 1.4"
    assert markdown(["a"], [[1]]) == "| a |\n| --- |\n| 1 |"

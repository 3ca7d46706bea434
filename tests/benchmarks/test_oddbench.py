"""The benchmark on OddBench, on tables that are written here."""

import csv

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from benchmarks import oddbench


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """Two tables of normal rows; outliers of the first lie far off."""
    monkeypatch.setenv("KERNULL_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    (tmp_path / "data/oddbench").mkdir(parents=True)
    for name, n, shift in (("apart", 90, 8.0), ("alike", 60, 0.0)):
        test = rng.normal(size=(60, 3))
        test[40:] += shift
        np.savez(
            tmp_path / f"data/oddbench/{name}.npz",
            train=rng.normal(size=(n, 3)).astype(np.float32),
            test=test.astype(np.float32),
            outlier=np.arange(60) >= 40,
        )
    return tmp_path


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_resumes_and_prints_published_averages_as_not_comparable(home, capsys):
    given = ["--out", str(home / "out"), "--cache", str(home / "cache"), "--rows", "70"]
    few = ["--methods", "kernull", "1-NN", "IsolationForest"]
    assert oddbench.main([*given, *few, "--tables", "apart"]) == 0
    cells = {p: p.stat().st_mtime_ns for p in (home / "cache/70/cells").iterdir()}
    assert len(cells) == 3
    assert oddbench.main([*given, *few]) == 0
    after = {p: p.stat().st_mtime_ns for p in (home / "cache/70/cells").iterdir()}
    assert len(after) == 6
    assert {p: after[p] for p in cells} == cells
    rows = read(home / "out/oddbench.csv")
    assert {(r["data"], int(r["rows"])) for r in rows} == {("apart", 70), ("alike", 60)}
    assert all(float(r["auc"]) > 99 for r in rows if r["data"] == "apart")
    page = (home / "out/oddbench.md").read_text()
    assert page.strip() in capsys.readouterr().out
    assert "| TaskBridge | 80.24 | 50.43 |" in page
    assert "**Not comparable**" in page
    assert "| kernull | 2 |" in page


def test_each_method_scores_and_flags():
    for method in oddbench.METHODS:
        (row,) = oddbench.run(oddbench.Cell("apart", method, 0), {"rows": 80}, None)
        assert row["auc"] > 95, method
        assert 0 <= row["flagged"] <= 25, method


def test_tables_are_cut_at_random_and_smaller_cuts_are_parts_of_larger_ones():
    small, large = oddbench.load("apart", 30)[0], oddbench.load("apart", 60)[0]
    assert len(small) == 30
    assert {x.tobytes() for x in small} < {x.tobytes() for x in large}


def test_ecod_is_the_sum_of_the_rarer_tails():
    model = oddbench.Ecod().fit(np.arange(1.0, 11.0)[:, None])
    scores = model.score_samples(np.array([[1.0], [5.0], [10.0], [99.0]]))
    np.testing.assert_allclose(scores, np.log([0.1, 0.5, 0.1, 0.1]))


def test_nearest_rows_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(9, 3))
    found = NearestNeighbors(n_neighbors=5).fit(X).kneighbors(new)[0]
    np.testing.assert_allclose(
        oddbench.NearestRows(5).fit(X).score_samples(new), -found.mean(axis=1)
    )


def test_a_table_on_which_a_peer_is_ahead_is_listed():
    shape = {"rows": 100, "columns": 3, "discrete": 0.0, "data": "t"}
    rows = [
        {**shape, "method": method, "auc": auc}
        for method, auc in (("kernull", 70.0), ("1-NN", 76.0), ("IsolationForest", 60.0))
    ]
    assert oddbench.ahead(rows) == [["t", "100", "3", "0", "70.0", "76.0", "60.0"]]
    rows[1]["auc"] = 74.0
    assert oddbench.ahead(rows) == []

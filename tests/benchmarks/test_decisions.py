"""The bench of decisions: fair rows, verdicts that follow from what was measured."""

import csv

import numpy as np
import pytest

from benchmarks.decisions import contaminated, measures, protocol, report
from benchmarks.decisions.__main__ import main
from benchmarks.decisions.tables import NOISE, TABLES, halves, split, with_noise


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_learned_from_or_new_and_views_share_the_columns(name):
    rows = split(name, 3)
    parts = [{tuple(row) for row in part} for part in rows]
    assert not parts[2] & parts[3]
    assert abs(len(rows.train) - len(rows.normal)) <= 1
    np.testing.assert_array_equal(split(name, 3).train, rows.train)
    d = rows.train.shape[1]
    assert sorted(c for columns in halves(d).values() for c in columns) == list(range(d))


@pytest.mark.parametrize("kind", NOISE)
def test_noise_comes_behind_and_says_nothing_of_outliers(kind):
    rows = split("clusters", 0)
    noisy, columns = with_noise(kind, rows, "clusters", 0)
    np.testing.assert_array_equal(noisy.train[:, : columns[0]], rows.train)
    means = [part[:, columns].mean() for part in (noisy.normal, noisy.outliers)]
    spread = np.std(np.vstack([noisy.normal, noisy.outliers])[:, columns])
    assert abs(means[0] - means[1]) <= 0.4 * spread


def test_a_small_run_writes_what_it_measured(tmp_path, capsys):
    given = ["--seeds", "1", "--only", "wine 0", "--jobs", "1", "--out", str(tmp_path)]
    given += ["--cache", str(tmp_path / "cache"), "--parts", "tables", "contamination"]
    assert main(given) in (0, 2)
    text = (tmp_path / "decisions.md").read_text()
    assert text in capsys.readouterr().out
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").iterdir()}
    assert len(before) == 2
    main(given)  # nothing is left to do
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").iterdir()}
    with (tmp_path / "decisions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lost = {r["kind"]: float(r["value"]) for r in rows if r["what"] == "lost"}
    assert set(lost) == set(NOISE)
    for kind, value in lost.items():
        passed = value <= protocol.LOST[kind][0]
        what = f"AUC lost to {kind}: mean"
        line = next(line for line in text.splitlines() if what in line)
        assert ("**" in line) != passed
        assert f"{value:+.2f}" in line
    next(iter(before)).unlink()
    main([*given, "--report"])
    assert "**1 of 2 tasks finished**" in (tmp_path / "decisions.md").read_text()


def test_a_share_of_the_training_rows_are_outliers_that_no_test_has():
    found = contaminated.of_table("wine 0", 0, shares=(0.0, 0.2))
    assert {row["share"] for row in found} == {0.0, 0.2}
    assert all(np.isnan(row["own"]) == (row["share"] == 0.0) for row in found)
    assert all(0 <= row["alarms"] <= 1 for row in found)


def test_far_rows_are_far_in_every_direction():
    far = measures.far_rows(np.random.default_rng(0))
    assert (np.linalg.norm(far, axis=1) >= protocol.FAR * (1 - 1e-12)).all()
    assert len(far) == 2**4 + 2 * 4 + protocol.FAR_DIRECTIONS
    line = measures.of_kernels(0, {"rbf": "rbf"})[0]
    assert (line["what"], line["value"]) == ("far", 1.0)


def test_verdicts_are_bold_where_a_line_misses():
    def rows(share):
        line = {"what": "far", "table": "t", "seed": 0, "value": share}
        return [{**line, "kind": "linear"}, {**line, "kind": "cosine"}]

    text, missed = report.page(rows(1.0), "here")
    assert not missed
    assert "**miss**" not in text
    text, missed = report.page(rows(0.5), "here")
    assert [line[0] for line in missed] == ["Far rows, linear: 100%"]  # cosine is exempt
    assert "| **Far rows, linear: 100%** | 50.0% | **miss** |" in text

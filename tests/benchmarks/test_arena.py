"""The arena: fair splits, cells that resume, figures that follow from the cells."""

import csv

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.metrics import roc_auc_score

from benchmarks.arena import adbench, features, halves, problems, protocol, report, rules
from benchmarks.arena.__main__ import main
from benchmarks.arena.entrants import DEFAULT, entrants
from benchmarks.arena.experiment import ORACLE
from benchmarks.arena.peers import PEERS, Mahalanobis, RowByRow, peer
from benchmarks.arena.problems import Problem, catalogue, named, seed, split
from benchmarks.peers import pyod_detector

WINE = ["--families", "tables", "--only", "sklearn/wine (*)", "--repeats", "2"]
FEW = ["--entrants", DEFAULT, "FN-Average", "5 nearest*", "Mahalanobis"]


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No files of data, features or networks: what scikit-learn brings is enough here."""
    monkeypatch.setenv("KERNULL_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("KERNULL_FEATURES", str(tmp_path / "features"))
    monkeypatch.delenv("KERNULL_WEIGHTS", raising=False)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_split_trains_on_half_of_the_targets_and_tests_on_all_else():
    problem = Problem("sklearn/wine", 1)
    data, train, test, labels = split(problem, 0)
    assert (data.classes[train] == 1).all()
    assert len(train) == (data.classes == 1).sum() // 2
    assert sorted([*train, *test]) == list(range(len(data.X)))
    assert ((data.classes[test] == 1) == (labels == 1)).all()


def test_splits_and_seeds_depend_on_problem_and_repeat_alone():
    problem = Problem("sklearn/wine", 1)
    first = split(problem, 1)[1]
    split(Problem("sklearn/wine", 0), 0)
    np.testing.assert_array_equal(split(named(problem.name), 1)[1], first)
    assert set(split(problem, 2)[1]) != set(first)
    assert len({seed(problem, r) for r in range(5)}) == 5


def test_what_is_missing_is_named():
    found = catalogue()
    assert {p.source for p in found.problems} == {
        "sklearn/wine",
        "sklearn/breast cancer",
        "sklearn/digits",
    }
    missing = " ".join(found.left_out)
    for name in ("delft/wine", "mfeat", "mnist", "flowers17", "KERNULL_WEIGHTS"):
        assert name in missing


def test_classes_with_few_targets_are_left_out(monkeypatch):
    monkeypatch.setattr(protocol, "MIN_TRAINING", 25)  # wine has 59, 71 and 48
    found = catalogue(["tables"])
    assert Problem("sklearn/wine", 2) not in found.problems
    assert "sklearn/wine (2): 24 training targets" in found.left_out


def test_a_run_resumes_and_does_not_depend_on_workers(tmp_path, capsys):
    assert main([*WINE, *FEW, "--out", str(tmp_path / "a"), "--only", "sklearn/wine (0)"]) == 0
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "a" / "cells").iterdir()}
    assert len(before) == 2 * 4
    assert main([*WINE, *FEW, "--out", str(tmp_path / "a")]) == 0
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "a" / "cells").iterdir()}
    assert len(after) == 3 * 2 * 4
    assert {p: after[p] for p in before} == before
    assert main([*WINE, *FEW, "--out", str(tmp_path / "b"), "--jobs", "2"]) == 0
    assert (tmp_path / "a/results.csv").read_bytes() == (tmp_path / "b/results.csv").read_bytes()
    assert DEFAULT in capsys.readouterr().out


def test_the_report_follows_from_the_cells(tmp_path):
    main([*WINE, *FEW, "--out", str(tmp_path)])
    rows, summary = read(tmp_path / "results.csv"), read(tmp_path / "summary.csv")
    assert len(rows) == 3 * 2 * 4
    names = {line["entrant"] for line in summary}
    means = {
        (n, p): np.mean([float(r["auc"]) for r in rows if (r["entrant"], r["data"]) == (n, p)])
        for n in names
        for p in {r["data"] for r in rows}
    }
    for line in summary:
        own = {p: v for (n, p), v in means.items() if n == line["entrant"]}
        assert float(line["mean_auc"]) == pytest.approx(100 * np.mean(list(own.values())))
        better = [
            sum(means[n, p] > v + 1e-12 for n in names)
            + (1 + sum(abs(means[n, p] - v) <= 1e-12 for n in names)) / 2
            for p, v in own.items()
        ]
        assert float(line["mean_rank"]) == pytest.approx(np.mean(better))
    assert sum(float(line["wins"]) for line in summary) == pytest.approx(3)
    page = (tmp_path / "page.md").read_text()
    assert "python -m benchmarks.arena" in page
    assert "numpy" in page
    assert "delft/wine" in page  # what is missing is said
    for figure in ("ranks_all.png", "auc.png", "time.png"):
        assert (tmp_path / figure).stat().st_size > 5000
        assert f"({figure})" in page
    assert not any(key.startswith(("time_", "memory_")) for key in rows[0])
    assert all(float(r["time_fit"]) >= 0 for r in read(tmp_path / "timings.csv"))


def test_again_forgets_only_what_is_named(tmp_path):
    given = [*WINE, *FEW, "--out", str(tmp_path), "--repeats", "1"]
    main(given)
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()}
    main([*given, "--again", "Mahalanobis"])
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()}
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert len(changed) == 3
    assert all("Mahalanobis" in name for name in changed)


def test_a_pattern_that_fits_nothing_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="--entrants: 'no such"):
        main([*WINE, "--entrants", "no such*", "--out", str(tmp_path)])


def test_other_settings_are_other_cells(monkeypatch):
    before = entrants()["lp MK-FN, p = 1"].key
    monkeypatch.setattr("benchmarks.arena.entrants.MIXED", {"widths": (1.0, 2.0)})
    assert entrants()["lp MK-FN, p = 1"].key != before


@pytest.mark.parametrize("name", PEERS)
def test_peers_score_normal_rows_higher_and_repeat_themselves(name):
    if name.startswith("PyOD"):
        pytest.importorskip("pyod")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * [1, 10, 100, 1000]
    near, far = rng.normal(size=(30, 4)), rng.normal(size=(90, 4)) + 4
    rows = np.vstack([near, far]) * [1, 10, 100, 1000]
    scores = peer(name, 3).fit(X).score_samples(rows)
    assert roc_auc_score(np.r_[np.ones(30), np.zeros(90)], scores) > 0.95
    np.testing.assert_array_equal(peer(name, 3).fit(X).score_samples(rows), scores)


@pytest.mark.parametrize("name", ["ECOD", "COPOD"])
@pytest.mark.filterwarnings("ignore:Precision loss")
def test_row_by_row_is_what_pyod_gives_for_each_row_alone(name):
    pytest.importorskip("pyod")
    rng = np.random.default_rng(1)
    X = rng.gamma(2.0, size=(40, 5)).round(1)  # with ties and skew
    X[:, 3] = 2.0  # without spread
    rows = np.vstack([X[:5], rng.gamma(2.0, size=(20, 5)).round(1) + 0.5])
    detector = pyod_detector(name).fit(X)
    alone = [float(detector.decision_function(row[None])[0]) for row in rows]
    np.testing.assert_allclose(RowByRow(name).fit(X).score_samples(rows), -np.array(alone))


def test_mahalanobis_in_many_columns_is_that_of_ledoit_and_wolf():
    rng = np.random.default_rng(2)
    X, rows = rng.normal(size=(20, 50)) * np.arange(1, 51), 9 * rng.normal(size=(7, 50))
    expected = -LedoitWolf().fit(X).mahalanobis(rows)
    np.testing.assert_allclose(Mahalanobis().fit(X).score_samples(rows), expected, rtol=1e-8)


def test_the_oracle_is_never_below_what_it_bounds_and_never_ranked(tmp_path):
    main([*WINE, "--entrants", "OneClassSVM*", "--out", str(tmp_path), "--repeats", "1"])
    rows = read(tmp_path / "results.csv")
    found = {(r["data"], r["entrant"]): float(r["auc"]) for r in rows}
    for problem in {r["data"] for r in rows}:
        assert found[problem, ORACLE] >= found[problem, "OneClassSVM, tuned"]
    assert ORACLE not in {line["entrant"] for line in read(tmp_path / "summary.csv")}


def test_images_come_from_feature_files(tmp_path):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(17), 24)
    views = {
        network: rng.normal(size=(len(classes), 6)) + (k + 1) * rng.normal(size=(17, 6))[classes]
        for k, network in enumerate(protocol.NETWORKS)
    }
    path = tmp_path / "features" / "flowers17.npz"
    features.save(path, views, classes, np.zeros(len(classes), dtype=bool))
    given = ["--families", "images", "--only", "flowers17 (1)", "flowers17 (2)", "--repeats", "1"]
    given += ["--entrants", DEFAULT, "FN-Average", "Mahalanobis", "* by view"]
    assert main([*given, "--out", str(tmp_path / "out")]) == 0
    rows = read(tmp_path / "out/results.csv")
    assert {r["view"] for r in rows} == {"", *protocol.NETWORKS}
    single = [r for r in rows if r["entrant"] == "FN by view"]
    assert len(single) == 2 * len(protocol.NETWORKS)
    best = max(
        np.mean([float(r["auc"]) for r in single if r["view"] == network])
        for network in protocol.NETWORKS
    )
    plain = [{**r, "auc": float(r["auc"]), "view": r["view"]} for r in single]
    assert report.best_views(plain, "FN by view")["flowers17"][1] == pytest.approx(100 * best)
    page = (tmp_path / "out/page.md").read_text()
    assert "best single view by FN" in page


def test_mnist_keeps_its_published_halves(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "MNIST_TRAINING", 15)
    classes = np.r_[np.repeat(np.arange(10), 20), np.arange(50) % 10]
    views = {
        network: np.random.default_rng(0).normal(size=(250, 3)) for network in protocol.NETWORKS
    }
    features.save(tmp_path / "features/mnist.npz", views, classes, np.arange(250) >= 200)
    from benchmarks.arena import problems

    problems.load.cache_clear()
    _, train, test, labels = split(Problem("mnist", 3), 0)
    problems.load.cache_clear()
    assert len(train) == 15
    assert ((classes[train] == 3) & (train < 200)).all()
    np.testing.assert_array_equal(test, np.arange(200, 250))
    assert (labels == 1).sum() == 5


def test_each_family_gets_the_rule_that_the_others_choose():
    means = {
        "tables": {"a": 90.0, "b": 80.0, "c": 85.0},
        "multi-view": {"a": 70.0, "b": 99.0, "c": 95.0},
        "images": {"a": 75.0, "b": 90.0, "c": 91.0},
    }
    table, overall = rules.leave_one_out(means)
    assert {line[0]: line[1:] for line in table} == {
        "tables": ("b", 80.0, "a", 90.0),
        "multi-view": ("c", 95.0, "b", 99.0),
        "images": ("c", 91.0, "c", 91.0),
    }
    assert overall == "c"
    assert "**c**" in rules.page(means)


def test_rules_run(tmp_path, capsys, monkeypatch):
    from benchmarks.arena import experiment

    kept = {name: {"widths": width, "p": 1.0} for name, width in (("narrow", 0.2), ("wide", 2.0))}
    monkeypatch.setattr(rules, "RULES", {**kept, "unheard of": {"no_such_argument": 1}})
    experiment._by_key.cache_clear()
    assert main(["rules", *WINE, "--out", str(tmp_path)]) == 0
    experiment._by_key.cache_clear()
    text = capsys.readouterr().out
    assert "narrow" in text
    assert "unheard of" not in text
    assert (tmp_path / "rules.md").read_text() in text


def test_sets_that_share_rows_are_in_one_half_and_halves_are_equal():
    kin = {}
    for source in problems.table_sources():
        kin.setdefault(protocol.KIN.get(source, source), set()).add(halves.half(f"{source} (0)"))
    assert all(len(found) == 1 for found in kin.values())
    counts = [sum(found == {which} for found in kin.values()) for which in ("choosing", "judging")]
    assert abs(counts[0] - counts[1]) <= 1
    assert halves.half("mfeat (4)") == "choosing"
    assert halves.half("mfeat (3)") == "judging"


def test_the_incumbent_stays_unless_another_is_clearly_better():
    rng = np.random.default_rng(0)
    names = [f"delft/wine ({k})" for k in range(1, 4)] + [f"mfeat ({k})" for k in range(0, 10, 2)]
    names = [n for n in names if halves.half(n) == "choosing"]
    noise = 0.02 * rng.normal(size=len(names))

    def rows(gain):
        return [
            {"entrant": f"rule: {rule}", "data": n, "auc": 0.9 + more, "family": named(n).family}
            for i, n in enumerate(names)
            for rule, more in ((rules.INCUMBENT, 0.0), ("other", gain + noise[i] - noise.mean()))
        ]

    assert halves.chosen(halves.Half(rows(0.002), "choosing"))[:2] == (
        "rule: evidence",
        "rule: other",
    )
    assert halves.chosen(halves.Half(rows(0.05), "choosing"))[0] == "rule: other"
    assert "Chosen: **other**" in halves.choice(rows(0.05))


def test_adbench_trains_on_half_of_the_normal_rows_and_keeps_anomalies(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNULL_DATA", str(tmp_path))
    monkeypatch.setattr(protocol, "ADBENCH_TEST", 60)
    monkeypatch.setattr(protocol, "ADBENCH_ANOMALIES", 20)
    (tmp_path / "adbench").mkdir()
    y = (np.arange(200) % 8 == 0).astype(int)  # 25 anomalies
    X = np.random.default_rng(0).normal(size=(200, 3))
    np.savez(tmp_path / "adbench/45_wine.npz", X=X, y=y)
    (tmp_path / "adbench/published_one_class.csv").write_text("Dataset,KNN\nwine,91.5\n")
    problems.load.cache_clear()
    data, train, test, labels = split(Problem("adbench/45_wine", 0), 0)
    problems.load.cache_clear()
    assert len(train) == 175 // 2
    assert (data.classes[train] == 0).all()
    assert not set(train) & set(test)
    assert (len(test), (labels == -1).sum()) == (60, 20)
    assert adbench.published() == {"45_wine": {"KNN": 91.5}}
    assert "adbench/45_wine (0)" in [p.name for p in catalogue(["tables"]).problems]

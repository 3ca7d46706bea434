"""What E5 to E8 do with features: families of methods, the choice by validation, the page."""

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.metrics import roc_auc_score

from experiments._cells import generator
from experiments._deep import base_settings, rooted
from experiments._deep_report import Table, deep_body
from experiments._deep_run import Judge, run_family
from experiments._models import Split
from experiments.published import DEEP
from kernull.paper import FisherNull, GaussianProcessOneClass, KernelPCANovelty


@pytest.fixture(scope="module")
def problem():
    rng = generator("test images")
    labels = np.r_[np.ones(60), -np.ones(40)].astype(int)
    features = {
        name: np.abs(rng.standard_normal((100, 7)) + 1.2 * (labels == -1)[:, None] * rng.random(7))
        for name in ("one", "two", "three")
    }
    split = Split(np.arange(36), np.r_[36:48, 60:80], np.r_[48:60, 80:100])
    return features, labels, split


def settings_of(**changes):
    base = {**base_settings(False, ["one", "two", "three"]), "widths": [0.5], "pyod": ["ECOD"]}
    return {**base, **changes}


def found_by(problem, family, **changes):
    features, labels, split = problem
    rows = run_family(family, "whiten-raw", features, labels, split, settings_of(**changes), 0)
    return {row["method"]: row for row in rows}


def test_fixed_rules_are_the_estimators(problem):
    """The shortcuts on fused kernels score as the library's own estimators do."""
    features, labels, split = problem
    grids = {
        **settings_of()["grids"],
        "FN": {"delta": [0.0, 1e-2]},
        "GP": {"noise": [1e-2]},
        "KPCA": {"components": [0.7]},
    }
    rows = found_by(problem, "kernels", grids=grids)
    X = np.concatenate([rooted(view) for view in features.values()], axis=1)
    views = {name: slice(7 * i, 7 * i + 7) for i, name in enumerate(features)}
    common = {"views": views, "scaling": "whiten-raw", "widths": 0.5}
    for fusion in ("average", "product"):
        delta = float(rows[f"FN-{fusion.capitalize()}"]["choice"].removeprefix("delta="))
        for name, model in {
            "FN": FisherNull(fusion=fusion, delta=delta, **common),
            "GP": GaussianProcessOneClass(fusion=fusion, noise=1e-2, **common),
            "KPCA": KernelPCANovelty(fusion=fusion, components=0.7, **common),
        }.items():
            scores = model.fit(X[split.train]).score_samples(X[split.test])
            row = rows[f"{name}-{fusion.capitalize()}"]
            assert row["auc"] == pytest.approx(roc_auc_score(labels[split.test], scores), abs=1e-9)


def test_chosen_networks_are_at_least_as_good_on_validation(problem):
    rows = found_by(problem, "kernels")
    singles = [row["validation_auc"] for name, row in rows.items() if name.startswith("FN ")]
    assert len(singles) == 3
    assert rows["lp MK-FN (networks chosen)"]["validation_auc"] >= max(singles) - 1e-12


def test_peers(problem):
    features, labels, split = problem
    rows = found_by(problem, "peers")
    assert {"kNN", "Mahalanobis", "PyOD ECOD"} == set(rows)
    # After whitening each view, the plain distance from the mean is the sum of Mahalanobis ones.
    rest = split.test
    total = sum(
        LedoitWolf().fit(rooted(v)[split.train]).mahalanobis(rooted(v)[rest])
        for v in features.values()
    )
    expected = roc_auc_score(labels[rest], -total)
    assert rows["Mahalanobis"]["auc"] == pytest.approx(expected, abs=1e-9)


def test_mahalanobis_of_all_features_together(problem):
    features, labels, split = problem
    (row,) = [
        row
        for row in run_family("peers", "standard", *problem, settings_of(pyod=[]), 0)
        if row["method"] == "Mahalanobis"
    ]
    X = np.concatenate([rooted(view) for view in features.values()], axis=1)
    Z = (X - X[split.train].mean(axis=0)) / X[split.train].std(axis=0)
    distance = LedoitWolf().fit(Z[split.train]).mahalanobis(Z[split.test])
    expected = roc_auc_score(labels[split.test], -distance)
    assert row["auc"] == pytest.approx(expected, abs=1e-9)


def test_judge_keeps_the_first_of_equals_and_tests_the_chosen():
    judge = Judge([1, -1], [1, -1])
    judge.offer("m", [[2, 1, 0, 1], [3, 0, 1, 0]], 1.0, ["a", "b"])  # both 1.0 on validation
    assert judge.best["m"]["choice"] == "a"
    assert judge.best["m"]["auc"] == 0.0  # test decides nothing
    judge.offer("m", [[0, 1, 1, 0]], 0.5, ["c"])
    assert judge.best["m"]["choice"] == "a"


def test_machines_learn_from_few_rows(problem):
    grids = {**settings_of()["grids"], "Slim-MK-SVDD": {"nu": [0.2], "slim_lambda": [0.3]}}
    features, labels, split = problem
    rows = run_family(
        "machines", "standard", features, labels, split, settings_of(svm_rows=20, grids=grids), 0
    )
    assert {row["n"] for row in rows} == {20}
    assert {"MK-SVDD", "MK-OCSVM", "OneClassSVM"} <= {row["method"] for row in rows}


def test_page_leaves_out_what_is_not_finished(tmp_path):
    def row(method, target, auc):
        key = {"method": method, "scaling": "standard", "target": target, "n": 5}
        return {**key, "auc": auc, "validation_auc": 0.5}

    rows = [row("lp MK-FN", t, 0.9) for t in "abc"] + [row("kNN", t, 0.8) for t in "abc"]
    text = deep_body([*rows, row("MK-SVDD", "a", 0.7)], tmp_path, experiment="E6")
    assert "left out: MK-SVDD" in text
    assert "99.5 ± 0.5" in text
    assert "| kNN | +10.00 | 3 / 0 |" in text
    assert "| DOC VGG16 | literature, as published |  | 98.1 ± 2.2 |" in text


def test_the_scaling_is_chosen_on_validation_never_on_test(tmp_path):
    """The scaling that is better on test and worse on validation is not the one compared."""
    aucs = {"standard": (0.7, 0.9), "whiten": (0.95, 0.6)}  # test, validation
    rows = [
        {"method": m, "scaling": s, "target": t, "n": 5, "auc": test, "validation_auc": v}
        for m in ("lp MK-FN", "kNN")
        for t in "abc"
        for s, (test, v) in aucs.items()
        if (m, s) != ("kNN", "standard")
    ]
    table = Table(rows)
    assert table.chosen("lp MK-FN") == "standard"
    text = deep_body(rows, tmp_path)
    assert "| kNN | -25.00 | 0 / 3 |" in text
    assert "**70.00 ± 0.00**" in text


def test_the_spread_is_that_over_targets(tmp_path):
    rng = np.random.default_rng(0)
    found = rng.uniform(0.5, 1.0, (4, 3))  # targets x repeats
    rows = [
        {"method": "lp MK-FN", "scaling": "standard", "target": str(t), "n": 5, "repeat": r,
         "auc": found[t, r], "validation_auc": 0.5}
        for t in range(4)
        for r in range(3)
    ]  # fmt: skip
    means = 100 * found.mean(axis=1)
    expected = f"{means.mean():.2f} ± {np.std(means, ddof=1):.2f}"
    assert expected in deep_body(rows, tmp_path)


def test_published_figures():
    assert DEEP["E8"]["lp MK-FN"] == (98.7, None)
    assert DEEP["E9"]["Joint lp MK-FN"] == (3.3, 3.0)
    assert "Joint lp MK-FN" not in DEEP["E5"]
    assert len(DEEP["E5"]) == 12

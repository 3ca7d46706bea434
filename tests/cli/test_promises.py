"""What a day's trial with tables of others asked for, and where each answer is tested.

1. One object does what the command line does: here, tests/judge/test_judge.py, README.
2. Another rate at any time: ``test_another_rate_everywhere`` in test_commands.py.
3. Reasons in a spreadsheet: ``test_reasons_in_a_spreadsheet`` in the same file.
4. Views are proposed, and find what one view does not: here.
5. Numbers agree: here; the docs are compared to the digits shown (tests/docs).
6. Joint models at the command line: ``test_tasks_and_groups``.
7. Hints: ``test_rows_of_another_kind_are_called_so``; that a file holds the rows: here.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from kernull import Judge
from kernull.explain import ScoresDisplay, WeightsDisplay
from tests.cli.conftest import kernull

PARTS = ("sales", "wages", "stock", "loans")


def books(n, seed):
    """Four accounts, in each of which the last column is the sum of the others."""
    rng, out = np.random.default_rng(seed), {}
    for part in PARTS:
        a, b, c = rng.lognormal(3.0, 0.5, (3, n))
        out |= {f"{part}_a": a, f"{part}_b": b, f"{part}_c": c, f"{part}_sum": a + b + c}
    return pd.DataFrame(out)


@pytest.fixture(scope="module")
def broken():
    """Books with one sum twice as large as it should be, and which."""
    rows = books(60, 2)
    sums = [f"{PARTS[i % 4]}_sum" for i in range(60)]
    for i, column in enumerate(sums):
        rows.loc[i, column] *= 2.0
    return rows, sums


def test_proposed_views_find_a_broken_sum(broken):
    rows, sums = broken
    judge = Judge(views="auto").fit(books(300, 0))
    assert judge.view_names == list(PARTS)
    out = judge.judge(rows)
    assert out["flag"].mean() >= 0.95
    assert out["flag"].mean() > Judge().fit(books(300, 0)).judge(rows)["flag"].mean()
    assert (out["reason_1"] == sums).mean() >= 0.9


def test_one_object_has_p_values_rarities_discoveries_and_displays(broken):
    rows, _ = broken
    judge = Judge(views="auto").fit(books(300, 0))
    both = pd.concat([books(60, 1), rows])
    p, rarity, found = judge.p_values(both), judge.rarity(both), judge.detect(both, 0.2)
    assert (p[rarity > 100] < 0.05).all()
    assert found[60:].mean() > 0.9
    assert found[:60].sum() <= 0.3 * found.sum()
    assert judge.explain(both).words(60).startswith("flagged")
    pytest.importorskip("matplotlib").use("Agg")
    for display in (ScoresDisplay, WeightsDisplay):
        assert display.from_estimator(judge.model_).ax_ is not None


def test_report_and_evaluation_count_alike(tables):
    labels = ["labelled.csv", "--label", "class", "--normal", "good"]
    counts = json.loads(kernull("evaluate", "model.kernull", *labels, "--json", cwd=tables).stdout)
    page = kernull("report", "model.kernull", *labels, "-o", "-", cwd=tables).stdout
    caught = f"{counts['caught']} of {counts['odd']} rows that are not normal were caught"
    assert caught in re.sub(r"\s+", " ", page)
    assert f"{counts['caught'] + counts['false_alarms']} of 40 rows stand out" in page


def test_that_a_file_holds_the_rows_is_shown(tables):
    assert "This file holds the rows" in kernull("info", "model.kernull", cwd=tables).stdout

"""What the guide says of reasons by column and of gaps holds on small runs of the benchmarks."""

from __future__ import annotations

import pytest

from benchmarks import column_reasons, gaps

pytest.importorskip("pyod", reason="pyod is not installed")


@pytest.mark.parametrize("kind", ["swapped", "shifted"])
def test_the_right_column_comes_first(kind):
    for name, X in list(column_reasons.tables())[:3]:
        found = column_reasons.run(X, kind, 200, shap=False)
        assert found["right"] >= (0.8 if kind == "swapped" else 0.95), name
        assert found["right"] > found["ecod"]


@pytest.mark.filterwarnings("ignore::kernull.errors.GapsWarning")
def test_empty_cells_cost_little():
    for name, X, normal in gaps.tables():
        if len(X) > 1000:  # digits take longer, and were measured
            continue
        runs = [gaps.run(X, normal, 0.1, seed) for seed in range(5)]
        whole, usual, holes, alarms = (sum(run[k] for run in runs) / 5 for k in range(4))
        assert whole - holes <= 2.0, name
        assert abs(alarms - usual) <= 2.0, name  # of few rows, the rate itself may be off
        assert alarms <= 6.5, name

"""E10: what is over the cap once is not tried again."""

import pytest

from experiments import e10
from experiments._cells import Cell


@pytest.fixture
def settings():
    return {**e10.settings(quick=True), "features": 3, "cap": 0.0}


def test_capped_sizes_are_remembered(tmp_path, settings):
    def outcome(size, method="lp MK-FN-Grad"):
        (row,) = e10.run(Cell(size, method, 0), settings, tmp_path)
        return row["outcome"]

    assert outcome("J=5, n=50") == "over the cap"
    assert outcome("J=5, n=50") == "not tried"
    assert outcome("J=5, n=60") == "not tried"
    assert outcome("J=50, n=50") == "not tried"
    settings["cap"] = 60.0
    assert outcome("J=4, n=50") == "done"  # smaller
    assert outcome("J=5, n=50", "lp MK-FN") == "done"  # another method

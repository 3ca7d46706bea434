"""The demo: its parts, and the whole (slow)."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from benchmarks.readme import PHONE, draw_narrow
from examples.demo import (
    OURS,
    Findings,
    comparison_grid,
    draw_part,
    drawn,
    entrants,
    in_range,
    main,
    typical_finding,
)
from kernull import load
from tests.cli.conftest import kernull


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return Findings(tmp_path_factory.mktemp("line"))


def text(*grids) -> str:
    console = Console(width=80, file=io.StringIO())
    console.print(*grids)
    return console.file.getvalue()


def test_findings_have_columns_and_rarity(found):
    shown = text(found.grid())
    assert "torque" in shown
    assert "slipping belt" in shown
    assert in_range(found.reasons[0][0]) in shown
    assert found.flagged[found.faulty].mean() > 0.6
    assert found.flagged[~found.faulty].mean() < 0.08
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80


def test_the_picture_shows_a_value_that_is_ordinary_by_itself(found):
    k = typical_finding(found)
    what = drawn(found, k)
    gauge = next(g for gauges in what.views.values() for g in gauges if g.odd)
    assert gauge.all_parts[0] < gauge.value < gauge.all_parts[1]
    assert not gauge.like_this[0] < gauge.value < gauge.like_this[1]
    # Of the other columns nine in ten are in their range.
    others = [g for gauges in what.views.values() for g in gauges if not g.odd]
    assert np.mean([g.like_this[0] <= g.value <= g.like_this[1] for g in others]) > 0.7
    assert max(what.evidence, key=what.evidence.get) == "drive"
    total = sum(e**2 for e in what.evidence.values())
    assert total == pytest.approx(-found.why.contributions[found.order[k]].sum())


@pytest.mark.parametrize("layout", [(), (draw_narrow, PHONE)])
def test_the_picture_is_drawn(found, layout, tmp_path):
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed")
    pixels = image.imread(draw_part(found, tmp_path / "part.png", *layout))
    assert (pixels[0, :, :3] == 1).all()  # on white
    assert (pixels[:, -8:, :3] == 1).all()  # nothing runs over the edge
    assert pixels[..., :3].std() > 0.1


def test_the_best_comes_first_whoever_it_is():
    results = {
        "a": {OURS: [(0.8, 0.05)], "other": [(0.9, 0.2)]},
        "b": {OURS: [(0.7, 0.04)], "other": [(0.9, 0.1)]},
    }
    lines = text(comparison_grid(results)).splitlines()
    assert [line.split()[0] for line in lines if "%" in line][-2:] == ["other", OURS]
    assert "20 / 10 %" in "".join(lines)


def test_everyone_sees_the_same_comparison():
    """A fresh clone has scikit-learn and nothing else to compare with; README shows that."""
    found = entrants(None, 0)
    others = [pipeline[-1] for name, pipeline in found.items() if name != OURS]
    assert len(others) == len(found) - 1 == 3
    assert {type(other).__module__.split(".")[0] for other in others} == {"sklearn"}


@pytest.mark.slow
def test_the_demo_ends_in_tables_and_a_report(tmp_path, capsys):
    main(tmp_path / "demo")
    printed = capsys.readouterr().out
    for said in ("stand out most", "torque", "IsolationForest", "digits", "asked for: 5%"):
        assert said in printed
    assert (tmp_path / "demo/report.html").stat().st_size < 10**6
    assert load(tmp_path / "demo/line.kernull").gap_ <= 1e-6
    why = kernull("explain", "demo/line.kernull", "demo/new.csv", "--id", "part", cwd=tmp_path)
    assert why.returncode == 0, why.stderr
    assert "is usual for rows like this" in why.stdout

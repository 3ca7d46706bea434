"""The pages of docs/results say what the tables beside them say, to the last character."""

import shutil
from pathlib import Path

import matplotlib.figure
import numpy as np
import pytest

from experiments._e4_report import distance_to_published, nearest_classes
from experiments._lp_balls import boundary
from experiments.e4_protocol import PAPER_METHODS
from experiments.findings import StaleClaimError, family_page, overview, state
from experiments.findings._arena import arena
from experiments.findings._others import noisy
from experiments.pages import PAGES, head_of, page_body, typed_rows, write_page
from experiments.published import DELFT_AUC

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture
def no_figures(monkeypatch):
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", lambda *args, **kwargs: None)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_follows_from_its_table(name, no_figures, tmp_path):
    page = (RESULTS / name / "page.md").read_text(encoding="utf-8")
    body = page_body(name, RESULTS / name, tmp_path)
    assert page == f"{head_of(page)}\n\n{body.rstrip()}\n"


def test_the_overview_follows_from_the_tables():
    """Every sentence with a number in it: run `python -m experiments.pages` after a new table."""
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == overview(RESULTS)
    assert (RESULTS / "family.md").read_text(encoding="utf-8") == family_page(RESULTS)


def test_writing_puts_a_stale_page_right(tmp_path, no_figures):
    shutil.copytree(RESULTS / "E4-ablation", tmp_path / "E4-ablation")
    page = tmp_path / "E4-ablation" / "page.md"
    right = page.read_text(encoding="utf-8")
    assert not write_page(page)
    page.write_text(right.replace("published", "printed"), encoding="utf-8")
    assert write_page(page)
    assert page.read_text(encoding="utf-8") == right


def changed_e3(folder, change):
    """A copy of E3's table in which every AUC of p = 2 is another."""
    lines = (RESULTS / "E3" / "results.csv").read_text().splitlines(keepends=True)
    k = lines[0].split(",").index("auc")
    for i, line in enumerate(lines):
        cells = line.split(",")
        if cells[1] == "p = 2":
            cells[k] = str(change(float(cells[k])))
            lines[i] = ",".join(cells)
    (folder / "E3").mkdir(parents=True)
    (folder / "E3" / "results.csv").write_text("".join(lines))
    return folder


def test_a_table_that_changes_changes_the_text(tmp_path):
    rows = typed_rows(RESULTS / "E3" / "results.csv")
    clean = [100 * r["auc"] for r in rows if r["method"] == "p = 2" and r["noisy"] == 0]
    assert f"({np.mean(clean):.1f} against 98.1 with none," in noisy(RESULTS)
    moved = changed_e3(tmp_path / "moved", lambda auc: auc - 0.002)
    assert f"({np.mean(clean) - 0.2:.1f} against 98.1 with none," in noisy(moved)


def test_a_table_that_says_otherwise_stops_the_text(tmp_path):
    with pytest.raises(StaleClaimError, match="p = 2 is ahead"):
        noisy(changed_e3(tmp_path, lambda auc: 0.5))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_nearest_class_is_that_of_the_smallest_distance(power):
    off = {1: [2.0] * 10 + [5.0], 2: [0.0] * 10 + [12.0]}  # means 25/11 and 12/11
    auc = {
        ("wine", t, m): np.array([DELFT_AUC[m]["wine"][0] + d])
        for t in off
        for m, d in zip(PAPER_METHODS, off[t], strict=True)
    }
    distance = {t: np.mean(np.power(off[t], power)) ** (1 / power) for t in off}
    for t in off:
        assert distance_to_published(auc, "wine", t, power) == pytest.approx(distance[t])
    found = nearest_classes(auc, [("wine", 1), ("wine", 2)], power)
    assert found == {"wine": 2 if power == 1 else 1}


def test_claims_need_their_condition():
    assert state([True, 2 > 1], "so") == "so"
    with pytest.raises(StaleClaimError, match="no longer say: so"):
        state([True, False], "so")


def test_the_arena_is_told_as_it_is(tmp_path):
    """A table in which another is first stops the text."""
    (tmp_path / "arena").mkdir()
    for name in ("results.csv", "summary.csv"):
        shutil.copy(RESULTS / "arena" / name, tmp_path / "arena" / name)
    assert "the default is first" in arena(RESULTS)
    summary = tmp_path / "arena" / "summary.csv"
    lines = summary.read_text().splitlines(keepends=True)
    (worst,) = [line for line in lines if line.startswith("IsolationForest,")]
    (ours,) = [line for line in lines if line.startswith("MultiKernelFisherNull(),")]
    swapped = [
        "IsolationForest," + ours.partition(",")[2] if line == worst
        else "MultiKernelFisherNull()," + worst.partition(",")[2] if line == ours
        else line
        for line in lines
    ]  # fmt: skip
    summary.write_text("".join(swapped))
    with pytest.raises(StaleClaimError):
        arena(tmp_path)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 8.0, 1e6])
def test_the_figure_draws_points_of_unit_norm(p):
    b = boundary(p, 50)
    largest = b.max(axis=0)
    assert (b >= 0).all()
    norms = largest * ((b / largest) ** p).sum(axis=0) ** (1 / p)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-9)


def test_tables_are_read_with_their_types():
    row = typed_rows(RESULTS / "E10" / "timings.csv")[0]
    assert row["gap_reached"] is True
    assert isinstance(row["J"], int)
    assert isinstance(row["time_ms"], float)

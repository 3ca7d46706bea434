"""Rows that ``--missing flag`` flags: for their gaps, and for nothing else."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv


@pytest.fixture(scope="module")
def gaps(tables):
    """Three rows: whole, without a width, and far away by its own values."""
    rows = make_rows(3, 5).astype(object)
    rows[1, 3] = ""
    rows[2, :3] = 6.0
    return write_csv(tables / "gaps.csv", COLUMNS, rows)


def test_a_dropped_column_is_no_reason(tables, gaps):
    """It was named as a gap that flags its row."""
    done = kernull(
        "explain", "model.kernull", gaps.name, "--missing", "flag", "--drop", "col_b", "--row", "2",
        "--json", cwd=tables,
    )  # fmt: skip
    assert [column["column"] for column in json.loads(done.stdout)[0]["columns"]] == ["width"]


def test_a_rule_has_no_rarity(tables, gaps):
    """It had one of a million and more, of values that nobody measured."""
    done = kernull("score", "model.kernull", gaps.name, "--missing", "flag", cwd=tables)
    _, ruled, odd = csv.DictReader(io.StringIO(done.stdout))
    assert (ruled["flag"], odd["flag"]) == ("1", "1")
    assert (ruled["rarity"], ruled["evidence_colour"], ruled["view"]) == ("nan", "nan", "")
    assert ruled["remarks"] == "flagged by rule; empty: width"
    assert float(ruled["p"]) == pytest.approx(1 / 81)
    assert float(odd["rarity"]) > 80
    assert odd["view"] == "colour"
    assert odd["remarks"] == ""


def test_a_rule_is_named_where_rows_are_explained(tables, gaps):
    done = kernull("explain", "model.kernull", gaps.name, "--missing", "flag", cwd=tables)
    (said,) = (line for line in done.stdout.splitlines() if line.startswith("row 2"))
    assert said == "row 2: flagged by rule: for its gaps or new values, not for how unusual it is."
    asked = ("--missing", "flag", "--row", "2", "--json")
    (record,) = json.loads(
        kernull("explain", "model.kernull", gaps.name, *asked, cwd=tables).stdout
    )
    assert record["views"] == []  # they are those of invented values


def test_a_report_ranks_views_of_no_rule(tables, gaps):
    done = kernull("report", "model.kernull", gaps.name, "--missing", "flag", "-o", "-", cwd=tables)
    assert "flagged by rule; empty: width" in done.stdout
    assert '"remarks":"flagged by rule; empty: width","view":""' in done.stdout


@pytest.mark.parametrize("decision", ["evidence", "sum"])
def test_an_explanation_takes_rules(decision):
    from kernull import MultiKernelFisherNull

    rows = make_rows(60, 0)
    model = MultiKernelFisherNull(decision=decision).fit(rows)
    why = model.explain(rows[:2] + 9.0)
    ruled = why.flagged_by_rule(np.array([True, False]))
    assert ruled.words(0).startswith("flagged by rule")
    assert ruled.how_rare(0).startswith("flagged")
    assert ruled.words(1) == why.words(1)
    assert ruled.how_rare(1) == why.how_rare(1)
    assert (why.rarity is None) == (ruled.rarity is None) == (decision == "sum")
    if ruled.rarity is not None:
        assert np.isnan(ruled.rarity[0])
        assert ruled.rarity[1] == why.rarity[1]


def test_a_column_that_was_always_empty_is_named(tmp_path):
    """It flagged every row alike, and only remarks said why."""
    empty, full = np.full((60, 1), "", dtype=object), np.full((60, 1), 7.0, dtype=object)
    names = [*COLUMNS, "spare part"]
    write_csv(tmp_path / "train.csv", names, np.hstack([make_rows(60, 0).astype(object), empty]))
    write_csv(tmp_path / "new.csv", names, np.hstack([make_rows(60, 1).astype(object), full]))
    write_csv(tmp_path / "one.csv", names, [[0.0] * 6])
    assert kernull("fit", "train.csv", "-o", "m.kernull", cwd=tmp_path).returncode == 0
    score = ("score", "m.kernull", "-o", "s.csv")
    said = kernull(*score, "new.csv", cwd=tmp_path).stderr
    assert "60 have remarks" in said
    assert "60 rows are flagged for a number in 'spare part', which was always empty" in said
    assert "use --drop 'spare part'." in said
    dropped = kernull(*score, "new.csv", "--drop", "spare part", cwd=tmp_path).stderr
    assert "always empty" not in dropped
    one = kernull(*score, "one.csv", cwd=tmp_path).stderr
    assert "1 has remarks" in one
    assert "1 row is flagged for" in one

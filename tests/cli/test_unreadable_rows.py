"""Cells and lines that cannot be read cost their row, and no other."""

from __future__ import annotations

import json

from tests.cli.conftest import COLUMNS, kernull

#: Rows after a header of five columns: odd, unreadable, too short, odd.
SPOILT = "9,9,9,0,0\n0,x,0,inf,0\n0,0,0\n9,9,9,0,0\n"


def test_unreadable_rows_are_not_scored(tables):
    (tables / "spoilt2.csv").write_text(",".join(COLUMNS) + "\n" + SPOILT)
    done = kernull("score", "model.kernull", "spoilt2.csv", "--chunk-rows", "2", cwd=tables)
    assert done.returncode == 0
    assert "4 of 4 rows flagged (100.0%), 2 of them not judged." in done.stderr
    place = "row 2 (line 3) is not judged: in col_g, 'x' is not a number, in width, 'inf' is not"
    assert f"spoilt2.csv: {place} a finite number." in done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(",")[1] == "nan" for line in lines[1:]] == [False, True, True, False]
    why = kernull("explain", "model.kernull", "spoilt2.csv", "--row", "2", cwd=tables)
    assert why.stdout.startswith("row 2: flagged, not judged: in col_g, 'x' is not a number")
    assert place in why.stderr
    labelled = ",".join(COLUMNS) + ",y\n9,9,9,0,0,-1\n0,x,0,inf,0,1\n"
    (tables / "spoilt4.csv").write_text(labelled)
    judged = kernull("evaluate", "model.kernull", "spoilt4.csv", "--label", "y", cwd=tables)
    assert "1 rows count as flagged and are not judged." in judged.stdout
    summary = kernull("score", "model.kernull", "spoilt2.csv", "-o", "s.tsv", "--json", cwd=tables)
    assert json.loads(summary.stdout)["not_judged"] == 2
    page = kernull("report", "model.kernull", "spoilt2.csv", "-o", "spoilt.html", cwd=tables)
    assert (page.returncode, "line 4 has 3 cells" in page.stderr) == (1, True)
    kernull("fit", "train.csv", "-o", "strict.kernull", "--set", "missing=error", cwd=tables)
    strict = kernull("score", "strict.kernull", "spoilt2.csv", cwd=tables)
    assert strict.returncode == 1
    assert "complete or remove" in strict.stderr


def test_messages_name_options_that_the_command_has(tables):
    """Python's words for parameters become options; scoring has no --kind."""
    lines = (tables / "train.csv").read_text().splitlines()
    (tables / "bad.csv").write_text("\n".join([*lines, "1,2,x,4,5"]) + "\n")
    fit = kernull("fit", "bad.csv", "-o", "bad.kernull", cwd=tables)
    assert "(--drop 'col_b')" in fit.stderr
    assert "(--empty 'x'), or say what the column is: --kind 'col_b=category'." in fit.stderr
    kernull("fit", "train.csv", "-o", "strict.kernull", "--set", "missing=error", cwd=tables)
    score = kernull("score", "strict.kernull", "bad.csv", cwd=tables)
    assert score.stderr.endswith("'x' is not a number; correct it, or leave the cell empty.\n")
    (tables / "less.csv").write_text("col_r\n1\n")
    less = kernull("score", "model.kernull", "less.csv", cwd=tables)
    assert "has 1 of the 5 columns that the model was fitted on" in less.stderr
    (tables / "four.csv").write_text(",".join(COLUMNS[1:]) + "\n1,2,3,4\n")
    four = kernull("score", "model.kernull", "four.csv", cwd=tables)
    assert "To do without, use --drop NAME." in four.stderr


def test_a_model_without_a_table_is_refused(tables):
    import pandas

    from kernull import MultiKernelFisherNull, save

    save(MultiKernelFisherNull().fit(pandas.read_csv(tables / "train.csv")), tables / "a.kernull")
    done = kernull("score", "a.kernull", "new.csv", cwd=tables)
    assert done.returncode == 1
    assert "the model was fitted on an array, without a table; fit a Judge" in done.stderr


def test_a_stray_quote_is_an_error_of_the_file(tables):
    """The rows behind it were one row that was not judged, and the exit status was 0."""
    lines = (tables / "train.csv").read_text().splitlines()
    lines[50] = f'"{lines[50]}'
    (tables / "quote.csv").write_text("\n".join(lines) + "\n")
    score = kernull("score", "model.kernull", "quote.csv", "-o", "quote-out.csv", cwd=tables)
    fit = kernull("fit", "quote.csv", "-o", "quote.kernull", cwd=tables)
    for done in (score, fit):
        assert done.returncode == 1
        assert "quote.csv: a quote opened on line 51 is never closed" in done.stderr
    assert not (tables / "quote-out.csv").exists()

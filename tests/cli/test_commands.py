"""Commands in processes of their own: results, formats, exit codes, one-line errors."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pandas
import pytest

import kernull as library
from tests.cli.conftest import COLUMNS, environment, kernull, kernull_process, write_csv


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_scores_are_those_of_the_library(tables):
    done = kernull("score", "model.kernull", "new.csv", "-o", "scores.csv", cwd=tables)
    assert done.returncode == 0, done.stderr
    rows = rows_of((tables / "scores.csv").read_text())
    model = library.Judge.load(tables / "model.kernull")
    X = pandas.read_csv(tables / "new.csv")
    # All digits are written; explain and score_samples add up in another order.
    np.testing.assert_allclose(
        [float(r["score"]) for r in rows], model.score_samples(X), rtol=1e-12, atol=1e-14
    )
    found = [float(r["p"]) for r in rows]
    np.testing.assert_allclose(found, model.p_values(X), rtol=1e-9)
    np.testing.assert_array_equal([r["flag"] == "1" for r in rows], model.predict(X) == -1)
    assert [r["row"] for r in rows] == [str(i + 1) for i in range(40)]
    assert {r["view"] for r in rows[30:]} == {"colour"}
    assert "of 40 rows flagged" in done.stderr


def test_chunks_do_not_change_a_score(tables):
    whole = kernull("score", "model.kernull", "new.csv", cwd=tables)
    parts = kernull("score", "model.kernull", "new.csv", "--chunk-rows", "7", cwd=tables)
    a, b = rows_of(whole.stdout), rows_of(parts.stdout)
    assert [r["row"] for r in a] == [r["row"] for r in b]
    np.testing.assert_allclose(
        [float(r["score"]) for r in a], [float(r["score"]) for r in b], rtol=1e-12
    )


def test_standard_input_and_output(tables):
    content = (tables / "new.csv").read_bytes()
    piped = kernull("score", "model.kernull", "-", cwd=tables, stdin=content)
    direct = kernull("score", "model.kernull", "new.csv", cwd=tables)
    assert piped.returncode == 0
    assert piped.stdout == direct.stdout


def test_binary_tables_come_through_standard_input(tables, tmp_path):
    pandas.read_csv(tables / "new.csv").to_parquet(tmp_path / "t.parquet")
    piped = kernull(
        "score", "model.kernull", "-", cwd=tables, stdin=(tmp_path / "t.parquet").read_bytes()
    )
    assert piped.stdout == kernull("score", "model.kernull", "new.csv", cwd=tables).stdout


def test_columns_are_found_by_name_in_any_order(tables):
    rows = rows_of((tables / "new.csv").read_text())
    names = ["note", *reversed(COLUMNS)]
    cells = [["n", *(row[name] for name in reversed(COLUMNS))] for row in rows]
    write_csv(tables / "shuffled.csv", names, cells)
    done = kernull("score", "model.kernull", "shuffled.csv", "--keep", "note", cwd=tables)
    want = kernull("score", "model.kernull", "new.csv", cwd=tables)
    assert [r["score"] for r in rows_of(done.stdout)] == [r["score"] for r in rows_of(want.stdout)]
    assert rows_of(done.stdout)[0]["note"] == "n"


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_output_formats(tables, suffix):
    name = f"out.{suffix}"
    done = kernull("score", "model.kernull", "new.csv", "-o", name, "-q", cwd=tables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    want = [
        float(r["score"])
        for r in rows_of(kernull("score", "model.kernull", "new.csv", cwd=tables).stdout)
    ]
    if suffix == "jsonl":
        found = [json.loads(line)["score"] for line in (tables / name).read_text().splitlines()]
    else:
        found = pandas.read_parquet(tables / name)["score"]
    np.testing.assert_array_equal(found, want)


def test_reasons_in_a_spreadsheet(tables):
    openpyxl = pytest.importorskip("openpyxl")
    lines = (tables / "new.csv").read_text().splitlines()
    cells = ["part", *["=cmd|' /C calc'!A0"] * 40]
    named = "".join(f"{line},{cell}\n" for line, cell in zip(lines, cells, strict=True))
    (tables / "book.csv").write_text(named)
    done = kernull(
        "score", "model.kernull", "book.csv", "-o", "out.xlsx", "--keep", "part", cwd=tables
    )
    assert done.returncode == 0, done.stderr
    book = openpyxl.load_workbook(tables / "out.xlsx")
    head, *rows = book["rows"].iter_rows()
    place = {cell.value: i for i, cell in enumerate(head)}
    assert {"reasons", "reason_1", "value_1", "usual_1"} <= set(place)
    assert len(rows) == 40
    for row in rows:
        assert row[place["part"]].value == cells[1]
        assert row[place["part"]].data_type == "s"  # no formula
        flagged = row[place["flag"]].value == 1
        assert (row[0].fill.fgColor.rgb[2:] == "FFD9D6") == flagged
        assert bool(row[place["reason_1"]].value) == flagged
    facts = dict(book["summary"].iter_rows(values_only=True))
    assert facts["rows"] == 40
    assert facts["flagged"] == sum(row[place["flag"]].value for row in rows)


def test_kept_times_have_their_zone(tables):
    X = pandas.read_csv(tables / "new.csv")
    X["when"] = pandas.date_range("2024-03-31 00:30", periods=40, freq="h", tz="Europe/Berlin")
    X.to_parquet(tables / "zone.parquet")
    done = kernull("score", "model.kernull", "zone.parquet", "--keep", "when", cwd=tables)
    kept = [row["when"] for row in rows_of(done.stdout)]
    assert kept[:3] == [
        "2024-03-31 00:30:00+01:00", "2024-03-31 01:30:00+01:00", "2024-03-31 03:30:00+02:00",
    ]  # fmt: skip


def test_another_rate_everywhere(tables):
    rate = ["--false-alarm-rate", "0.3"]
    rows = rows_of(kernull("score", "model.kernull", "new.csv", *rate, cwd=tables).stdout)
    assert [r["flag"] == "1" for r in rows] == [float(r["p"]) <= 0.3 for r in rows]
    labels = ["--label", "class", "--normal", "good"]
    counted = kernull("evaluate", "model.kernull", "labelled.csv", *labels, *rate, cwd=tables)
    assert "asked for: 30.0%" in counted.stdout
    flagged = sum(r["flag"] == "1" for r in rows)
    page = kernull("report", "model.kernull", "new.csv", *rate, "-o", "-", cwd=tables).stdout
    assert f"{flagged} of 40 rows stand out" in page
    few = kernull("score", "model.kernull", "new.csv", "--false-alarm-rate", "0.0001", "-q",
                  "-o", "few.csv", cwd=tables)  # fmt: skip
    assert few.stderr.startswith("warning: --false-alarm-rate 0.0001 needs at least 9999")


def test_rows_without_a_label_are_left_out(tables):
    rows = (tables / "labelled.csv").read_text().splitlines()
    blank = [row.rpartition(",")[0] + "," for row in rows[1:6]]
    (tables / "blank.csv").write_text("\n".join([rows[0], *blank, *rows[1:]]) + "\n")
    rule = ["--label", "class", "--normal", "good"]
    whole = kernull("evaluate", "model.kernull", "labelled.csv", *rule, cwd=tables)
    some = kernull("evaluate", "model.kernull", "blank.csv", *rule, cwd=tables)
    assert some.stdout == whole.stdout
    assert "rows left out without a label in 'class': 5." in some.stderr
    page = kernull("report", "model.kernull", "blank.csv", *rule, "-o", "-", cwd=tables)
    assert f"of {len(rows) - 1} rows stand out" in page.stdout


def test_rows_of_another_kind_are_called_so(tables):
    rows = (tables / "new.csv").read_text().splitlines()
    (tables / "odd.csv").write_text("\n".join([rows[0], *2 * rows[-10:]]) + "\n")
    done = kernull("score", "model.kernull", "odd.csv", "-o", "s.csv", cwd=tables)
    said = "these rows are of another kind than those learned from; columns that differ most: col_"
    assert f"most judged rows are flagged: {said}" in done.stderr
    (tables / "few.csv").write_text("\n".join([rows[0], *rows[-10:]]) + "\n")
    few = kernull("score", "model.kernull", "few.csv", "-o", "s.csv", cwd=tables)
    assert "another kind" not in few.stderr
    usual = kernull("score", "model.kernull", "new.csv", "-o", "s.csv", cwd=tables)
    assert "another kind" not in usual.stderr


def test_tasks_and_groups(tables):
    rows = (tables / "train.csv").read_text().splitlines()
    tasks = ["line", *["A", "B"] * 40]
    (tables / "tasks.csv").write_text(
        "".join(f"{row},{task}\n" for row, task in zip(rows, tasks, strict=True))
    )
    fit = kernull("fit", "tasks.csv", "-o", "t.kernull", "--task", "line", "--json", cwd=tables)
    assert fit.returncode == 0, fit.stderr
    assert json.loads(fit.stdout)["tasks"] == ["A", "B"]
    for command in (["score"], ["explain"], ["info"]):
        data = [] if command == ["info"] else ["tasks.csv"]
        done = kernull(*command, "t.kernull", *data, cwd=tables)
        assert done.returncode == 0, done.stderr
    drift = kernull("score", "t.kernull", "tasks.csv", "--drift", cwd=tables)
    assert (drift.returncode, "no ranks in common" in drift.stderr) == (2, True)
    report = ["report", "t.kernull", "tasks.csv", "-o", "t.html"]
    assert kernull(*report, "--task", "B", "--json", cwd=tables).stdout.startswith(
        '{\n  "rows": 40'
    )
    for more in ([], ["--task", "C"]):
        refused = kernull(*report, *more, cwd=tables)
        assert (refused.returncode, "one of 'A', 'B'" in refused.stderr) == (2, True)
    by_group = kernull(
        "fit", "tasks.csv", "-o", "g.kernull", "--group", "line", "--false-alarm-rate", "0.4",
        "--json", cwd=tables,
    )  # fmt: skip
    assert json.loads(by_group.stdout)["false_alarm_rate"] == pytest.approx(0.4)


def test_json_everywhere(tables):
    lines = kernull("score", "model.kernull", "new.csv", "--json", cwd=tables).stdout
    assert [json.loads(line)["row"] for line in lines.splitlines()] == list(range(1, 41))
    info = json.loads(kernull("info", "model.kernull", "--json", cwd=tables).stdout)
    scalings = ("whiten", "quantile")
    kernels = {f"{view} {scaling}" for view in ("colour", "size") for scaling in scalings}
    assert set(info["weights"]) == kernels
    assert info["features"] == COLUMNS
    why = json.loads(
        kernull("explain", "model.kernull", "new.csv", "--row", "35", "--json", cwd=tables).stdout
    )
    assert why[0]["row"] == 35
    assert why[0]["views"][0]["view"] == "colour"
    fitted = kernull("fit", "train.csv", "-o", "j.kernull", "--set", "p=inf", "--json", cwd=tables)
    assert json.loads(fitted.stdout)["parameters"]["p"] == "inf"


def test_explain_in_words(tables):
    done = kernull("explain", "model.kernull", "new.csv", "--top", "2", cwd=tables)
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if line.startswith("row ")]
    assert len(lines) == 2
    assert all("flagged" in line and "colour" in line for line in lines)
    assert "is usual for rows like this" in done.stdout
    gone = kernull("explain", "model.kernull", "new.csv", "--row", "41", cwd=tables)
    assert (gone.returncode, "has 40 rows" in gone.stderr) == (2, True)


def test_explained_rows_go_to_a_file(tables):
    """The rows that are picked, with the columns of score."""
    pytest.importorskip("openpyxl")
    scored = rows_of(kernull("score", "model.kernull", "new.csv", cwd=tables).stdout)
    want = [row for row in scored if row["flag"] == "1"]
    command = ["explain", "model.kernull", "new.csv", "--flagged", "-o"]
    for suffix, read in {
        "csv": pandas.read_csv,
        "parquet": pandas.read_parquet,
        "xlsx": partial(pandas.read_excel, engine="openpyxl"),
    }.items():
        done = kernull(*command, f"why.{suffix}", cwd=tables)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        found = read(tables / f"why.{suffix}").sort_values("row")
        assert found["row"].tolist() == [int(row["row"]) for row in want]
        assert found["reason_1"].tolist() == [row["reason_1"] for row in want]
        assert found["score"].to_numpy() == pytest.approx([float(r["score"]) for r in want])
    assert kernull(*command, "why.pdf", cwd=tables).returncode == 2


def test_labels_keep_odd_rows_out_of_the_fit(tables):
    done = kernull(
        "fit", "labelled.csv", "-o", "l.kernull", "--label", "class", "--normal", "good", "--json",
        cwd=tables,
    )  # fmt: skip
    assert json.loads(done.stdout)["training_rows"] == 30


def test_categories_survive_the_file(tables):
    rng = np.random.default_rng(0)
    rows = [[*rng.normal(size=2), rng.choice(["red", "blue"])] for _ in range(40)]
    write_csv(tables / "cat.csv", ["a", "b", "paint"], rows)
    done = kernull("fit", "cat.csv", "-o", "c.kernull", cwd=tables)
    assert done.returncode == 0, done.stderr
    assert "category  1  paint (2 values)" in done.stderr
    assert json.loads(kernull("info", "c.kernull", "--json", cwd=tables).stdout)["features"] == [
        "a", "b", "paint",
    ]  # fmt: skip
    scored = kernull("score", "c.kernull", "cat.csv", cwd=tables)
    assert len(rows_of(scored.stdout)) == 40
    dropped = kernull("fit", "cat.csv", "-o", "d.kernull", "--drop", "paint", "--json", cwd=tables)
    assert json.loads(dropped.stdout)["features"] == ["a", "b"]


def test_explain_by_name_and_flagged(tables):
    rows = (tables / "new.csv").read_text().splitlines()
    named = [rows[0] + ",part", *(f"{row},P{i}" for i, row in enumerate(rows[1:]))]
    (tables / "named.csv").write_text("\n".join(named) + "\n")
    explain = ["explain", "model.kernull", "named.csv", "--id", "part", "--json"]
    one = json.loads(kernull(*explain, "--row", "P33", cwd=tables).stdout)
    assert [(record["row"], record["part"]) for record in one] == [(34, "P33")]
    flagged = json.loads(kernull(*explain, "--flagged", cwd=tables).stdout)
    scored = rows_of(kernull("score", "model.kernull", "named.csv", cwd=tables).stdout)
    assert {r["row"] for r in flagged} == {int(r["row"]) for r in scored if r["flag"] == "1"}
    assert all(r["columns"] and r["flag"] for r in flagged)
    twice = [rows[0] + ",part", rows[1] + ",P1", rows[33] + ",P2", rows[34] + ",P2"]
    (tables / "twice.csv").write_text("\n".join(twice) + "\n")
    command = ["explain", "model.kernull", "twice.csv", "--id", "part", "--row", "P2"]
    shown = kernull(*command, cwd=tables).stdout
    assert "row P2 (number 2): " in shown
    assert "row P2 (number 3): " in shown
    lost = kernull(*explain, "--row", "Q1", cwd=tables)
    assert (lost.returncode, "has no such part" in lost.stderr) == (2, True)


def test_evaluate_counts(tables):
    command = ["evaluate", "model.kernull", "labelled.csv", "--label", "class", "--normal", "good"]
    done = kernull(*command, "--json", cwd=tables)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    scored = rows_of(kernull("score", "model.kernull", "labelled.csv", cwd=tables).stdout)
    scores, odd = np.array([float(r["score"]) for r in scored]), np.arange(40) >= 30
    assert found["auc"] == pytest.approx(np.mean(scores[odd][:, None] < scores[~odd]))
    assert found["caught"] == sum(r["flag"] == "1" for r in scored[30:])
    assert f"AUC {found['auc']:.1%}" in kernull(*command, cwd=tables).stdout


def test_parameters_from_a_file_and_options(tables):
    """Of the model, of the table and of the judge; options come before the file."""
    (tables / "fit.toml").write_text(
        'p = 4\nfalse_alarm_rate = 0.1\nmissing = "error"\n'
        '[views]\ncolour = ["col_*"]\nsize = ["width"]\n[kinds]\ncol_g = "left out"\n'
    )
    fit = ["fit", "train.csv", "-o", "t.kernull", "--config", "fit.toml", "--json"]
    found = json.loads(kernull(*fit, cwd=tables).stdout)
    assert found["features"] == ["col_r", "col_b", "width"]
    assert found["parameters"]["p"] == 4
    assert found["false_alarm_rate"] == pytest.approx(0.1, abs=0.02)
    assert library.Judge.load(tables / "t.kernull").table_.missing == "error"
    more = ["--set", "p=2", "--set", "decision=sum", "--set", "widths=[1.0, 2.0]"]
    found = json.loads(kernull(*fit, *more, "--set", "missing=impute", cwd=tables).stdout)
    assert (found["parameters"]["p"], found["parameters"]["decision"]) == (2, "sum")
    assert len(found["weights"]) == 2 * 2 * 2  # views, scalings and widths
    assert library.Judge.load(tables / "t.kernull").table_.missing == "impute"
    for wrong, code, message in (
        ("q = 1", 2, "no parameter 'q'"), ("p = 'x'", 2, "--set p: got 'x'"),
        ("p =", 2, "not a TOML file"),
    ):  # fmt: skip
        (tables / "wrong.toml").write_text(wrong)
        done = kernull("fit", "train.csv", "-o", "w.kernull", "--config", "wrong.toml", cwd=tables)
        assert (done.returncode, message in done.stderr) == (code, True), done.stderr


def test_a_missing_view(tables):
    rows = (tables / "new.csv").read_text().splitlines()
    short = [",".join(row.split(",")[:3]) for row in rows]
    (tables / "dead.csv").write_text("\n".join(short) + "\n")
    refused = kernull("score", "model.kernull", "dead.csv", cwd=tables)
    assert (refused.returncode, "lacks 'width', 'height'" in refused.stderr) == (1, True)
    done = kernull("score", "model.kernull", "dead.csv", "--missing-view", "size", cwd=tables)
    X = pandas.read_csv(tables / "new.csv")
    model = library.Judge.load(tables / "model.kernull")
    found = rows_of(done.stdout)
    np.testing.assert_allclose(
        [float(r["score"]) for r in found],
        model.verdicts(X, missing_views=["size"]).why.scores,
        rtol=1e-9,
    )
    flags = model.verdicts(X, missing_views=["size"]).why.flagged
    assert [r["flag"] == "1" for r in found] == flags.tolist()
    assert all(r["remarks"] == "without view size" for r in found)


def test_gaps_by_row(tables):
    rows = (tables / "new.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    cells[1][0] = ""  # one of three colours: filled in
    cells[2][3:] = ["", "NA"]  # the whole size
    cells[3] = [""] * 5  # nothing there
    (tables / "holes.csv").write_text("\n".join(",".join(row) for row in cells) + "\n")
    found = rows_of(kernull("score", "model.kernull", "holes.csv", cwd=tables).stdout)
    whole = rows_of(kernull("score", "model.kernull", "new.csv", cwd=tables).stdout)
    assert [r["remarks"] for r in found[:4]] == [
        "empty: col_r", "empty: width, height", "empty: col_r, col_g, col_b, width and 1 more", "",
    ]  # fmt: skip
    assert [r["flag"] for r in found[:3]] == ["1", "1", "1"]  # no training row has a gap
    np.testing.assert_allclose(
        [float(r["score"]) for r in found[3:]], [float(r["score"]) for r in whole[3:]], rtol=1e-12
    )
    fit = ["fit", "train.csv", "-o", "strict.kernull", "--set", "missing=error"]
    assert kernull(*fit, cwd=tables).returncode == 0
    strict = kernull("score", "strict.kernull", "holes.csv", cwd=tables)
    assert "8 cells cannot be used: column 'col_r', row 1 (line 2): the cell is" in strict.stderr


def test_report_command(tables):
    done = kernull(
        "report", "model.kernull", "labelled.csv", "-o", "r.html", "--label", "class",
        "--normal", "good", cwd=tables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tables / "r.html").read_text()
    assert "Against the labels" in page
    assert "labelled.csv" in page


# -- what goes wrong -------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(tables, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = kernull("score", "model.kernull", "new.csv", "-o", str(locked / "s.csv"), cwd=tables)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


def test_a_closed_pipe_is_quiet(tables):
    """``kernull score ... | head -1``: the reader leaves, nobody complains."""
    big = tables / "big.csv"
    lines = (tables / "new.csv").read_text().splitlines()
    big.write_text("\n".join([lines[0], *lines[1:] * 500]) + "\n")
    command = f"{sys.executable} -m kernull.cli score model.kernull big.csv -q | head -n 1"
    bash = shutil.which("bash") or pytest.skip("needs bash")
    done = subprocess.run(
        [bash, "-c", f"set -o pipefail; {command}"],
        cwd=tables, capture_output=True, text=True, env=environment(), timeout=120, check=False,
    )  # fmt: skip
    reasons = [f"{what}_{k}" for k in (1, 2, 3) for what in ("reason", "value", "usual")]
    evidence = "rarity,evidence_colour,evidence_size,view,reasons"
    columns = ",".join(["row,score,p,flag", evidence, *reasons, "remarks"])
    assert done.stdout == f"{columns}\n"
    assert done.stderr == ""
    assert done.returncode == 0


def test_help_has_an_example(tables):
    for name in (
        "fit",
        "score",
        "explain",
        "report",
        "evaluate",
        "info",
    ):
        done = kernull(name, "--help", cwd=tables)
        assert done.returncode == 0
        assert f"Example: kernull {name}" in done.stdout


def test_help_names_exit_codes(tables):
    assert {"130", "143"} <= set(kernull("--help", cwd=tables).stdout.split())


@pytest.mark.skipif(os.name != "posix", reason="needs the processor time of children")
def test_help_starts_in_under_a_second(tables):
    """Processor time, which a busy machine does not change; scikit-learn alone would break it."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = kernull_process("--help", cwd=tables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "evaluate" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


@pytest.mark.parametrize("command", [[], ["fit"], ["score"], ["report"]])
def test_help_loads_no_numpy(tables, command):
    code = (
        "import sys; from kernull.cli import main; sys.argv[1:] = sys.argv[1:] + ['--help']\n"
        "try: main()\n"
        "finally: sys.stderr.write(' '.join({name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=tables, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Usage: kernull" in done.stdout
    loaded = set(done.stderr.split())
    assert {"typer", "kernull"} <= loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "pandas", "pyarrow"}


def test_errors_in_a_process_of_its_own(tables):
    lines = (tables / "new.csv").read_text().splitlines()
    (tables / "wide.csv").write_text("\n".join([*lines[:2], "1,2,3,wide,5"]) + "\n")
    kernull("fit", "train.csv", "-o", "strict.kernull", "--set", "missing=error", cwd=tables)
    done = kernull_process("score", "strict.kernull", "wide.csv", cwd=tables)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kernull: wide.csv: column 'width', row 2 (line 3)")
    assert done.stderr.count("\n") == 1
    content = (tables / "new.csv").read_bytes()
    piped = kernull_process("score", "model.kernull", "-", "-q", cwd=tables, stdin=content)
    assert piped.stdout == kernull("score", "model.kernull", "new.csv", cwd=tables).stdout


def test_unknown_options_are_usage_errors(tables):
    done = kernull("score", "--nope", cwd=tables)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_models_that_decide_by_evidence_say_more(tables):
    fit = [
        "fit",
        "train.csv",
        "-o",
        "e.kernull",
        "--view",
        "colour=col_*",
        "--set",
        "decision=evidence",
    ]
    done = kernull(*fit, "--view", "size=width,height", "-q", cwd=tables)
    assert done.returncode == 0, done.stderr
    found = rows_of(kernull("score", "e.kernull", "new.csv", cwd=tables).stdout)
    model = library.Judge.load(tables / "e.kernull")
    X = pandas.read_csv(tables / "new.csv")
    np.testing.assert_allclose([float(r["rarity"]) for r in found], model.rarity(X), rtol=1e-6)
    want = model.model_.evidence(X.to_numpy(), by="view")
    for v, view in enumerate(("colour", "size")):
        np.testing.assert_allclose(
            [float(r[f"evidence_{view}"]) for r in found], want[:, v], rtol=1e-6, atol=1e-9
        )
    assert {r["view"] for r in found[30:]} == {"colour"}
    gone = kernull("score", "e.kernull", "new.csv", "--missing-view", "size", cwd=tables)
    assert rows_of(gone.stdout)[0]["evidence_size"] == "nan"
    gone = kernull("score", "e.kernull", "new.csv", "--missing-view", "colour", cwd=tables)
    gone = rows_of(gone.stdout)
    want = model.model_.evidence(X.to_numpy(), by="view", missing_views=["colour"])[:, 1]
    np.testing.assert_allclose([float(r["evidence_size"]) for r in gone], want, rtol=1e-6)
    assert gone[0]["evidence_colour"] == "nan"
    page = kernull("report", "e.kernull", "new.csv", "-o", "-", cwd=tables).stdout
    assert "normal rows is as unusual" in page

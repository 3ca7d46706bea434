"""Commands in processes of their own: results, formats, exit codes, one-line errors."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import kernull as library
from tests.cli.conftest import COLUMNS, environment, kernull, kernull_process, write_csv


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_scores_are_those_of_the_library(tables):
    done = kernull("score", "model.kernull", "new.csv", "-o", "scores.csv", cwd=tables)
    assert done.returncode == 0, done.stderr
    rows = rows_of((tables / "scores.csv").read_text())
    model = library.load(tables / "model.kernull")
    X = np.loadtxt(tables / "new.csv", delimiter=",", skiprows=1)
    # All digits are written; explain and score_samples add up in another order.
    np.testing.assert_allclose(
        [float(r["score"]) for r in rows], model.score_samples(X), rtol=1e-12, atol=1e-14
    )
    found = [float(r["p_value"]) for r in rows]
    np.testing.assert_allclose(found, model.p_values(X), rtol=1e-9)
    np.testing.assert_array_equal([r["flag"] == "1" for r in rows], model.predict(X) == -1)
    assert [r["row"] for r in rows] == [str(i + 1) for i in range(40)]
    assert {r["top_view"] for r in rows[30:]} == {"colour"}
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
    X = np.loadtxt(tables / "new.csv", delimiter=",", skiprows=1)
    np.savez(tmp_path / "t.npz", **{name: X[:, i] for i, name in enumerate(COLUMNS)})
    piped = kernull(
        "score", "model.kernull", "-", cwd=tables, stdin=(tmp_path / "t.npz").read_bytes()
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


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz", "jsonl"])
def test_output_formats(tables, suffix):
    name = f"out.{suffix}"
    done = kernull("score", "model.kernull", "new.csv", "-o", name, "-q", cwd=tables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    want = [
        float(r["score"])
        for r in rows_of(kernull("score", "model.kernull", "new.csv", cwd=tables).stdout)
    ]
    if suffix == "npz":
        with np.load(tables / name) as archive:
            found = archive["score"]
    elif suffix == "jsonl":
        found = [json.loads(line)["score"] for line in (tables / name).read_text().splitlines()]
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        reader = pandas.read_parquet if suffix == "parquet" else pandas.read_feather
        found = reader(tables / name)["score"]
    np.testing.assert_array_equal(found, want)


def test_json_everywhere(tables):
    lines = kernull("score", "model.kernull", "new.csv", "--json", cwd=tables).stdout
    assert [json.loads(line)["row"] for line in lines.splitlines()] == list(range(1, 41))
    info = json.loads(kernull("info", "model.kernull", "--json", cwd=tables).stdout)
    kernels = {"colour standard", "colour whiten", "size standard", "size whiten"}
    assert set(info["weights"]) == kernels
    assert info["features"] == COLUMNS
    why = json.loads(
        kernull("explain", "model.kernull", "new.csv", "--row", "35", "--json", cwd=tables).stdout
    )
    assert why[0]["row"] == 35
    assert why[0]["views"][0]["view"] == "colour"
    fitted = kernull("fit", "train.csv", "-o", "j.kernull", "--p", "inf", "--json", cwd=tables)
    assert json.loads(fitted.stdout)["parameters"]["p"] == "inf"


def test_explain_in_words(tables):
    done = kernull("explain", "model.kernull", "new.csv", "--top", "2", cwd=tables)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("flagged" in line and "colour" in line for line in lines)
    gone = kernull("explain", "model.kernull", "new.csv", "--row", "41", cwd=tables)
    assert (gone.returncode, "has 40 rows" in gone.stderr) == (2, True)


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


def test_compare_lists_methods_by_auc(tables):
    done = kernull(
        "compare", "train.csv", "--test", "labelled.csv", "--label", "class", "--normal", "good",
        "--method", "lp MK-FN", "--method", "FN-Average", "--json", cwd=tables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {row["method"] for row in rows} == {"lp MK-FN", "FN-Average"}
    assert rows[0]["auc"] >= rows[1]["auc"] > 0.9


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

BAD = {
    "missing data file": (["score", "model.kernull", "no.csv"], 2, "no.csv: no such file"),
    "missing model file": (["score", "no.kernull", "new.csv"], 2, "no such model file"),
    "empty file": (["score", "model.kernull", "empty.csv"], 1, "the file is empty"),
    "text in a number column": (
        ["score", "model.kernull", "text.csv"], 1, "column 'width', row 2 (line 3): 'wide'",
    ),
    "missing columns": (["score", "model.kernull", "short.csv"], 1, "lacks 'width', 'height'"),
    "wrong model file": (["score", "new.csv", "new.csv"], 1, "new.csv"),
    "truncated model file": (["info", "cut.kernull"], 1, "cut.kernull"),
    "no such folder": (["score", "model.kernull", "new.csv", "-o", "no/s.csv"], 2, "no folder"),
    "cannot write": (["score", "model.kernull", "new.csv", "-o", "/proc/s.csv"], 1, "cannot write"),
    "unknown suffix": (["score", "model.kernull", "new.csv", "-o", "s.xlsx"], 2, "ends in .csv"),
    "view of no column": (
        ["fit", "train.csv", "-o", "x.kernull", "--view", "a=z*"], 2, "no column matches",
    ),
    "one row": (
        ["fit", "one.csv", "-o", "x.kernull"], 1, "one.csv: 1 normal row to learn from",
    ),
    "bad parameter": (["fit", "train.csv", "-o", "x.kernull", "--delta", "-1"], 2, "--delta"),
    "unknown kernel": (["fit", "train.csv", "-o", "x.kernull", "--kernel", "rbff"], 2, "--kernel"),
    "output is the input": (["fit", "train.csv", "-o", "train.csv"], 2, "is an input"),
    "ambiguous labels": (
        ["report", "model.kernull", "labelled.csv", "-o", "x.html", "--label", "class"], 2,
        "--normal VALUE",
    ),
    "unknown experiment column": (
        ["fit", "train.csv", "-o", "x.kernull", "--label", "nope"], 2, "no column 'nope'",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def broken(tables):
    (tables / "empty.csv").write_text("")
    lines = (tables / "new.csv").read_text().splitlines()
    cells = lines[2].split(",")
    cells[3] = "wide"
    (tables / "text.csv").write_text("\n".join([*lines[:2], ",".join(cells)]) + "\n")
    (tables / "one.csv").write_text("a,b\n1,2\n")
    (tables / "short.csv").write_text("col_r,col_g,col_b\n1,2,3\n")
    content = (tables / "model.kernull").read_bytes()
    (tables / "cut.kernull").write_bytes(content[: len(content) // 2])
    return tables


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_line_and_its_code(broken, case):
    args, code, said = BAD[case]
    if "/proc" in str(args) and sys.platform != "linux":
        pytest.skip("needs a folder that nobody can write to")
    before = sorted(os.listdir(broken))
    done = kernull(*args, cwd=broken)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    # What columns are is said before learning; what is wrong takes one line, the last.
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("Columns", "  "))]
    assert len(lines) == 1
    assert lines[0].startswith("kernull: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(os.listdir(broken)) == before  # no partial file


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(tables, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = kernull("score", "model.kernull", "new.csv", "-o", str(locked / "s.csv"), cwd=tables)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


def test_an_existing_file_survives_an_error(broken):
    target = broken / "kept.csv"
    target.write_text("old\n")
    done = kernull("score", "model.kernull", "text.csv", "-o", "kept.csv", cwd=broken)
    assert done.returncode == 1
    assert target.read_text() == "old\n"


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
    assert done.stdout == "row,score,p_value,flag,top_view,remarks\n"
    assert done.stderr == ""
    assert done.returncode == 0


def test_help_has_an_example(tables):
    for name in ("fit", "score", "explain", "report", "compare", "info", "demo", "reproduce"):
        done = kernull(name, "--help", cwd=tables)
        assert done.returncode == 0
        assert f"Example: kernull {name}" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="needs the processor time of children")
def test_help_starts_in_under_a_second(tables):
    """Processor time, which a busy machine does not change; scikit-learn alone would break it."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = kernull_process("--help", cwd=tables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "reproduce" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_errors_in_a_process_of_its_own(broken):
    done = kernull_process("score", "model.kernull", "text.csv", cwd=broken)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kernull: text.csv: column 'width', row 2 (line 3)")
    assert done.stderr.count("\n") == 1
    content = (broken / "new.csv").read_bytes()
    piped = kernull_process("score", "model.kernull", "-", "-q", cwd=broken, stdin=content)
    assert piped.stdout == kernull("score", "model.kernull", "new.csv", cwd=broken).stdout


def test_unknown_options_are_usage_errors(tables):
    done = kernull("score", "--nope", cwd=tables)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("names", [(), ("E4", "E10")])
def test_reproduce_says_where_the_experiments_are(tables, names):
    done = kernull("reproduce", *names, cwd=tables)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "make reproduce" in done.stderr
    assert f"python -m experiments {' '.join(names) or 'all'}`" in done.stderr


@pytest.mark.slow
def test_the_demo_ends_in_tables_and_a_report(tmp_path):
    done = kernull("demo", "--quiet", cwd=tmp_path)
    assert done.returncode == 0
    assert "lp MK-FN" in done.stdout
    assert "duality gap" in done.stdout
    assert (tmp_path / "demo/report.html").stat().st_size < 10**6
    assert library.load(tmp_path / "demo/model.kernull").gap_ <= 1e-6

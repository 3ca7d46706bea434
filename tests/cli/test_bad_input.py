"""Bad input: one clear line each, the right exit code, and nothing is written."""

from __future__ import annotations

import gzip
import os
import sys

import pytest

from tests.cli.conftest import kernull

FIT = ["fit", "train.csv", "-o", "x.kernull"]
LABELS = ["--label", "class", "--normal", "good"]


def fit(name: str, *more: str) -> list[str]:
    return ["fit", name, "-o", "x.kernull", *more]


def score(name: str, *more: str) -> list[str]:
    return ["score", "model.kernull", name, *more]


#: What is wrong: the command, its exit code, and what the line says.
BAD: dict[str, tuple[list[str], int, str]] = {
    # files that are not there, or are something else
    "missing data file": (score("no.csv"), 2, "no.csv: no such file"),
    "missing model file": (["score", "no.kernull", "new.csv"], 2, "no such model file"),
    "a folder as data": (score("folder"), 2, "folder: is a folder"),
    "a folder as model": (["score", "folder", "new.csv"], 2, "is a folder; expected a model"),
    "empty file": (score("empty.csv"), 1, "the file is empty"),
    "nothing on standard input": (score("-"), 1, "standard input: is empty"),
    "wrong model file": (["score", "new.csv", "new.csv"], 1, "new.csv"),
    "model and table swapped": (
        ["score", "new.csv", "model.kernull"], 2, "comes first: model.kernull new.csv",
    ),
    "a model to learn from": (fit("model.kernull"), 1, "model.kernull: is a model; expected a t"),
    "truncated model file": (["info", "cut.kernull"], 1, "cut.kernull"),
    "an Excel file called csv": (fit("excel.csv"), 1, "is not a text file but an Excel or ZIP"),
    "an old Excel file": (fit("old.csv"), 1, "an old Excel file; call it .xls"),
    "not an Excel file": (fit("text.xlsx"), 1, "is not an Excel file"),
    "not a Parquet file": (fit("text.parquet"), 1, "is not a Parquet file"),
    "not compressed": (fit("text.csv.gz"), 1, "text.csv.gz: cannot be read"),
    "cut while compressed": (fit("cut.csv.gz"), 1, "cut.csv.gz: cannot be read"),
    "zero bytes": (fit("zeros.csv"), 1, "holds zero bytes"),
    # tables that are broken
    "header only": (fit("header.csv"), 1, "has columns but no rows"),
    "ragged rows": (fit("ragged.csv"), 1, "line 3 has 1 cells, the header has 2"),
    "columns of one name": (fit("twice.csv"), 1, "columns 1 and 2 are called 'a'"),
    "a quote that is not closed": (fit("quote.csv"), 1, "near the header"),
    "text in a number column": (
        ["score", "strict.kernull", "text.csv"], 1, "column 'width', row 2 (line 3): 'wide'",
    ),
    "infinite numbers": (
        ["score", "strict.kernull", "inf.csv"], 1,
        "column 'width', row 1 (line 2): 'inf' is not a finite number; correct it, or leave",
    ),
    "decimal commas among commas": (fit("comma.csv"), 1, "line 2 has 4 cells"),
    "missing columns": (score("short.csv"), 1, "lacks 'width', 'height'"),
    "one row": (fit("one.csv"), 1, "one.csv: 1 normal row(s) to learn from"),
    "nothing but identifiers": (fit("ids.csv"), 1, "no column is left to learn from"),
    # options
    "unknown encoding": ([*FIT, "--encoding", "klingon"], 2, "--encoding: got 'klingon'"),
    "long separator": ([*FIT, "--sep", ";;"], 2, "--sep: got ';;'; expected one character"),
    "wrong decimal mark": ([*FIT, "--decimal", "x"], 2, "--decimal: got 'x'"),
    "unknown kind": ([*FIT, "--kind", "width=colour"], 2, "--kind: got 'colour' for 'width'"),
    "misspelt kind": ([*FIT, "--kind", "width=numbr"], 2, "(did you mean 'number'?); expected"),
    "kind without a column": ([*FIT, "--kind", "category"], 2, "expected PATTERN=KIND"),
    "dates that are none": ([*FIT, "--kind", "width=date"], 1, "its cells are not dates"),
    "view of no column": ([*FIT, "--view", "a=z*"], 2, "no column matches"),
    "unknown view": (score("new.csv", "--missing-view", "z"), 2, "no view 'z'; the model has"),
    "no view left": (
        score("new.csv", "--missing-view", "size", "--missing-view", "colour"), 2,
        "leave at least one column of the model",
    ),
    "bad parameter": ([*FIT, "--set", "delta=-1"], 2, "--set delta: got -1"),
    "a rate in percent": (
        [*FIT, "--false-alarm-rate", "5"], 2, "got 5.0; expected a number in (0, 1); 5.0% is 0.05.",
    ),
    "a number that is too large": (fit("large.csv"), 1, "'1e400' is too large: numbers go up to"),
    "unknown solver": ([*FIT, "--set", "solver=newtn"], 2, "--set solver: got 'newtn'; expected"),
    "unknown parameter": ([*FIT, "--set", "solvr=newton"], 2, "'solvr' (did you mean 'solver'?)"),
    "a parameter without a value": ([*FIT, "--set", "p"], 2, "expected NAME=VALUE, such as p=4"),
    "a file of views": ([*FIT, "--views", "views.toml"], 2, "[views] is --config FILE"),
    "unknown way with gaps": ([*FIT, "--set", "missing=eror"], 2, "(did you mean 'error'?)"),
    "unknown dates": ([*FIT, "--set", "dates=part"], 2, "(did you mean 'parts'?); expected one of"),
    "no such config": ([*FIT, "--config", "no.toml"], 2, "no.toml: no such file"),
    "nothing to keep": (score("new.csv", "--keep", "zz"), 2, "--keep: no column matches 'zz'"),
    "a row that is no number": (
        ["explain", "model.kernull", "new.csv", "--row", "P1"], 2, "got 'P1'; expected a number",
    ),
    "unknown column of names": (
        ["explain", "model.kernull", "new.csv", "--id", "part"], 2, "no column 'part'",
    ),
    # labels
    "ambiguous labels": (
        ["report", "model.kernull", "labelled.csv", "-o", "x.html", "--label", "class"], 2,
        "--normal VALUE",
    ),
    "unknown label column": ([*FIT, "--label", "nope"], 2, "no column 'nope'"),
    "unknown label": (
        ["evaluate", "model.kernull", "labelled.csv", "--label", "class", "--normal", "fine"], 2,
        "no row of labelled.csv has class = 'fine'",
    ),
    "labels of one kind": (
        ["evaluate", "model.kernull", "allgood.csv", *LABELS], 1, "all rows have the same label",
    ),
    # output
    "no such folder": (score("new.csv", "-o", "no/s.csv"), 1, "cannot write there (No such file"),
    "cannot write": (score("new.csv", "-o", "/proc/s.csv"), 1, "cannot write"),
    "a report in PDF": (
        ["report", "model.kernull", "new.csv", "-o", "x.pdf"], 2, "ends in .html (a browser",
    ),
    "unknown suffix": (score("new.csv", "-o", "s.pdf"), 2, "ends in .csv"),
    "output is the input": (["fit", "train.csv", "-o", "train.csv"], 2, "is an input"),
}  # fmt: skip


@pytest.fixture(scope="module")
def broken(tables):
    write = {
        "empty.csv": "", "one.csv": "a,b\n1,2\n", "short.csv": "col_r,col_g,col_b\n1,2,3\n",
        "header.csv": "a,b\n", "ragged.csv": "a,b\n1,2\n3\n", "twice.csv": "a,a\n1,2\n3,4\n",
        "quote.csv": 'a,"b\n' + "1,2\n" * 50_000, "comma.csv": "a,b\n" + "1,5,2,5\n" * 30,
        "names.csv": '"width, mm",b\n1,2\n3,4\n', "large.csv": "a,b\n1,2\n3,4\n1e400,2\n",
        "text.xlsx": "a,b\n1,2\n", "text.parquet": "a,b\n1,2\n", "text.csv.gz": "a,b\n1,2\n",
        "ids.csv": "serial\n" + "".join(f"{i}\n" for i in range(50)),
    }  # fmt: skip
    for name, text in write.items():
        (tables / name).write_text(text)
    (tables / "folder").mkdir()
    kernull("fit", "train.csv", "-o", "strict.kernull", "--set", "missing=error", cwd=tables)
    (tables / "excel.csv").write_bytes(b"PK\x03\x04" + b"x" * 100)
    (tables / "old.csv").write_bytes(b"\xd0\xcf\x11\xe0" + b"x" * 100)
    (tables / "zeros.csv").write_bytes(b"a,b\n1,\0\n")
    (tables / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1.25,2\n" * 9000)[:-40])
    lines = (tables / "new.csv").read_text().splitlines()
    for name, row, cell in (("text.csv", 2, "wide"), ("inf.csv", 1, "inf")):
        cells = lines[row].split(",")
        cells[3] = cell
        (tables / name).write_text("\n".join([*lines[:row], ",".join(cells)]) + "\n")
    labelled = (tables / "labelled.csv").read_text().splitlines()
    (tables / "allgood.csv").write_text("\n".join(labelled[:31]) + "\n")
    content = (tables / "model.kernull").read_bytes()
    (tables / "cut.kernull").write_bytes(content[: len(content) // 2])
    return tables


def test_there_are_thirty_cases_and_more():
    assert len(BAD) >= 30


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


def test_an_existing_file_survives_an_error(broken):
    target = broken / "kept.csv"
    target.write_text("old\n")
    done = kernull("score", "strict.kernull", "text.csv", "-o", "kept.csv", cwd=broken)
    assert done.returncode == 1
    assert target.read_text() == "old\n"

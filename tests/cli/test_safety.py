"""What files hold is shown, never obeyed: by the terminal, or by a spreadsheet."""

from __future__ import annotations

import csv
import io
import json

import pytest

from kernull import Judge, load
from kernull._text import visible
from kernull.cli._output import RowWriter, plain_cell
from kernull.errors import ModelFileError, TableError
from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv
from tests.plain import plain_fisher

#: Title, clipboard, cursor, a C1 control, and marks that turn the direction of text around.
ATTACK = "v\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1b[2A\x9b31m\u202egnp.exe\u2066"


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A model whose views, columns and parameters are out for the terminal."""
    folder = tmp_path_factory.mktemp("evil")
    X = make_rows(60, 0)
    views = {ATTACK: ["col_*"], "[red]:bomb: size": ["width", "height"]}
    judge = Judge(plain_fisher(), views).fit(dict(zip(COLUMNS, X.T, strict=True)))
    judge.save(folder / "model.kernull")
    write_csv(folder / "new.csv", COLUMNS, make_rows(20, 1, shift=3.0))
    return folder


def acts(text: str) -> list[str]:
    return [c for c in text if not (c.isprintable() or c in "\n\t")]


@pytest.mark.parametrize(
    "command",
    [
        ["info", "model.kernull"],
        ["explain", "model.kernull", "new.csv"],
        ["score", "model.kernull", "none-\x1b[31m.csv"],
        ["score", "model.kernull", "new.csv", "--keep", "\x1b]0;x\x07*"],
        ["report", "model.kernull", "new.csv", "--id", "\x1b[2J"],
        ["report", "model.kernull", "new.csv", "-o", "-"],
        ["info", "model.kernull", "--json"],
        ["explain", "model.kernull", "new.csv", "--json"],
    ],
    ids=str,
)
def test_nothing_that_acts_reaches_the_terminal(evil, command):
    done = kernull(*command, cwd=evil)
    assert acts(done.stdout + done.stderr) == []


def test_names_are_shown_as_they_are(evil):
    said = kernull("info", "model.kernull", cwd=evil).stdout
    assert r"v\x1b]0;owned\x07" in said
    assert "[red]:bomb: size" in said


def test_what_python_prints_of_a_file_does_not_act(evil):
    model = load(evil / "model.kernull")
    why = model.explain(make_rows(5, 1, shift=3.0))
    printed = [repr(model.kernel_set_), repr(why), *(why.words(i) for i in range(5))]
    printed += [str(ModelFileError(f"kind is {ATTACK}")), str(TableError(ATTACK))]
    assert all(acts(text) == [] for text in printed)
    assert r"\x1b]0;owned" in why.words(0)


def test_csv_on_a_terminal_is_shown_and_in_a_file_kept():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for file, expected in ((Terminal(), visible(ATTACK)), (io.StringIO(), ATTACK)):
        RowWriter(file, ["name", "score"]).write([[ATTACK], [1.0]])
        assert list(csv.reader(io.StringIO(file.getvalue())))[1][0] == expected


@pytest.mark.parametrize("cell", ["=1+1", "+1-cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1"])
def test_cells_that_a_spreadsheet_would_run_are_text(cell):
    assert plain_cell(cell) == f"'{cell}"
    for kind, delimiter in ((".csv", ","), (".tsv", "\t")):
        file = io.StringIO()
        RowWriter(file, [cell, "score"], kind).write([[cell], [-1.5]])
        rows = list(csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=delimiter))
        written = f"'{cell}".replace("\r", "\n")  # one kind of line end within cells
        assert rows == [[written, "score"], [written, "-1.5"]]


@pytest.mark.parametrize("cell", ["-1.5", "+3", "-1e-3", "a=b", "", "'=1", 4, -2.5, None])
def test_other_cells_stay(cell):
    assert plain_cell(cell) == cell


def test_formulas_in_copied_columns(evil):
    rows = [[*row, '=HYPERLINK("http://x")'] for row in make_rows(3, 1).tolist()]
    with (evil / "named.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*COLUMNS, "id"], *rows])
    command = ["score", "model.kernull", "named.csv", "--keep", "id", "--drop", "id", "-q"]
    done = kernull(*command, cwd=evil)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(r["id"].startswith("'=HYP") for r in csv.DictReader(io.StringIO(done.stdout)))
    lines = kernull(*command, "--json", cwd=evil).stdout.splitlines()
    assert json.loads(lines[0])["id"].startswith("=HYP")  # JSON has no formulas


def test_visible_text_stays_as_it_is():
    for text in ("größe", "日本語", "a b", "5\u00a0µm", "\u0645\u06cc\u200c\u062e\u0648"):
        assert visible(text) == text
    assert visible("a\nb") == r"a\nb"
    assert visible("a\nb", keep="\n") == "a\nb"

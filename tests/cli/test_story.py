"""The factory table: the guide on tables, command by command, with what it prints."""

from __future__ import annotations

import csv
import runpy
import sys

import pytest

from kernull import Judge, MultiKernelFisherNull, TableViews, load, load_views, read_table
from kernull.errors import GapsWarning
from tests.cli.story import PAGE, ROOT, commands, run, same, shown

pytest.importorskip("openpyxl", reason="openpyxl is not installed")
pytest.importorskip("python_calamine", reason="python-calamine is not installed")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The folder of the story, and what each command printed."""
    folder = tmp_path_factory.mktemp("factory")
    page = commands(PAGE.read_text(encoding="utf-8"))
    return folder, [(line, output, run(line, folder)) for line, output in page]


def test_the_guide_prints_what_the_commands_do(told):
    _, story = told
    for line, printed, output in story:
        assert same(printed, shown(output)), f"$ {line}\n{output}"
    assert [line for line, _, _ in story[:2]] == [
        "python examples/factory_table.py factory", "cd factory"
    ]  # fmt: skip
    used = {line.split()[1] for line, _, _ in story if line.startswith("kernull")}
    assert used >= {"fit", "score", "explain", "report", "evaluate"}


@pytest.mark.parametrize(
    ("page", "output", "alike"),
    [
        ("(-12.4013) 5.9%", "(-12.4012) 5.9%", True),
        ("gap 6.2e-07,", "gap 6.3e-07,", True),
        ("59 of 1,000 rows", "58 of 1,000 rows", False),
        ("1 in 200,000", "1 in 210,000", False),
        ("score -12.401,", "score -12.501,", False),
        ("p = 0.0035", "p = 0.0030", False),
    ],
)
def test_only_last_digits_of_what_is_measured_may_differ(page, output, alike):
    assert same(page, output) is alike


def test_three_ways_to_write_a_table_give_the_same_scores(told):
    folder, _ = told
    texts = [(folder / name).read_text() for name in ("scores.csv", "german.csv", "excel.csv")]
    assert texts[0] == texts[1] == texts[2]
    assert len(texts[0].splitlines()) == 1001


def test_the_factory_is_as_described(told):
    folder, _ = told
    rows = list(csv.DictReader((folder / "normal.csv").read_text().splitlines()))
    empty = [not cell for row in rows for name, cell in row.items() if name != "sensor_7"]
    assert len(rows) == 2000
    assert 0.01 < sum(empty) / len(empty) < 0.03
    assert {row["sensor_7"] for row in rows} == {"0.0"}


def test_python_does_what_the_command_line_does(told):
    folder, _ = told
    table = TableViews(kinds={"shift": "category"})
    with pytest.warns(GapsWarning, match="empty cells of the training rows"):
        X = table.fit_transform(read_table(folder / "normal.csv"))
    model = MultiKernelFisherNull(false_alarm_rate=0.02).fit(X)
    new = read_table(folder / "new.csv")
    scores = [
        float(row["score"])
        for row in csv.DictReader((folder / "scores.csv").read_text().splitlines())
    ]
    assert model.score_samples(table.transform(new)) == pytest.approx(scores, rel=1e-9)
    saved, stored = load(folder / "factory.kernull"), load_views(folder / "factory.kernull")
    assert saved.score_samples(stored.transform(new)) == pytest.approx(scores, rel=1e-9)
    judge = Judge.load(folder / "factory.kernull")
    assert judge.score_samples(new) == pytest.approx(scores, rel=1e-9)


def test_without_openpyxl_the_other_files_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.setattr(sys, "argv", ["factory_table.py", str(tmp_path / "factory")])
    runpy.run_path(str(ROOT / "examples" / "factory_table.py"), run_name="__main__")
    assert "new.xlsx: it needs openpyxl" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "factory").iterdir()}
    assert names == {"normal.csv", "new.csv", "new_german.csv", "factory.toml", "views.toml"}

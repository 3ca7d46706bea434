"""Columns that are not learned from, and what they always were: constants and copies."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import make_pipeline

from kernull import Judge, MultiKernelFisherNull, TableViews, load_views, save
from tests.cli.conftest import kernull, write_csv
from tests.tables.test_views import factory


def test_constants_and_copies_are_looked_at():
    """A dead sensor that speaks, or a copy that differs, was never seen again."""
    rows = factory(80)
    rows["sensor_7"], rows["line"] = [0.0] * 80, [f"L{m}" for m in rows["machine"]]
    table = TableViews().fit(rows)
    new = factory(6, seed=3)
    new["sensor_7"], new["line"] = [0, 0, 99, None, "0.0", 0], [f"L{m}" for m in new["machine"]]
    new["fahrenheit"][3] = 500.0
    new["site"][4], new["site"][5] = "south", None
    line, new["line"][5] = new["line"][5], "Lx"
    found, agreed = table.read(new), ", with which it always agreed in training"
    warm = 32 + 1.8 * new["celsius"][3]
    assert [(b.row, b.column, b.value, b.rule) for b in found.breaches] == [
        (4, "site", "'south'", "always 'north' in training"),
        (3, "fahrenheit", "500", f"{warm:.9g} by celsius{agreed}"),
        (2, "sensor_7", "99", "always 0 in training"),
        (5, "line", "'Lx'", f"{line!r} by machine{agreed}"),
    ]
    # Numbers are evidence by themselves, as in arrays; texts are told, as new categories are.
    assert found.by_rule.tolist() == [False, False, True, True, False, False]
    table.missing = "flag"
    assert table.read(new).by_rule.tolist() == [False, False, True, True, True, True]
    assert table.read(new, absent=["sensor_7", "celsius", "site"]).breaches[0].column == "line"
    del new["sensor_7"], new["site"], new["line"], new["fahrenheit"]
    assert table.read(new).breaches == ()


def test_a_constant_off_flags_its_row_in_tables_as_in_arrays():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(100, 3)), np.full(100, 5.0)])
    rows = np.array([X[0], X[1]])
    rows[1, 3] = 5.001
    plain = MultiKernelFisherNull().fit(X)
    model = Judge().fit(X)
    assert plain.predict(rows).tolist() == model.predict(rows).tolist() == [1, -1]
    (reason,) = model.explain(rows).table(by="column")
    assert reason["words"] == "x3 is 5.001; always 5 in training."


def test_a_value_where_all_was_empty_is_looked_at(tmp_path):
    rows = factory(80) | {"error": [None] * 80, "x": np.full(80, np.nan)}
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(rows)
    save(model, tmp_path / "m.kernull")
    new = factory(4, seed=3) | {"error": ["", 17, "broken", "n/a"], "x": [np.nan] * 3 + [0.5]}
    for table in (model[0], load_views(tmp_path / "m.kernull")):
        found = table.read(new)
        rule = "always empty in training"
        assert [(b.row, b.column, b.value, b.rule) for b in found.breaches] == [
            (1, "error", "17", rule),
            (2, "error", "'broken'", rule),
            (3, "x", "0.5", rule),
        ]
        assert found.by_rule.tolist() == [False, True, False, True]  # texts are told
    words = {reason["words"] for reason in Judge().fit(rows).explain(new).table(by="column")}
    assert {f"{said}; {rule}." for said in ("error is 17", "x is 0.5")} <= words


def test_copies_that_are_far_out_are_copies():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    views = TableViews().fit({"mm": x, "inch": x / 25.4, "y": rng.normal(size=200)})
    new = np.r_[x, 1e6, -1e-9]
    assert views.read({"mm": new, "inch": new / 25.4, "y": new}).breaches == ()
    assert len(views.read({"mm": new, "inch": new / 25.4 * 1.001, "y": new}).breaches) > 190


def test_what_columns_always_were_is_kept_in_files(tmp_path):
    rows = factory(80)
    rows["line"], rows["dead"] = [f"L{m}" for m in rows["machine"]], [0.1] * 80
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(rows)
    save(model, tmp_path / "m.kernull")
    again = load_views(tmp_path / "m.kernull")
    assert again.columns_ == model[0].columns_
    new = factory(2, seed=3) | {"line": ["L", "L"], "dead": [0.1, 0.2], "site": ["south"] * 2}
    new["fahrenheit"] = [0.0, 1.0]
    assert again.read(new).breaches == model[0].read(new).breaches
    assert len(again.read(new).breaches) == 7


def test_the_command_line_tells_them(tmp_path):
    rng = np.random.default_rng(0)
    names = ["a", "b", "dead", "site"]
    rows = [[*cells, 0, "north"] for cells in rng.normal(size=(60, 2)).round(4).tolist()]
    write_csv(tmp_path / "train.csv", names, rows)
    odd = [rows[0], [*rows[1][:2], 7, "north"], [*rows[2][:3], "south"]]
    write_csv(tmp_path / "new.csv", names, odd)
    views = ["--view", "first=a,dead", "--view", "second=b,site"]
    assert kernull("fit", "train.csv", "-o", "m", *views, cwd=tmp_path).returncode == 0

    def said(*options: str) -> list[str]:
        done = kernull("score", "m", "new.csv", *options, cwd=tmp_path)
        return [line.rpartition(",")[2] for line in done.stdout.splitlines()[1:]]

    south = "site is 'south' (always 'north' in training)"
    assert said() == ["", "flagged by rule; dead is 7 (always 0 in training)", south]
    assert said("--missing", "flag")[2] == f"flagged by rule; {south}"
    assert said("--drop", "dead") == ["", "", south]
    assert said("--missing-view", "first")[1] == "without view first"
    words = kernull("explain", "m", "new.csv", "--row", "2", cwd=tmp_path).stdout
    assert "  dead is 7; always 0 in training." in words

"""Tables as people write them: clocks, codes, units, odd marks for nothing, names of any kind."""

import gzip
import io
import sys
import types
import warnings
from dataclasses import replace
from datetime import time

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from kernull import Judge, MultiKernelFisherNull, TableViews, read_table
from kernull.errors import TableError
from kernull.tables import Table, as_table, open_table
from kernull.tables.cells import as_numbers, date_format

N = 120


def kinds_of(**columns):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=N), "b": rng.normal(size=N), **columns}
    return {c.name: c for c in TableViews().fit(table).columns_}


@pytest.mark.filterwarnings("ignore:.*never turns back")
def test_clocks_meters_and_lots_are_left_out():
    rng = np.random.default_rng(1)
    clock = 1.7e9 + np.cumsum(rng.exponential(30.0, N))
    found = kinds_of(
        clock=clock,
        shuffled=rng.permutation(clock).round(),
        read_time=rng.permutation(clock),
        meter=np.cumsum(rng.exponential(1.0, N)),
        lot=np.repeat(np.arange(12), 10) + 778_000,
        rework=np.sort(np.r_[np.arange(N - 3), 4, 9, 9]) + 100,
        order_no=rng.choice(10**6, N, replace=False),
    )
    for name in ("clock", "shuffled", "read_time", "meter", "lot", "rework", "order_no"):
        assert found[name].kind == "identifier", name
    assert "clock" in found["meter"].why


def test_measures_stay():
    rng = np.random.default_rng(2)
    found = kinds_of(
        counts=rng.integers(0, 30_000, N),  # distinct whole numbers that name nothing
        steps=np.repeat([1.0, 2.0, 3.0], N // 3),  # sorted, of few values
        fluid=rng.choice(10**6, N, replace=False),  # ends in "id"
        wave=np.sin(np.arange(N)),
        ohm=rng.normal(1.2e9, 1e7, N),  # as large as seconds since 1970
        cells=rng.normal(1.2e9, 1e7, N).round(),
    )
    assert {c.kind for c in found.values()} == {"number"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("batch weight", "number"), ("lot size", "number"), ("No. of pores", "number"),
        ("serial resistance", "number"), ("order_volume", "number"), ("index_sum", "number"),
        ("batch", "identifier"), ("Part No.", "identifier"), ("LOT", "identifier"),
        ("serialNumber", "identifier"), ("id_customer", "identifier"), ("order id", "identifier"),
    ],
)  # fmt: skip
def test_names_of_identifiers_end_in_what_they_are(name, kind):
    values = np.random.default_rng(2).choice(10**6, N, replace=False)
    assert kinds_of(**{name: values})[name].kind == kind


def test_whole_numbers_that_may_be_codes_are_said():
    rng = np.random.default_rng(2)
    found = kinds_of(article=rng.choice([4711, 4712, 5500], N), on=rng.integers(2, size=N))
    assert (found["article"].kind, found["article"].why) == ("number", "3 whole numbers")
    assert (found["on"].kind, found["on"].why) == ("number", "")


def in_order(rng: np.random.Generator, n: int) -> dict[str, tuple[np.ndarray, str, str]]:
    """Columns that never turn back: values, kind, and what the warning says (empty: none)."""
    left_out, sorted_by = "left out as a clock", "sorted by, it seems"
    clock = 1.7e9 + 60.0 * np.arange(n) + rng.normal(0.0, 5.0, n)
    amounts = np.exp(rng.normal(4.0, 0.5, n))
    return {
        "counter": (7.0 + 3.0 * np.arange(n), "identifier", ""),
        "epoch": (np.sort(clock), "identifier", ""),
        "since start": (np.sort(clock - 1.7e9), "identifier", ""),
        "pauses": (np.cumsum(60.0 + 9e3 * (rng.random(n) < 0.02)), "identifier", ""),
        "lots": (np.repeat(np.arange(n // 10), 10), "identifier", left_out),
        "arrivals": (np.cumsum(rng.exponential(size=n)), "identifier", left_out),
        "uniform": (np.sort(rng.uniform(size=n)), "identifier", left_out),
        "normal": (np.sort(rng.normal(size=n)), "number", sorted_by),
        "lognormal": (np.sort(amounts), "number", sorted_by),
        "descending": (-np.sort(-amounts), "number", sorted_by),
        "whole": (np.sort(amounts.round()), "number", sorted_by),
        "ages": (np.sort(rng.normal(45.0, 12.0, n).round()), "number", sorted_by),
    }


@pytest.mark.parametrize("name", in_order(np.random.default_rng(0), 20))
def test_what_never_turns_back(name):
    """Eight of ten samples at least are told right, and every unsure one is told by name."""
    right = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values, kind, said = in_order(rng, 500)[name]
        table = {name: values, "x": rng.normal(size=500)}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = TableViews().fit(table).columns_[0].kind
        told = " ".join(str(w.message) for w in caught)
        assert bool(told) == bool(said)
        assert (f"kinds={{'{name}': " in told) == bool(said)
        right += found == kind and said in told
        asked = TableViews(kinds={name: "number"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert asked.fit(table).columns_[0].kind == "number"
    assert right >= 8


def test_sorted_rows_teach_what_shuffled_ones_do():
    """A table sorted by its amounts lost them: 90,000 was normal."""
    rng = np.random.default_rng(0)
    amount, weight = np.exp(rng.normal(4.0, 0.5, 300)), rng.normal(10.0, 1.0, 300)
    order = np.argsort(amount)
    model = make_pipeline(TableViews(), MultiKernelFisherNull())
    with pytest.warns(UserWarning, match="'amount' never turns back"):
        model.fit({"amount": amount[order], "weight": weight[order]})
    assert model.predict({"amount": [55.0, 9e4], "weight": [10.0, 10.0]}).tolist() == [1, -1]


@pytest.mark.filterwarnings("ignore:.*never turns back")
def test_new_rows_of_a_meter_raise_no_alarm():
    from sklearn.pipeline import make_pipeline

    from kernull import MultiKernelFisherNull

    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    meter = np.cumsum(rng.exponential(1.0, 400))
    table = {**{f"s{j}": X[:, j] for j in range(3)}, "kwh": meter}
    old = {name: values[:200] for name, values in table.items()}
    new = {name: values[200:] for name, values in table.items()}
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(old)
    assert (model.predict(new) == -1).mean() < 0.12


def test_codes_units_and_thousands():
    rng = np.random.default_rng(4)
    found = kinds_of(
        code=rng.choice(["0815", "0007", "1234"], N, p=[0.4, 0.4, 0.2]),
        percent=[f"{v:.2f}%" for v in rng.uniform(0, 100, N)],
        force=[f"{v:.2f} N" for v in rng.uniform(0, 100, N)],
        euro=[f"{v:,.0f}" for v in rng.uniform(1e3, 1e5, N)],
        dollar=[f"{v:,.2f}" for v in rng.uniform(1e2, 1e5, N)],
        size=rng.choice(["10 mm", "12 mm"], N),
    )
    assert found["code"].kind == "category"
    assert found["size"].kind == "category"
    assert found["force"].kind == found["euro"].kind == "left out"
    assert found["dollar"].kind == found["percent"].kind == "number"
    assert "unit" in found["force"].why
    assert "thousands" in found["euro"].why


def test_postcodes_are_no_numbers():
    """A tenth of them starts with a zero."""
    rng = np.random.default_rng(5)
    found = kinds_of(
        town=rng.choice(["04109", "10115", "80331", "50667"], N),
        street=[f"{code:05d}" for code in rng.integers(1000, 99999, N)],
        hour=[f"{hour:02d}" for hour in rng.integers(0, 24, N)],
        count=[str(count) for count in rng.integers(0, 2000, N)],
    )
    kinds = {name: found[name].kind for name in ("town", "street", "hour", "count")}
    assert kinds == {
        "town": "category", "street": "identifier", "hour": "number", "count": "number",
    }  # fmt: skip
    assert "comma" not in found["street"].why


def test_numbers_that_stand_for_an_empty_cell_are_told():
    rng = np.random.default_rng(6)
    a, b = rng.normal(20.0, 5.0, 300), rng.normal(size=300)
    a[rng.permutation(300)[:6]] = -999.0
    with pytest.warns(UserWarning, match=r"'a' is -999 in many rows.*say empty=\['-999'\]\.$"):
        TableViews().fit({"a": a, "b": b})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableViews().fit({"a": np.where(a == -999.0, 999.0, 200 * a).round(), "b": b})  # among them
        TableViews().fit({"a": np.where(a == -999.0, 500.0, a), "b": b})  # a far value, no code
        TableViews().fit({"a": np.where(np.arange(300) < 4, 999.0, b), "b": -(b**2)})  # too few
        TableViews().fit({"a": rng.choice([0.0, 0.0, 0.0, 0.0, 999.0], 300), "b": b})  # a switch


def test_texts_of_many_values_are_told():
    rng = np.random.default_rng(7)
    table = {"town": [f"t{i % 80}" for i in range(300)], "x": rng.normal(size=300)}
    with pytest.warns(UserWarning, match="more than 50 different texts in 'town'.*max_categories"):
        TableViews().fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableViews(kinds={"town": "identifier"}).fit(table)
        TableViews(max_categories=80).fit(table)
        TableViews().fit({"name": [f"n{i}" for i in range(300)], "x": table["x"]})


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["01/02/2025", "03/02/2025", "28/02/2025"], "%d/%m/%Y"),
        (["02/28/2025 01:30:00 PM", "03/01/2025 02:00:00 AM"], "%m/%d/%Y %I:%M:%S %p"),
        (["28.02.25 13:30", "01.03.25 02:00"], "%d.%m.%y %H:%M"),
        (["28-Feb-2025 13:30", "01-Mar-2025 02:00"], "%d-%b-%Y %H:%M"),
        (["13:30:00", "02:00:10"], "%H:%M:%S"),
        (["7:30:00", "2:00:10"], "%H:%M:%S"),
        (["13:30", "2:00", ""], "%H:%M"),
        ([time(13, 30), None], "iso"),
        (["13:70", "2:99"], None),
        (["2025-02-28T13:30:00Z"], "iso"),
        (["x", "y"], None),
        ([], None),
    ],
)
def test_dates_of_many_forms(cells, form):
    assert date_format(cells) == form


@pytest.mark.parametrize("text", ["-", "--", "n.a.", "#DIV/0!", ".", "NULL", " n/a "])
def test_marks_for_nothing(text):
    _, missing, bad = as_numbers(["1.5", text])
    assert missing.tolist() == [False, True]
    assert not bad.any()


def test_more_texts_and_numbers_for_nothing():
    rng = np.random.default_rng(5)
    table = {"a": [*map(str, rng.normal(size=40)), "off"], "b": np.r_[rng.normal(size=40), -999.0]}
    with pytest.raises(TableError, match="'off' is not a number"):
        TableViews().fit(table)
    with pytest.warns(match="2 empty cells"):
        views = TableViews(empty=["off", "-999"]).fit(table)
    assert views.read({"a": ["off"], "b": [-999]}).missing.all()
    with pytest.raises(ValueError, match="empty: got 'off'"):
        TableViews(empty="off").fit(table)


def test_bad_cells_of_all_columns_are_counted():
    good = [str(v) for v in np.arange(40.0) ** 2 % 7]
    table = {"a": [*good, "err"], "b": [*good[::-1], "OVR"]}
    with pytest.raises(TableError, match=r"2 cells cannot be used.*'err'.*'OVR'.*empty=\['err'\]"):
        TableViews().fit(table)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("\n\na;b\n1;2\n3;4\n", None),
        ("sep=;\na;b\n1;2\n3;4\n", None),
        ("# made by a machine\na,b\n1,2\n3,4\n", "comments before the header"),
    ],
)
def test_lines_before_the_header(tmp_path, text, note):
    path = tmp_path / "t.csv"
    path.write_text(text)
    source = open_table(str(path))
    table = source.read()
    assert table.names == ["a", "b"]
    assert table.numbers("b").tolist() == [2.0, 4.0]
    assert any(note in said for said in source.notes) if note else not source.notes
    assert text.splitlines()[table.lines[0] - 1][0] == "1"


def test_utf_16_without_a_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(("a,b\n" + "1,2\n" * 200).encode("utf-16-le"))
    with pytest.raises(TableError, match="encoding='utf-16-le'"):
        open_table(str(path))
    assert len(read_table(path, encoding="utf-16-le")) == 200


def test_compressed_standard_input(monkeypatch):
    packed = io.BufferedReader(io.BytesIO(gzip.compress(b"a,b\n1,2\n")))
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=packed))
    assert open_table("-").read().numbers("b").tolist() == [2.0]


def test_titles_of_a_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Report of March"], [], ["a", "b", "c"], [1, 2, 3]):
        book.active.append(row)
    book.active.merge_cells("A1:C1")
    book.save(tmp_path / "t.xlsx")
    source = open_table(str(tmp_path / "t.xlsx"))
    assert source.names == ("a", "b", "c")
    assert "titles" in source.notes[0]


def test_frames_with_any_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.arange(6.0).reshape(3, 2))
    assert as_table(frame).names == ["0", "1"]
    frame.columns = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")])
    assert as_table(frame).names == ["x a", "x b"]
    frame.columns = ["a", "a"]
    with pytest.raises(TableError, match="columns 1 and 2 are called 'a'"):
        as_table(frame)
    assert as_table([{"a": 1, "b": 2}, {"a": 3}]).columns["b"] == [2, None]
    assert repr(as_table({"a": [1, 2]})) == "Table('X', 2 rows, 1 columns)"


def test_lazy_frames_are_named():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"collect\(\)"):
        as_table(pl.DataFrame({"a": [1.0]}).lazy())


def test_a_lost_column_is_met_by_its_like():
    rng = np.random.default_rng(7)
    views = TableViews().fit({"torque": rng.normal(size=30), "force": rng.normal(size=30)})
    with pytest.raises(
        TableError,
        match=r"lacks 'torque'.*it has 'Torque': names differ in case.*absent=\['torque'\]",
    ):
        views.transform({"Torque": [1.0], "force": [1.0]})


def test_numbers_by_the_name_of_identifiers_stay_so_in_whichever_order():
    rng = np.random.default_rng(0)
    ids = np.sort((np.exp(rng.normal(10, 1, 300))).astype(int) + np.arange(300))
    table = {"order_id": ids.tolist(), "x": rng.normal(size=300).tolist()}
    kinds = {column.name: column.kind for column in TableViews().fit(table).columns_}
    assert kinds == {"order_id": "identifier", "x": "number"}


def test_a_column_given_up_is_no_gap():
    rng = np.random.default_rng(0)
    table = TableViews().fit(dict(zip("ab", rng.normal(size=(2, 50)), strict=True)))
    more = dict(zip("ab", rng.normal(size=(2, 50)), strict=True))
    model = MultiKernelFisherNull().fit(table.transform(more))
    reading = table.read({"a": [0.0, np.nan]}, absent=["b"])
    assert reading.missing.tolist() == [[False, False], [True, False]]
    assert model.predict(reading.X).tolist() == [1, -1]


def test_numbers_for_nothing_are_numbers():
    """-999.0 and "-999,0" were measures where -999 stands for nothing."""
    table = Table("t", 0, {"a": ["1", " -999.0", "-9.99e2"], "b": ["-999,0", "2,5", "off"]})
    table = replace(table, decimal={"a": ".", "b": ","})
    empty = table.emptied(["-999", "off"])
    assert (empty.columns["a"], empty.columns["b"]) == (["1", None, None], [None, "2,5", None])
    assert table.without(["-999", "off", "nix", "7"]) == ["nix", "7"]


def test_a_text_for_nothing_that_no_cell_has_is_told():
    with pytest.warns(UserWarning, match=r"X: empty: no cell is 'nix'\.$"):
        TableViews(empty=["nix"]).fit({"a": np.arange(30.0) ** 2 % 7})


def test_times_of_day_are_told_and_learned_from_on_request():
    rng = np.random.default_rng(0)
    clock = [f"{6 + minute // 60:02d}:{minute % 60:02d}" for minute in rng.integers(360, size=N)]
    found = kinds_of(clock=clock)["clock"]
    assert (found.kind, found.why) == ("date", "time of day")
    views = TableViews(dates="parts").fit({"clock": clock, "a": rng.normal(size=N)})
    morning, night = views.transform({"clock": ["09:00", time(21)], "a": [0.0, 0.0]})
    assert morning[:2] == pytest.approx(-night[:2])


def test_booleans_are_categories_whatever_the_file(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    on, a = rng.random(40) < 0.5, rng.normal(size=40)
    table = pyarrow.table({"on": [None, *on[1:].tolist()], "a": a})
    parquet.write_table(table, tmp_path / "t.parquet")
    lines = [f"{str(o).upper()},{v}" for o, v in zip(on, a, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["on,a", *lines]))
    tables = [
        {"on": on, "a": a},
        read_table(tmp_path / "t.parquet"),
        read_table(tmp_path / "t.csv"),
    ]
    for rows in tables:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            views = TableViews().fit(rows)
        assert views.columns_[0].kind == "category"
        assert not any(views.read(other).unseen.any() for other in tables)
    assert TableViews(kinds={"on": "number"}).fit(tables[0]).columns_[0].kind == "number"


def test_usual_ranges_of_whole_numbers_are_whole():
    rng = np.random.default_rng(0)
    rows = {"count": rng.poisson(40.0, 200), "a": rng.normal(size=200)}
    model = Judge().fit(rows)
    (reason, *_) = model.explain({"count": [400], "a": [0.1]}).table(by="column")
    assert reason["low"] == round(reason["low"]) > 25
    assert reason["high"] == round(reason["high"]) < 60
    assert float(reason["expected"]) == round(float(reason["expected"]))


def test_durations_are_seconds():
    """They were texts, and identifiers."""
    took = np.array([90, 1500, "NaT"], "timedelta64[ms]")
    values, missing, bad = as_numbers(took)
    assert (values[:2].tolist(), missing.tolist(), bad.any()) == (
        [0.09, 1.5],
        [False, False, True],
        False,
    )
    rng = np.random.default_rng(0)
    took = rng.integers(10**6, size=N).astype("timedelta64[ms]")
    assert kinds_of(took=took)["took"].kind == "number"


def test_numbers_that_only_name_their_row_are_not_learned_from():
    """Also once rows are sampled, when they no longer run from 1 to n."""
    rng, n = np.random.default_rng(0), 300
    table = {
        "Unnamed: 0": rng.permutation(10 * n)[:n],
        "reading": rng.integers(0, 10 * n, n),  # as large, but some are equal
        "salary": rng.permutation(1_000_000)[:n],  # none is equal: so few of so many
    }
    views = TableViews().fit(table)
    assert views.used_ == ["reading", "salary"]
    assert TableViews(kinds={"Unnamed: 0": "number"}).fit(table).used_[0] == "Unnamed: 0"


@pytest.mark.parametrize("name", ["subject_id", "Patient No.", "machine number", "MRN"])
def test_repeated_identifiers_are_proposed_as_groups(name):
    rng, n = np.random.default_rng(0), 300
    x = rng.normal(size=n)
    for cells in (rng.integers(1, 61, n), [f"P{i % 30}" for i in range(n)]):
        with pytest.warns(UserWarning, match=f"'{name}' names.*group=.*kinds={{'{name}'"):
            assert TableViews().fit({name: cells, "x": x}).used_ == ["x"]
    few = {name: rng.integers(1, 6, n), "x": x}  # machines 1 to 5: perhaps codes
    assert TableViews().fit(few).used_ == [name, "x"]


def test_rare_values_of_a_category_of_many_count_as_one_if_asked_for():
    rng = np.random.default_rng(7)
    town = [f"t{i}" for i in range(49) for _ in range(5)] + [f"r{i}" for i in range(40)]
    table = {"town": town, "x": rng.normal(size=len(town))}
    views = TableViews(kinds={"town": "category"}).fit(table)
    assert len(views.category_values("town")) == 50
    assert "40 rare values are one, 14% of the rows" in views.summary()
    reading = views.read({"town": ["t3", "r7", "never seen"], "x": [0.0] * 3})
    assert not reading.unseen.any()  # a value never seen is one of the others
    np.testing.assert_array_equal(reading.X[1], reading.X[2])
    assert (reading.X[0] != reading.X[1]).any()


def test_numbers_for_names_are_asked_about():
    x = np.random.default_rng(0).normal(size=(2, 50))
    with pytest.warns(UserWarning, match="called by numbers: the first row may be no header"):
        TableViews().fit({"5.1": x[0], "3.5": x[1]})
    TableViews().fit({"0": x[0], "1": x[1]})  # as pandas calls them

"""One object judges a table: what comes back, as what, and from which model."""

from __future__ import annotations

import pickle
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import OneClassSVM

from kernull import JointMultiKernelFisherNull, Judge, MultiKernelFisherNull, TableViews
from kernull.errors import (
    MissingCapabilityError,
    ModelFileError,
    OutlierLabelsWarning,
    TableError,
    TooFewRowsWarning,
)
from kernull.estimators import Calibrated

VIEWS = {"press": ["force", "power"], "heat": ["heat_in", "heat_out"]}


def parts(n, seed=0):
    rng = np.random.default_rng(seed)
    load, heat = rng.normal(size=(2, n))
    return pd.DataFrame(
        {
            "part": [f"P{i}" for i in range(n)],
            "machine": rng.choice(["M1", "M2"], n),
            "force": 100 + 5 * load,
            "power": 40 + load + 0.1 * rng.normal(size=n),
            "heat_in": 20 + heat,
            "heat_out": 25 + heat + 0.1 * rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def judge():
    return Judge(views=VIEWS, id="part").fit(parts(150))


@pytest.fixture(scope="module")
def new():
    rows = parts(60, seed=1)
    rows.loc[7, "power"] += 3.0
    rows.index = rows.index + 100
    return rows


def test_a_broken_cell_is_flagged_and_named(judge, new):
    out = judge.judge(new)
    row = out.loc[107]
    assert list(out.index) == list(new.index)
    assert list(out.columns) == judge.output_names
    assert (row["part"], row["flag"], row["view"], row["reason_1"]) == (
        "P7",
        True,
        "press",
        "power",
    )
    assert f"{row['reason_1']} is {row['value_1']}; {row['usual_1']} is usual" in row["reasons"]
    assert row["p"] == out["p"].min()
    assert out["rarity"].min() >= 1
    normal = out[~out["flag"]]
    assert (normal[["reasons", "reason_1", "value_1", "usual_1"]] == "").all(axis=None)
    why = judge.explain(new)
    assert why.words(7).split("\n")[-1] == row["reasons"]
    assert list(why.table(7, by="column")["row"]) == ["P7"]
    np.testing.assert_array_equal(why.flagged, out["flag"])
    np.testing.assert_array_equal(judge.predict(new), np.where(out["flag"], -1, 1))
    np.testing.assert_array_equal(judge.decision_function(new) < 0, out["flag"])
    np.testing.assert_array_equal(judge.p_values(new), out["p"])
    np.testing.assert_array_equal(judge.rarity(new), out["rarity"])


@pytest.mark.parametrize("model", [None, OneClassSVM()], ids=["default", "outside"])
def test_a_judge_of_another_rate_reads_the_table(new, model):
    judge = Judge(model, views=VIEWS, id="part").fit(parts(150))
    other = judge.at_rate(0.2)
    assert isinstance(other, Judge)
    pd.testing.assert_frame_equal(other.judge(new), judge.judge(new, 0.2))
    assert judge.false_alarm_rate == judge.model_.false_alarm_rate_ == 0.05


def test_groups_beside_a_column_of_groups_are_refused():
    rows = parts(60)
    for option in ("group", "task"):
        with pytest.raises(ValueError, match=f"groups: got an array and {option}='machine'"):
            Judge(**{option: "machine"}).fit(rows, groups=np.arange(60))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_the_table_that_came_comes_back(judge, new, library):
    frames = pytest.importorskip(library)
    table = frames.from_pandas(new) if library == "polars" else frames.Table.from_pandas(new)
    out = judge.judge(table)
    assert type(out) is type(table)
    again = out.to_pandas() if library == "pyarrow" else pd.DataFrame(out.to_dict(as_series=False))
    want = judge.judge(new).reset_index(drop=True)
    np.testing.assert_allclose(again["score"], want["score"])
    assert again["reason_1"].tolist() == want["reason_1"].tolist()


def test_tables_without_rows(judge, new):
    out = judge.judge(new.iloc[:0])
    assert (len(out), list(out.columns)) == (0, judge.output_names)


def test_mappings_arrays_and_another_library():
    rng = np.random.default_rng(0)
    judge = Judge().fit(rng.normal(size=(80, 3)))
    out = judge.judge(rng.normal(size=(5, 3)))
    assert isinstance(out, dict)
    assert out["score"].shape == (5,)
    judge.set_output(transform="pandas")
    assert isinstance(judge.judge(rng.normal(size=(5, 3))), pd.DataFrame)
    assert isinstance(judge.set_output(transform="default").judge(rng.normal(size=(5, 3))), dict)


def test_another_rate_is_that_of_a_fit_with_it(judge, new):
    strict = clone(judge).set_params(false_alarm_rate=0.02).fit(parts(150))
    pd.testing.assert_frame_equal(
        judge.judge(new, false_alarm_rate=0.02)[["flag", "p", "score"]],
        strict.judge(new)[["flag", "p", "score"]],
    )
    p = judge.judge(new)["p"]
    for rate in (0.01, 0.1, 0.3):
        np.testing.assert_array_equal(judge.judge(new, rate)["flag"], p <= rate)
    with pytest.warns(TooFewRowsWarning, match="the lowest rate"):
        judge.judge(new, 0.001)


def test_a_file_gives_the_same_judge(judge, new, tmp_path):
    judge.save(tmp_path / "m.kernull", note="first shift")
    again = Judge.load(tmp_path / "m.kernull")
    pd.testing.assert_frame_equal(again.judge(new), judge.judge(new))
    assert (again.id, again.false_alarm_rate) == ("part", 0.05)
    assert again.model_.model_.usual is not None
    assert again.explain(new).words(7) == judge.explain(new).words(7)
    from kernull import save

    save(MultiKernelFisherNull().fit(np.random.default_rng(0).normal(size=(30, 2))), tmp_path / "a")
    with pytest.raises(ModelFileError, match="without a table"):
        Judge.load(tmp_path / "a")
    pipeline = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(parts(80))
    save(pipeline, tmp_path / "p")
    np.testing.assert_allclose(
        Judge.load(tmp_path / "p").score_samples(new), pipeline.score_samples(new)
    )


@pytest.mark.parametrize(
    "model",
    [
        IsolationForest(random_state=0),
        make_pipeline(StandardScaler(), OneClassSVM(nu=0.1)),
        Calibrated(OneClassSVM(nu=0.1), folds=5),
    ],
)
def test_any_detector_judges(model, new):
    judge = Judge(model, id="part").fit(parts(150))
    assert isinstance(judge.model_, Calibrated)
    out = judge.judge(new)
    assert "view" not in out
    assert (out["flag"] == (out["p"] <= 0.05)).all()
    np.testing.assert_allclose(
        out["score"], judge.model_.score_samples(judge.table_.read(new).X), rtol=1e-12
    )
    odd = new.copy()
    odd.loc[107, ["power", "force", "heat_in"]] = 400.0  # a forest sees no single column
    row = judge.judge(odd, 0.1).loc[107]
    assert row["flag"]
    assert row["reason_1"] in ("power", "force", "heat_in")
    assert judge.explain(odd).words(7).count("\n") >= 1


def test_it_is_an_estimator(new):
    judge = Judge(MultiKernelFisherNull(), VIEWS, id="part")
    assert clone(judge.set_params(model__p=1.0)).model.p == 1.0
    flags = cross_val_predict(judge, parts(90), method="predict", cv=3)
    assert (flags == -1).mean() < 0.2
    fitted = clone(judge).fit_predict(parts(90))
    assert (fitted == -1).mean() < 0.15


def test_groups_are_left_out_together():
    rows = parts(120)
    rows["day"] = [f"d{i // 10}" for i in range(120)]
    judge = Judge(false_alarm_rate=0.1, id="part", group="day").fit(rows)
    assert "day" not in judge.table_.used_
    assert judge.model_.calibration_.total == pytest.approx(12)
    same = Judge(false_alarm_rate=0.1, id="part").fit(
        rows.drop(columns="day"), groups=rows["day"].to_numpy()
    )
    np.testing.assert_array_equal(same.score_samples(rows), judge.score_samples(rows))


def test_tasks_are_judged_by_their_rows(new, tmp_path):
    rows = parts(160)
    rows.loc[rows["machine"] == "M2", "force"] += 300.0
    judge = Judge(task="machine", id="part").fit(rows)
    assert isinstance(judge.model_, JointMultiKernelFisherNull)
    later = new.copy()
    later.loc[later["machine"] == "M2", "force"] += 300.0
    later.loc[107, "machine"] = "M9"
    out = judge.judge(later)
    assert out.loc[107, "flag"]
    assert out.loc[107, "remarks"] == "not judged: no rows of machine 'M9' were learned from"
    assert out["flag"].mean() < 0.25
    swapped = later.replace({"machine": {"M1": "M2", "M2": "M1"}}).drop(index=107)
    assert judge.judge(swapped)["flag"].all()
    assert (judge.judge(swapped)["reason_1"] == "force").mean() > 0.9
    judge.save(tmp_path / "t.kernull")
    pd.testing.assert_frame_equal(Judge.load(tmp_path / "t.kernull").judge(later), out)
    with pytest.raises(MissingCapabilityError, match="a report is about one task"):
        judge.report(later, tmp_path / "r.html")
    first = judge.tasks[0]
    some, alone = rows[rows["machine"] == first], judge.of_task(first)
    assert np.array_equal(alone.score_samples(some), judge.score_samples(some))
    alone.report(some, tmp_path / "first.html")
    with pytest.raises(ValueError, match="task: got 'M9'; expected one of"):
        judge.of_task("M9")
    with pytest.raises(ValueError, match="a column of tasks goes with"):
        Judge(JointMultiKernelFisherNull()).fit(rows)


def test_views_by_the_beginnings_of_names_or_by_correlation(tmp_path):
    judge = Judge(views="auto", id="part").fit(parts(80))
    assert judge.table_.view_columns() == {
        "force": ["force", "power", "machine"], "heat_in": ["heat_in", "heat_out"],
    }  # fmt: skip
    assert Judge(views=TableViews("auto"), id="part").fit(parts(80)).view_names == judge.view_names
    named = parts(80).rename(columns={"force": "press_f", "power": "press_p"})
    judge = Judge(views="auto", id="part").fit(named)
    assert judge.table_.view_columns() == {
        "press": ["press_f", "press_p", "machine"], "heat": ["heat_in", "heat_out"],
    }  # fmt: skip
    judge.save(tmp_path / "m.kernull")
    assert Judge.load(tmp_path / "m.kernull").table_.view_columns() == judge.table_.view_columns()


def test_views_by_correlation_follow_the_blocks():
    """Four blocks of columns, each with three factors."""
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(300, 3)) @ rng.normal(size=(3, s)) for s in (4, 5, 8, 4)]
    X = np.hstack(blocks) + 0.3 * rng.normal(size=(300, 21))
    names = iter(f"{chr(97 + i)}" for i in range(21))
    truth = [[next(names) for _ in range(s)] for s in (4, 5, 8, 4)]
    table = TableViews("auto").fit(dict(zip(chain.from_iterable(truth), X.T, strict=True)))
    assert sorted(table.view_columns().values()) == truth


def test_wrong_columns_are_named(new):
    with pytest.raises(ValueError, match=r"id: X has no column 'prt' \(did you mean 'part'\?\)"):
        Judge(id="prt").fit(new)


def test_labels_and_drift(judge, new):
    y = np.where(np.arange(60) == 7, -1, 1)
    counts = judge.evaluate(new, y)
    assert (counts["caught"], counts["missed"]) == (1, 0)
    assert counts["false_alarms"] == int(judge.judge(new)["flag"].sum()) - 1
    assert judge.evaluate(new, y, 0.5)["false_alarms"] > counts["false_alarms"]
    with pytest.raises(ValueError, match="y: all rows have the same label"):
        judge.evaluate(new, np.ones(60))
    moved = new.assign(heat_in=new["heat_in"] + 4)
    assert judge.drift(moved)["drifted"]


def test_the_picture_shows_each_reason_on_its_usual_range(judge, new):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    why = judge.explain(new)
    views, columns = why.plot(7).figure.axes
    assert [label.get_text() for label in views.get_yticklabels()][-1] == "press"
    assert columns.get_yticklabels()[-1].get_text() == f"power {why.columns[7][0].value}"
    (dot,) = columns.lines
    assert dot.get_xdata()[0] > 1  # beyond the range, which is 0 to 1
    assert len(why.plot(0).figure.axes) == 1  # a normal row has no reasons
    outside = Judge(IsolationForest(random_state=0), id="part").fit(parts(80))
    odd = new.assign(power=400.0, force=400.0)
    assert len(outside.explain(odd).plot(0).figure.axes) >= 1
    plt.close("all")


def test_a_notebook_shows_no_markup_of_the_data(new):
    evil = "<img src=x onerror=alert(1)>"
    rows = parts(80).rename(columns={"power": evil})
    judge = Judge(id="part").fit(rows)
    odd = new.rename(columns={"power": evil})
    odd["part"] = evil
    page = judge.explain(odd)._repr_html_()
    assert "<img" not in page
    assert "&lt;img" in page


def test_a_column_that_lacks_is_done_without(judge, tmp_path):
    new = parts(200, 1)
    less = new.drop(columns="heat_out")
    with pytest.raises(TableError, match=r"absent=\['heat_out'\]"):
        judge.judge(less)
    assert judge.judge(less, absent=["heat_out"])["flag"].mean() < 0.15
    assert judge.explain(less, absent="heat_*").flagged.mean() < 0.15
    y = np.where(np.arange(200) < 100, 1, -1)
    assert judge.evaluate(less, y, absent=["heat_out"])["rows"] == 200
    assert judge.report(less, tmp_path / "r.html", absent=["heat_out"]).exists()
    with pytest.raises(ValueError, match="absent: no column matches 'heat'"):
        judge.judge(less, absent=["heat"])


def test_another_table_is_called_so(judge):
    with pytest.raises(TableError, match="has none of the 4 columns that the model was fitted on"):
        judge.judge(pd.DataFrame({"a": [1.0], "b": [2.0]}))


def test_what_came_for_a_table_labels_or_a_rate_is_told(judge):
    new = parts(4, 1)
    with pytest.raises(TypeError, match=r"kernull.read_table\('rows.csv'\)"):
        judge.judge("rows.csv")
    for y in ([0, 1, 0, 1], [False, True, False, True]):
        said = rf"labels such as {y[0]}; expected \+1 \(normal\).*== {y[0]}, 1, -1"
        with pytest.raises(ValueError, match=said):
            judge.evaluate(new, y)
    with pytest.raises(ValueError, match=r"got 5; expected a number in \(0, 1\); 5% is 0.05"):
        Judge(false_alarm_rate=5).fit(object())  # before the table is looked at


def test_booleans_are_read_as_other_files_spell_them():
    rng = np.random.default_rng(0)
    on = rng.random(100) < 0.5
    good = pd.DataFrame({"on": on, "x": rng.normal(size=100), "y": rng.normal(size=100)})
    judge = Judge().fit(good)
    p = judge.p_values(good)
    for yes, no in ((1, 0), ("yes", "no"), ("WAHR", "FALSCH"), ("t", "f"), ("Ja", "nein")):
        spelled = good.assign(on=[yes if cell else no for cell in on])
        np.testing.assert_array_equal(judge.p_values(spelled), p)
        assert not any(judge.judge(spelled.iloc[::-1])["remarks"])


def test_a_category_in_another_case_is_called_so():
    row = parts(1, 1).assign(machine=" m1")
    why = Judge(id="part").fit(parts(100)).verdicts(row).why
    words = why.columns_of([0])[0][-1].words
    assert words.startswith("machine is 'm1'; this was never seen; 'M1' differs in case")


@pytest.mark.parametrize(
    "model", [None, MultiKernelFisherNull(scaling=RobustScaler()), IsolationForest(random_state=0)]
)
def test_a_pickle_judges_alike_and_is_no_larger_than_a_file(model, new, tmp_path):
    judge = Judge(model, id="part").fit(parts(300))
    out = judge.judge(new)
    stored = pickle.dumps(judge)
    pd.testing.assert_frame_equal(pickle.loads(stored).judge(new), out)
    pd.testing.assert_frame_equal(judge.judge(new), out)
    if model is None:  # nothing from outside
        judge.save(tmp_path / "m.kernull")
        assert len(stored) < 1.1 * (tmp_path / "m.kernull").stat().st_size


def test_labels_of_outliers_are_warned_of_and_mistakes_come_before_the_table():
    rows = parts(60)
    y = np.r_[np.ones(50, dtype=int), -np.ones(10, dtype=int)]
    with pytest.warns(OutlierLabelsWarning, match="10 of 60 rows are marked -1"):
        Judge(id="part").fit(rows, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Judge(id="part").fit(rows, y[:9])
    for judge in (Judge(JointMultiKernelFisherNull()), Judge(false_alarm_rate=2)):
        with pytest.raises(ValueError, match=r"^(task|false_alarm_rate): got"):
            judge.fit_table("no table")


def test_times_with_a_zone_are_local_from_every_library(tmp_path):
    """02:30 in Berlin is 02:30, not 01:30 of Greenwich."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    when = pd.date_range("2024-01-01", periods=200, freq="37min", tz="Europe/Berlin")
    when = when[rng.permutation(200)]
    rows = pd.DataFrame({"when": when, "x": rng.normal(size=200), "y": rng.normal(size=200)})
    judge = Judge(views=TableViews(dates="parts")).fit(rows)
    text = rows.assign(when=[str(time) for time in when])
    p = judge.p_values(rows)
    for same in (text, pl.from_pandas(rows)):
        np.testing.assert_allclose(judge.p_values(same), p, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:views")
def test_a_view_of_one_category_flags_no_category_as_a_whole():
    """Rows of a category are copies in that view: once half of the normal rows were flagged."""
    rates = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1450, 1)) + 0.3 * rng.normal(size=(1450, 4))
        rows = pd.DataFrame(X, columns=list("abcd")).assign(line=rng.choice(["A", "B"], 1450))
        judge = Judge(views={"x": list("abcd"), "line": ["line"]}).fit(rows[:450])
        rates.append(judge.judge(rows[450:])["flag"].mean())
    assert max(rates) < 0.1


def test_a_number_never_seen_is_the_reason():
    """Before, a column that had nothing to do with it came first in all rows."""
    rng = np.random.default_rng(0)

    def table(n):
        return {
            "force": rng.normal(100, 5, n),
            "heat": rng.normal(40, 2, n),
            "n": rng.poisson(2, n),
        }

    judge = Judge().fit(table(200))
    new = table(60)
    judged = judge.judge({**new, "n": new["n"] + 200})
    assert judged["flag"].all()
    assert (np.asarray(judged["reason_1"]) == "n").mean() >= 0.9

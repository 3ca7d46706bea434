"""TableViews: what columns are taken for, categories, files."""

from __future__ import annotations

import json
import time
import warnings
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from benchmarks.fuzz.models import pack, unpack
from kernull import MultiKernelFisherNull, TableViews, load, load_views, save
from kernull.errors import ModelFileError, TableError
from kernull.tables.encoder import FARTHEST, category_places


def factory(n: int, seed: int = 0) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    machine = rng.integers(3, size=n)
    load_ = rng.normal(size=n)
    start = datetime(2024, 3, 1)
    return {
        "part": [f"P-{i:05d}" for i in range(n)],
        "serial": list(range(1000, 1000 + n)),
        "time": [(start + timedelta(minutes=7 * i)).isoformat(sep=" ") for i in range(n)],
        "machine": [f"M{m + 1}" for m in machine],
        "site": ["north"] * n,
        "force": (load_ + machine + 0.2 * rng.normal(size=n)).tolist(),
        "power": (2 * load_ + 0.2 * rng.normal(size=n)).tolist(),
        "celsius": (temperature := rng.normal(20, 2, size=n)).tolist(),
        "fahrenheit": (32 + 1.8 * temperature).tolist(),
    }


def kinds(table: TableViews) -> dict[str, str]:
    return {column.name: column.kind for column in table.columns_}


def test_kinds_of_a_factory_table():
    assert kinds(TableViews().fit(factory(60))) == {
        "part": "identifier", "serial": "identifier", "time": "date", "machine": "category",
        "site": "constant", "force": "number", "power": "number", "celsius": "number",
        "fahrenheit": "number",
    }  # fmt: skip


def test_a_running_number_does_not_flag_everything():
    """1,000 of 1,000 new rows were flagged."""
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(factory(300))
    new = factory(300, seed=1)
    new["serial"] = list(range(9000, 9300))
    assert (model.predict(new) == -1).mean() < 0.12


@pytest.mark.parametrize("n", [20, 50])
def test_shuffled_and_falling_numbers_run_too(n):
    rng = np.random.default_rng(0)
    table = {"a": rng.permutation(n), "b": -np.arange(n) * 3, "c": np.linspace(0, 1, n),
             "x": rng.normal(size=n), "k": rng.integers(5, size=n)}  # fmt: skip
    found = kinds(TableViews().fit(table))
    assert [found[name] for name in "abcxk"] == ["identifier"] * 3 + ["number"] * 2


def test_what_is_asked_for_is_done():
    table = TableViews(
        kinds={"serial": "number", "machine": "left out", "part": "left out"},
        dates="parts",
    ).fit(factory(60))
    assert "machine" not in table.used_
    assert {"serial", "time", "fahrenheit"} <= set(table.used_)
    assert len(table.get_feature_names_out()) == table.transform(factory(5)).shape[1] == 9
    few = TableViews(kinds={"k": "category"}).fit(
        {"k": [1, 2, 3] * 10, "x": np.sin(np.arange(30.0))}
    )
    assert few.columns_[0].values == ("1", "2", "3")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"kinds": {"force": "colour"}}, "kinds: got 'colour'"), ({"missing": "drop"}, "missing: got"),
     ({"kinds": {"z": "number"}}, "no column matches 'z'"), ({"dates": "all"}, "dates: got"),
     ({"views": {"a": ["part"]}}, "no column is left"), ({"views": {}}, "views"),
     ({"views": {"a": ["q*"]}}, "no column matches"), ({"kinds": {"force": "date"}}, "not dates")],
)  # fmt: skip
def test_wrong_parameters_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        TableViews(**options).fit(factory(60))


def test_pandas_and_polars_are_read_alike():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    plain = factory(60)
    frame = pandas.DataFrame(plain)
    frame["time"] = pandas.to_datetime(frame["time"])
    frame["machine"] = frame["machine"].astype("category")
    want = TableViews(dates="parts").fit(plain)
    for other in (frame, polars.from_pandas(frame)):
        table = TableViews(dates="parts").fit(other)
        assert kinds(table) == kinds(want)
        np.testing.assert_allclose(table.transform(other), want.transform(plain), atol=1e-12)
    gappy = frame.convert_dtypes()
    gappy.loc[3, "serial"] = pandas.NA
    gappy.loc[4, "force"] = pandas.NA
    assert np.argwhere(want.read(gappy).missing).tolist() == [[4, want.used_.index("force")]]


def test_arrays_are_numbers_by_position():
    X = np.random.default_rng(0).normal(size=(30, 3))
    table = TableViews().fit(X)
    np.testing.assert_array_equal(table.transform(X), X)
    with pytest.raises(ValueError, match="X has 2 features"):
        table.transform(X[:, :2])


def test_views_take_their_columns():
    table = TableViews({"mechanics": ["force", "pow*", "machine"], "heat": "celsius"})
    table.fit(factory(60))
    names = table.get_feature_names_out()
    shown = {view: [str(names[i]) for i in at] for view, at in table.views_.items()}
    assert shown == {"mechanics": ["machine 1", "machine 2", "force", "power"], "heat": ["celsius"]}
    assert table.fit(factory(60)).columns_[0].kind == "left out"
    model = MultiKernelFisherNull(views=table.views_).fit(table.transform(factory(60)))
    assert set(model.kernel_set_.kernel_views) == {"mechanics", "heat"}
    assert clone(table).views == table.views


@parametrize_with_checks([TableViews()])
def test_scikit_learn_agrees(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_many_columns_take_little_time_and_room(tmp_path):
    """20,000 columns: scoring three rows took 137 s."""
    X = np.random.default_rng(0).normal(size=(30, 3000))
    started = time.perf_counter()
    table = TableViews().fit({f"c{i}": column for i, column in enumerate(X.T)})
    table.read({f"c{i}": column[:3] for i, column in enumerate(X.T)})
    assert time.perf_counter() - started < 10.0
    quick = MultiKernelFisherNull(scaling="standard", widths=1.0, calibration="cross")
    model = quick.fit(table.transform({f"c{i}": x for i, x in enumerate(X.T)}))
    save(model, tmp_path / "m.kernull")
    before = (tmp_path / "m.kernull").stat().st_size
    save(model, tmp_path / "m.kernull", table=table)
    assert (tmp_path / "m.kernull").stat().st_size - before < 800 * 3000
    again = load_views(tmp_path / "m.kernull")
    np.testing.assert_allclose(again.filler_.quantiles, table.filler_.quantiles, atol=1e-5)


def test_views_of_categories_alone_are_told():
    with pytest.warns(UserWarning, match="nothing but categories in 'machine'"):
        TableViews("features").fit(factory(60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableViews({"a": ["machine", "force"]}).fit(factory(60))


# -- categories ------------------------------------------------------------------------------


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_places_weigh_as_much_as_numbers(k, seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice(k, size=200, p=rng.dirichlet(np.ones(k)))
    values, codes = np.unique(codes, return_inverse=True)
    if len(values) < 2:
        return
    shape = len(values) + 1, 1 if len(values) == 2 else 2
    places = category_places(codes, shape, rng.normal(size=(200, 3)))[:-1]
    column = places[codes]
    assert np.abs(places).max() <= FARTHEST
    assert column.shape[1] <= 2
    assert (column.var(axis=0) <= 1.0 + 1e-9).all()
    if np.abs(places).max() < FARTHEST:  # nothing was cut
        np.testing.assert_allclose(column.mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(column.var(axis=0), 1.0, atol=1e-9)


def test_alike_machines_lie_close_together():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2, 3], 50)
    others = np.array([0.0, 0.2, 4.0, 4.2])[codes][:, None] + 0.1 * rng.normal(size=(200, 1))
    places = category_places(codes, (5, 2), (others - others.mean()) / others.std())
    first = np.sort(places[:4, 0] * np.sign(places[3, 0]))
    np.testing.assert_array_equal(np.argsort(places[:4, 0] * np.sign(places[3, 0])), [0, 1, 2, 3])
    assert first[2] - first[1] > 5 * max(first[1] - first[0], first[3] - first[2])


def test_a_value_never_seen_is_evidence():
    table = TableViews().fit(factory(300))
    model = MultiKernelFisherNull().fit(table.transform(factory(300)))
    new = factory(200, seed=1)
    new["machine"] = ["M9"] * 200
    reading = table.read(new)
    assert reading.unseen[:, table.used_.index("machine")].all()
    assert not reading.missing.any()
    assert (model.predict(reading.X) == -1).all()
    # As an array it is judged by the rest of the row.
    assert (model.predict(np.array(reading.X)) == -1).mean() < 0.15


def test_a_value_that_does_not_fit_its_row_is_found():
    table = TableViews().fit(factory(400))
    model = MultiKernelFisherNull().fit(table.transform(factory(400)))
    good = factory(200, seed=1)
    swapped = {**good, "machine": [{"M1": "M3", "M3": "M1"}.get(m, m) for m in good["machine"]]}
    rows = np.array([m != "M2" for m in good["machine"]])
    caught = (model.predict(table.transform(swapped)) == -1)[rows].mean()
    false = (model.predict(table.transform(good)) == -1)[rows].mean()
    assert caught > 0.5 > 5 * false


# -- files -----------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    table = TableViews({"a": ["force", "power", "machine"], "b": ["celsius"]}).fit(factory(60))
    model = MultiKernelFisherNull(views=table.views_).fit(table.transform(factory(60)))
    path = tmp_path / "m.kernull"
    save(model, path)
    plain = path.read_bytes()
    save(model, path, table=table)
    return table, model, path, plain


def test_a_table_comes_back_from_the_model_file(stored):
    table, model, path, plain = stored
    again, same = load_views(path), load(path)
    new = factory(40, seed=2)
    new["force"][0], new["machine"][1] = None, "M7"
    np.testing.assert_array_equal(again.transform(new), table.transform(new))
    np.testing.assert_array_equal(
        same.score_samples(again.transform(new)), model.score_samples(table.transform(new))
    )
    assert (again.summary(), again.views_) == (table.summary(), table.views_)
    path.write_bytes(plain)
    assert load_views(path) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["parameters"]["items"].update(missing="run"),
        lambda s: s["parameters"]["items"].update(dates=3),
        lambda s: s["parameters"]["items"].update(best=3),
        lambda s: s["columns_"].pop(3), lambda s: s.update(used_=["site"]),
        lambda s: s["encoder_"]["filler"].update(mean=s["encoder_"]["filler"]["correlation"]),
        lambda s: s["encoder_"]["filler"].update(mean="%%"),
        lambda s: s["encoder_"]["filler"].pop("scale"),
        lambda s: s["encoder_"]["filler"].update(scale=s["encoder_"]["filler"]["around"]),
        lambda s: s["encoder_"]["filler"].update(rows=-1), lambda s: s["encoder_"].pop("filler"),
        lambda s: s["views_"]["items"].update(b=[99]), lambda s: s["views_"]["items"].update(b=[]),
        lambda s: s["views_"]["items"].update(b=[-1]),
        lambda s: s["views_"]["items"].update(b=[1.5]),
        lambda s: s["columns_"][0].update(name=3), lambda s: s["columns_"][0].update(kind="x"),
        lambda s: s["columns_"][0].update(extra=1), lambda s: s["encoder_"].pop("places"),
        lambda s: s["encoder_"]["places"]["items"].clear(),
        lambda s: s["encoder_"]["columns"]["items"].pop(),
        lambda s: s.update(columns_=s["columns_"] * 2), lambda s: s.update(n_features_in_=2),
        lambda s: s.update(read=1), lambda s: s.update({"$": "Column"}),
    ],
)  # fmt: skip
def test_forged_tables_are_refused(stored, change):
    path = stored[2]
    _, tree, tensors = unpack(path.read_bytes())
    change(tree["table"])
    path.write_bytes(pack(json.dumps(tree), tensors))
    with pytest.raises(ModelFileError, match="cannot be used"):
        load_views(path)


def test_a_column_given_up_is_no_gap():
    """Under missing="error" too; gaps of the others are told as ever."""
    rng = np.random.default_rng(0)
    reader = TableViews(missing="error").fit({k: rng.normal(size=60) for k in "abc"})
    assert not reader.read({"a": [0.1], "b": [0.2]}, absent=["c"]).missing.any()
    with pytest.raises(TableError, match="column 'a', row 2"):
        reader.read({"a": [0.1, np.nan], "b": [0.2, 0.3]}, absent=["c"])


def test_categories_that_have_nothing_to_do_with_each_other_keep_the_rate():
    """Places learned from chance flagged 8 to 10%."""
    shares = np.array([30, 20, 15, 12, 10, 7, 4, 2]) / 100
    rates = []
    for seed in range(12):
        rng = np.random.default_rng(seed)

        def table(n, rng=rng):
            return {f"c{i}": rng.choice(list("abcdefgh"), n, p=shares).tolist() for i in range(6)}

        views = TableViews()
        model = MultiKernelFisherNull().fit(views.fit_transform(table(150)))
        rates.append((model.predict(views.transform(table(500))) == -1).mean())
    assert np.mean(rates) < 0.075


def test_a_pipeline_hands_the_views_on():
    rows = factory(300)
    views = {"press": ["force", "power"], "heat": ["celsius"]}
    model = make_pipeline(TableViews(views=views), MultiKernelFisherNull()).fit(rows)
    assert set(model[-1].scaling_) == {"press", "heat"}
    table = TableViews(views=views).fit(rows)
    told = MultiKernelFisherNull(views=table.views_).fit(np.asarray(table.fit_transform(rows)))
    np.testing.assert_array_equal(
        model.score_samples(rows), told.score_samples(table.transform(rows))
    )
    other = {"all": [0, 1, 2]}
    assert set(MultiKernelFisherNull(views=other).fit(table.transform(rows)).scaling_) == {"all"}

"""What the report says is what the model says; nothing of the data becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from kernull import Calibrated, Judge, MultiKernelFisherNull, Solver
from kernull.explain.drift import number_drift
from kernull.report import render_report
from kernull.report._content import gather
from kernull.report._svg import bar_chart, nice_ticks
from tests.plain import plain_fisher


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    views = {"colour": ["x0", "x1", "x2"], "<b>size</b>": ["x3", "x4"]}
    model = Judge(plain_fisher(), views).fit(rng.normal(size=(80, 5)))
    X = np.vstack([rng.normal(size=(60, 5)), rng.normal(size=(20, 5)) + np.r_[4, 4, 4, 0, 0]])
    return model, X, np.repeat([1, -1], [60, 20])


class Outline(HTMLParser):
    """Headings, and everything that would reach for the network."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "poster", "srcset"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value)


def test_numbers_are_the_models(fitted):
    model, X, y = fitted
    content = gather(model.verdicts(X), y)
    scores, flags = model.score_samples(X), model.predict(X) == -1
    assert content.n_flagged == int(flags.sum())
    assert content.labels["auc"] == pytest.approx(roc_auc_score(y, scores))
    # Flagged rows and no others, lowest score first.
    np.testing.assert_allclose(
        [row.score for row in content.rows], np.sort(scores[flags]), rtol=1e-12
    )
    for row in content.rows:
        assert flags[row.position - 1]
        assert row.label == ("normal" if y[row.position - 1] == 1 else "not normal")
    counts = [content.labels[k] for k in ("caught", "missed", "false_alarms", "passed")]
    assert sum(counts) == len(X)
    why = model.explain(X)
    first = content.rows[0]
    best = why.surprise[first.position - 1].argmin()
    away = abs(why.differences[first.position - 1, best])
    assert first.views[0][0] == why.view_names[best]
    assert first.views[0][1].startswith(f"{away:.3f} below normal (")
    assert first.columns[0].number == X[first.position - 1, int(first.columns[0].column[1:])]


def test_every_bar_is_on_its_side_of_the_threshold(fitted):
    model, X, _ = fitted
    content = gather(model.verdicts(X))
    assert any(np.isclose(edge, content.threshold, rtol=0, atol=1e-12) for edge in content.edges)
    (_, _, flagged), (_, _, passed) = content.series
    middle = (np.array(content.edges[1:]) + np.array(content.edges[:-1])) / 2
    assert not np.array(flagged)[middle > content.threshold].any()
    assert not np.array(passed)[middle < content.threshold].any()
    assert sum(flagged) == pytest.approx(content.n_flagged / len(X))
    assert sum(flagged) + sum(passed) == pytest.approx(1.0)
    assert sum(content.outline) == pytest.approx(1.0)


def test_one_rarity_is_told_of_a_row(fitted):
    plain, X, _ = fitted
    rng = np.random.default_rng(0)
    model = Judge().fit(rng.normal(size=(80, 5)))
    heads = [
        re.findall(r'<div class="head">.*?</div>', render_report(m.verdicts(X)))
        for m in (model, plain)
    ]
    assert [[" normal rows" in head for head in some] for some in heads] == [
        [True] * 5,
        [False] * 5,
    ]
    why = model.explain(X)
    first = int(why.scores.argmin())
    assert gather(model.verdicts(X)).rows[0].columns[0].words == why.words(first).split("\n")[1]
    assert [["p = " in head for head in some] for some in heads] == [[False] * 5, [True] * 5]


def test_rows_are_called_by_the_column_of_names(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    table = rows.assign(kind=rng.choice(["x", "y"], 120), part=[f"P{i}" for i in range(120)])
    judge = Judge(id="part").fit(table)
    table.loc[7, "b"] = 9.0
    page = judge.report(table, tmp_path / "r.html").read_text(encoding="utf-8")
    assert page == render_report(judge.verdicts(table), row_names=table["part"])
    assert "<strong>P7</strong>" in page
    assert list(judge.explain(table).table(by="column")["row"]) == ["P7"]
    model = MultiKernelFisherNull().fit(rows)
    table.index = table["part"]
    assert list(model.explain(table.iloc[[7, 9], :3]).table()["row"]) == ["P7", "P9"]


def test_nothing_of_the_data_becomes_markup(fitted):
    _, X, y = fitted
    evil = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    names = [f"{evil}{j}" for j in range(5)]
    model = Judge(views={evil: names[:2], evil * 2: names[2:]})
    model.fit(dict(zip(names, X[:60].T, strict=True)))
    page = render_report(
        model.verdicts(dict(zip(names, X.T, strict=True))), y, title=evil, subtitle=evil,
        row_names=[evil] * len(X), model_path=evil,
    )  # fmt: skip
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>size</b>" not in page
    assert page.count("<script>") == 1


def test_the_page_is_self_contained_and_small(fitted, tmp_path):
    model, X, y = fitted
    path = model.report(X, tmp_path / "report.html", y)
    page = path.read_text(encoding="utf-8")
    outline = Outline(page)
    assert all(link.startswith("#") or link == "data:," for link in outline.links)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert path.stat().st_size < 10**6
    assert len(outline.ids) == len(set(outline.ids))
    anchors = [link[1:] for link in outline.links if link.startswith("#")]
    assert set(anchors) <= set(outline.ids)


def test_headings_do_not_skip_a_level(fitted):
    model, X, _ = fitted
    headings = Outline(render_report(model.verdicts(X))).headings
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))


def test_long_tables_list_the_lowest_scores_and_stay_small(fitted):
    model, _, _ = fitted
    X = np.random.default_rng(1).normal(size=(20_000, 5)) * 1.5
    page = render_report(model.verdicts(X))
    flagged = int((model.predict(X) == -1).sum())
    assert flagged > 500
    assert len(page.encode()) < 10**6
    assert page.split('<table id="rows">')[1].split("</table>")[0].count("<tr data-name=") == 500
    assert f"The 500 with the lowest scores, of {flagged:,}." in page


@pytest.fixture(scope="module")
def factory():
    rng = np.random.default_rng(0)
    n = 300
    rows = {
        "time": [f"2024-03-{1 + i // 60:02d} {i % 24:02d}:00" for i in range(n)],
        "machine": rng.choice(["M1", "M2", "M3"], size=n),
        "force": rng.normal(size=n), "heat": rng.normal(size=n), "speed": rng.normal(size=n),
    }  # fmt: skip
    return Judge().fit(rows), rows


def test_findings_groups_times_and_drift(factory):
    judge, rows = factory
    new = {name: np.array(cells) for name, cells in rows.items()}
    odd = np.flatnonzero(new["machine"] == "M2")[:30]
    new["force"] = new["force"].copy()
    new["force"][odd] += 8.0
    new["heat"] = new["heat"] + 1.0
    content = gather(judge.verdicts(new))
    found = {row.position - 1 for row in content.rows}
    assert set(odd.tolist()) <= found
    assert np.mean([row.columns[0].column == "force" for row in content.rows[:20]]) > 0.9
    group = next(group for group in content.groups if group.column == "machine")
    assert group.values[0][0] == "M2"
    assert group.values[0][3]
    assert sum(entry[1] for entry in group.values) == 300
    assert content.times.column == "time"
    assert sum(content.times.flagged) == content.n_flagged
    assert content.drifts[0].column == "heat"
    assert "speed" not in {drift.column for drift in content.drifts}
    page = render_report(judge.verdicts(new))
    for text in ("stand out", "The five worst", "What drifted", "When and where", "By machine"):
        assert text in page


def test_bars_of_drift_say_how_far_they_reach():
    rng = np.random.default_rng(0)
    old = np.quantile(rng.normal(size=500), np.linspace(0, 1, 101))
    new = rng.normal(size=300) + 1
    near = number_drift("a", old, new, (500, 300))
    assert "bar" not in near.words
    far = number_drift("a", old, np.append(new, [5000.0, 70.0]), (500, 300))
    assert far.words.endswith("in training; the last bar goes on to 5000")
    assert far.edges[-1] == "5000"
    assert far.new[-1] == pytest.approx(2 / 302)
    assert far.edges[0] == near.edges[0]  # nothing is far on that side
    both = number_drift("a", old, np.append(new, [5000.0, -300.0]), (500, 300))
    assert "the first bar begins at -300; the last bar goes on to 5000" in both.words
    assert (both.edges[0], sum(both.new)) == ("-300", pytest.approx(1.0))


def test_rows_like_the_training_rows_do_not_drift(factory):
    judge, rows = factory
    rng = np.random.default_rng(5)
    again = {name: np.array(cells)[rng.permutation(300)] for name, cells in rows.items()}
    again["time"] = np.array(rows["time"])
    assert gather(judge.verdicts(again)).drifts == ()


def test_no_row_flagged_and_rows_that_cannot_be_judged(factory):
    judge, rows = factory
    normal = np.flatnonzero(~judge.verdicts(rows).why.flagged)[:10]
    few = {name: np.array(cells, dtype=object)[normal] for name, cells in rows.items()}
    page = render_report(judge.verdicts(few))
    assert "No row is flagged." in page
    assert 'id="rows"' not in page
    few["force"][3] = "broken"
    page = render_report(judge.verdicts(few))
    assert "not judged" in page
    assert "1 of 10 rows stands out" in page
    empty = {name: cells[3:4] for name, cells in few.items()}
    assert "1 of 1 rows stands out" in render_report(judge.verdicts(empty))


def test_the_same_input_gives_the_same_page(fitted):
    model, X, y = fitted
    assert render_report(model.verdicts(X), y) == render_report(model.verdicts(X), y)


def test_labels_of_one_kind_and_no_labels(fitted):
    model, X, _ = fitted
    one_kind = render_report(model.verdicts(X[:60]), np.ones(60, dtype=int))
    assert "ROC" not in one_kind
    assert "ROC" not in render_report(model.verdicts(X))


def test_a_model_that_did_not_converge_says_so(fitted):
    _, X, _ = fitted
    model = Judge(plain_fisher(p=1.05, delta=1e-4, solver=Solver("paper", max_iter=3)), "features")
    with pytest.warns(Warning, match="gap"):
        model.fit(X[:60])
    page = render_report(model.verdicts(X))
    assert "Other weights may fit the training rows better" in page
    assert 'badge odd">Not converged<' in page


def test_detectors_from_outside_have_a_report_too(fitted):
    _, X, y = fitted
    for model, name in (
        (IsolationForest(random_state=0), "IsolationForest"),
        (Calibrated(OneClassSVM(nu=0.1)), "OneClassSVM"),
    ):
        page = render_report(Judge(model).fit(X[:60]).verdicts(X), y)
        assert name in page
        assert "Against the labels" in page
        assert "is usual for rows like this" in page


def test_counts_are_those_of_evaluate(fitted):
    model, X, y = fitted
    X = X.astype(object)
    X[3, 0] = "broken"  # cannot be judged, and is flagged
    counts = model.evaluate(X, y)
    shown = gather(model.verdicts(X), y).labels
    assert {name: shown[name] for name in counts if name != "not_judged"} == {
        name: value for name, value in counts.items() if name != "not_judged"
    }
    assert counts["not_judged"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [({"row_names": ["a"]}, "row_names"), ({"y": [1]}, "y: expected"), ({"y": [0] * 80}, "y: ")],
)
def test_bad_arguments(fitted, options, said):
    model, X, _ = fitted
    with pytest.raises(ValueError, match=said):
        render_report(model.verdicts(X), **options)


def test_ticks_are_round_and_inside():
    assert nice_ticks(0, 1, 5) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(2.0, 2.0) == [2.0]
    for low, high in [(-3.7, 12.9), (1e-9, 3e-9), (-1e6, 1e6)]:
        ticks = nice_ticks(low, high)
        assert 2 <= len(ticks) <= 12
        assert min(ticks) >= low - 1e-9 * (high - low)
        assert max(ticks) <= high + 1e-9 * (high - low)


def test_bars_are_as_long_as_their_values():
    chart = str(bar_chart("Weights", "text", ["a", "b", "c"], [0.2, 0.4, 0.0], "weight"))
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', chart)]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)
    assert widths[2] < 1
    assert chart.startswith("<svg")
    assert "<title" in chart

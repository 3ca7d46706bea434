"""kernull watch goes on where it stopped; score does without columns."""

import json

import numpy as np
import pytest

from tests.cli.conftest import kernull

N = 150


def rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    load = rng.normal(size=n)
    X = np.column_stack([load, load, load]) + 0.3 * rng.normal(size=(n, 3)) + shift
    return "".join(",".join(f"{v:.6f}" for v in row) + "\n" for row in X)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("state")
    (path / "train.csv").write_text("a,b,c\n" + rows(N, 0))
    kernull("fit", "train.csv", "-o", "m.kernull", "-q", cwd=path)
    return path


def events(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def said(done):
    """Kind, row, score to nine digits and words of each event."""
    return [
        (
            e["event"],
            e["row"],
            round(e.get("score", 0.0), 9),
            [c["words"] for c in e.get("columns", [])],
        )
        for e in events(done)
    ]


def test_two_calls_say_what_one_says(folder):
    first, second = rows(80, 1), rows(80, 2, shift=1.5)
    (folder / "whole.csv").write_text("a,b,c\n" + first + second)
    args = ("--until-end", "--json", "--alarm-every", "1000")
    whole = said(kernull("watch", "m.kernull", "whole.csv", *args, cwd=folder))
    grows = folder / "grows.csv"
    grows.write_text("a,b,c\n" + first)
    args = (*args, "--state", "s.json")
    before = kernull("watch", "m.kernull", "grows.csv", *args, cwd=folder)
    with grows.open("a") as file:
        file.write(second)
    after = kernull("watch", "m.kernull", "grows.csv", *args, cwd=folder)
    assert "goes on from here" in before.stderr
    assert "Going on after row 80" in after.stderr
    assert [*said(before), *said(after)] == whole
    assert any(event["event"] == "drift" for event in events(after))
    again = kernull("watch", "m.kernull", "grows.csv", *args, cwd=folder)
    assert events(again) == []


def test_lines_before_the_header_are_met_again(folder):
    (folder / "notes.csv").write_text("# line 4\n\na,b,c\n" + rows(10, 8))
    args = ("--until-end", "--state", "notes.json")
    kernull("watch", "m.kernull", "notes.csv", *args, cwd=folder)
    with (folder / "notes.csv").open("a") as file:
        file.write(rows(10, 9))
    done = kernull("watch", "m.kernull", "notes.csv", *args, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "20 rows" in done.stderr
    (folder / "wide.csv").write_text("a,b,c\n" + rows(3, 8), encoding="utf-16")
    done = kernull("watch", "m.kernull", "wide.csv", "--until-end", cwd=folder)
    assert done.returncode == 1
    assert "is UTF-16" in done.stderr


def test_a_file_that_starts_anew_is_read_from_its_header(folder):
    (folder / "turn.csv").write_text("a,b,c\n" + rows(40, 3))
    args = ("--until-end", "--state", "turn.json")
    kernull("watch", "m.kernull", "turn.csv", *args, cwd=folder)
    (folder / "turn.csv").write_text("a,b,c\n" + rows(10, 4))
    done = kernull("watch", "m.kernull", "turn.csv", *args, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "became shorter" in done.stderr
    assert "50 rows" in done.stderr


def test_a_state_of_another_model_or_none_is_refused(folder):
    (folder / "some.csv").write_text("a,b,c\n" + rows(5, 5))
    kernull("watch", "m.kernull", "some.csv", "--until-end", "--state", "o.json", cwd=folder)
    kernull("fit", "some.csv", "-o", "other.kernull", "-q", cwd=folder)
    args = ("some.csv", "--until-end", "--state")
    done = kernull("watch", "other.kernull", *args, "o.json", cwd=folder)
    assert done.returncode == 2
    assert "another model" in done.stderr
    (folder / "bad.json").write_text("{}")
    done = kernull("watch", "m.kernull", *args, "bad.json", cwd=folder)
    assert done.returncode == 1
    assert "no state that watch wrote" in done.stderr
    done = kernull("watch", "m.kernull", *args, "some.csv", cwd=folder)
    assert done.returncode == 2


def test_columns_that_are_lost_or_dropped_count_as_empty(folder):
    (folder / "two.csv").write_text("a,b\n0.1,0.2\n5.0,-5.0\n")
    done = kernull("score", "m.kernull", "two.csv", cwd=folder)
    assert done.returncode == 1
    assert "lacks 'c'" in done.stderr
    done = kernull("score", "m.kernull", "two.csv", "--drop", "c", "--json", cwd=folder)
    assert [event["flag"] for event in events(done)] == [0, 1]
    (folder / "three.csv").write_text("a,b,c\n0.1,0.2,99\n5.0,-5.0,99\n")
    same = kernull("score", "m.kernull", "three.csv", "--drop", "c", "--json", cwd=folder)
    assert events(same) == events(done)
    done = kernull("report", "m.kernull", "two.csv", "--drop", "c", "-o", "r.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    done = kernull("score", "m.kernull", "two.csv", "--drop", "?", cwd=folder)
    assert done.returncode == 2


def test_texts_for_empty_cells_are_kept_in_the_model(folder):
    (folder / "off.csv").write_text("a,b,c\n" + rows(N, 6) + "0,off,-999\n")
    done = kernull(
        "fit", "off.csv", "-o", "off.kernull", "--empty", "off", "--empty", "-999", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "2 empty cells" in done.stderr
    (folder / "new.csv").write_text("a,b,c\n0.1,0.2,-999\n")
    done = kernull("score", "off.kernull", "new.csv", "--json", cwd=folder)
    assert events(done)[0]["remarks"] == "empty: c"


def test_views_by_names_with_commas(folder):
    text = '"p, bar","q",r\n' + rows(60, 7)
    (folder / "comma.csv").write_text(text)
    view = 'one="p, bar",r'
    done = kernull("fit", "comma.csv", "-o", "comma.kernull", "--view", view, cwd=folder)
    assert done.returncode == 0, done.stderr
    info = kernull("info", "comma.kernull", cwd=folder)
    assert "View one: p, bar, r" in info.stdout

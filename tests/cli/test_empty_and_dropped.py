"""Columns that new rows lack, texts for empty cells, and names with commas."""

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

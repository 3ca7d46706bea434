"""What README says in figures is what the tables of results say."""

from __future__ import annotations

import re

import pytest

from benchmarks.readme import BEGIN, END, PEERS, ROOT, bold_best, readme, table

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_is_that_of_the_results():
    """After new results: python -m benchmarks.readme."""
    assert readme(TEXT) == TEXT
    assert table() in TEXT.partition(BEGIN)[2].partition(END)[0]


def test_the_table_has_everybody():
    head, _, *lines = table().splitlines()
    for name in (*PEERS[:2], "5-NN", "PyOD"):
        assert name in head
    assert len(lines) >= 7
    assert {line.count("|") for line in lines} == {7}


def test_the_best_is_bold_whoever_it_is():
    assert bold_best(["1.0", "3.0", "2.0"]) == ["1.0", "**3.0**", "2.0"]
    assert bold_best(["1.0", "3.0"], lowest=True) == ["**1.0**", "3.0"]


def test_the_first_screen_is_one_screen():
    """Before the first heading: problem, what one gets, picture and table; not a page more."""
    first = TEXT.partition("\n## ")[0]
    assert len(first.splitlines()) <= 40
    assert "part.png" in first
    (paper,) = [part for part in first.split("\n- ") if "arXiv:2008.08642" in part]
    paper = paper.partition("\n\n")[0]
    assert first.index(paper) < first.index("| nothing tuned |")
    for words in ("Algorithm 1", "Algorithm 2", "kernull.paper", "docs/explanations/paper.md"):
        assert words in paper
    for word in ("lp", "duality", "Fisher"):
        assert not re.search(rf"\b{word}\b", first)


@pytest.mark.parametrize("name", ["part.png", "part-phone.png"])
def test_pictures_are_there(name):
    data = (ROOT / "docs" / "_static" / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 300_000

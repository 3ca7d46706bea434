"""What README says in figures is what the tables of results say."""

from __future__ import annotations

import re

import pytest

from benchmarks.readme import END, HEAD, PROMISES, ROOT, TABLE, compared, promises, readme, table

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def between(begin):
    return TEXT.partition(begin)[2].partition(END)[0]


def test_promises_and_table_are_those_of_the_results():
    """After new results: python -m benchmarks.readme."""
    assert readme(TEXT) == TEXT
    assert table() in between(TABLE)
    assert promises() in between(PROMISES)


def test_the_table_has_everybody():
    head, _, *lines = table().splitlines()
    assert all(name in head for name in HEAD)
    assert len(lines) >= 10
    assert {line.count("|") for line in lines} == {7}


def test_the_best_is_bold_whoever_it_is():
    cells = compared("a", [1.04, 3.0, 3.01], "{:.1f}".format, lambda v: -v)
    assert cells == ["a", "1.0", "**3.0**", "**3.0**", ""]
    assert compared("a", [1.0, 3.0], "{:.1f}".format, lambda v: v)[1:3] == ["**1.0**", "3.0"]


def test_promises_have_their_figure_and_the_command_that_prints_it():
    three = promises().strip().split("\n- ")
    assert len(three) == 3
    for promise in three:
        assert re.search(r"\d[\d.]*%", promise)
        assert re.search(r"`python -m benchmarks\.\w+`\]\(docs/results/", promise)


def test_readme_is_short_and_opens_with_one_screen():
    """Before the first heading: problem, for whom, the picture, the promises, the paper."""
    assert len(TEXT.splitlines()) <= 130
    first = TEXT.partition("\n## ")[0]
    assert len(first.splitlines()) <= 30
    for words in ("part.png", "arXiv:2008.08642", "Algorithm 1", "Algorithm 2", "kernull.paper",
                  "docs/explanations/paper.md"):  # fmt: skip
        assert words in first
    assert first.index("part.png") < first.index(PROMISES) < first.index("arXiv")


@pytest.mark.parametrize("name", ["part.png", "part-phone.png"])
def test_pictures_are_there(name):
    data = (ROOT / "docs" / "_static" / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 300_000

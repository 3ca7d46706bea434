"""Each "always", "never" and "at most" of README and the explanations has something behind it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/explanations").glob("*.md"))]
LISTED = (ROOT / "docs/contributing/promises.md").read_text()
ROWS = re.findall(r"^\| `(\S+\.md)` \| (.+?) \| (.+) \|$", LISTED, re.MULTILINE)


def plain(text):
    """Without line breaks and links."""
    return " ".join(re.sub(r"\]\([^)]*\)|\[", "", text).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_promise_is_listed(page):
    text = plain(page.read_text())
    listed = [sentence for name, sentence, _ in ROWS if name == page.name]
    assert [sentence for sentence in listed if sentence not in text] == []
    places = [
        range(start := text.index(sentence), start + len(sentence)) for sentence in listed
    ]  # of each sentence
    for word in re.finditer(r"\b(always|never|at most)\b", text, re.IGNORECASE):
        around = text[max(word.start() - 60, 0) : word.end() + 60]
        assert any(word.start() in place for place in places), around


def test_what_stands_behind_them_exists():
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for _, sentence, behind in ROWS:
        for name in re.findall(r"`([^`]+)`", behind):
            assert (ROOT / name).exists() or f"def {name}(" in tests, sentence

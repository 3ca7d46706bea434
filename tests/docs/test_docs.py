"""The stranger's path: README and docs are typed and run, and print what they say."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import pytest

import kernull
from tests.docs.pages import ROOT, Reader, blocks, commands, same, shown, written_pages

PAGES = written_pages()
TEXT = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}


def marks(need: str) -> list[pytest.MarkDecorator]:
    return [getattr(pytest.mark, need)] if need else []


#: Every page once with what a bare machine has, and again with what some of its blocks need.
RUNS = [
    pytest.param(page, need, id=f"{page} {need}".strip(), marks=marks(need))
    for page in PAGES
    for need in sorted({"", *(block.need for block in blocks(TEXT[page]))})
    if blocks(TEXT[page])
]
#: A page that is longer is two pages.
MOST_LINES = 250


@pytest.mark.parametrize(("page", "need"), RUNS)
def test_pages_print_what_they_show(page, need, tmp_path):
    mpl.use("Agg")
    reader = Reader(tmp_path)
    for block in blocks(TEXT[page]):
        if block.need not in ("", need):
            continue
        new = reader.type(block, page)
        if block.kind == "python":
            assert same(block.printed, new.printed), f"{block.code}\n{new.printed}"
        else:
            for (line, old), (_, now) in zip(commands(block.code), commands(new.code), strict=True):
                assert same(old, now), f"$ {line}\n{now}"


def test_a_page_that_lies_is_found(tmp_path):
    page = "```python\nprint(1 + 1, 'is two')\n```\n\n```text\n3 is two\n```\n"
    (block,) = blocks(page)
    assert not same(block.printed, Reader(tmp_path).type(block, "page").printed)
    with pytest.raises(UserWarning, match="look"):
        Reader(tmp_path).type(
            blocks("```python\nimport warnings\nwarnings.warn('look')\n```\n")[0], "page"
        )
    assert shown("a \n" * 99).splitlines()[12] == "..."


def test_pages_are_short():
    """All of them, those that programs write from tables too."""
    lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in ALL_PAGES}
    del lines[ROOT / "CHANGELOG.md"]
    assert {str(p): n for p, n in lines.items() if n > MOST_LINES} == {}


def test_no_two_pages_have_one_name():
    """Twin pages (one name in two folders) drift apart; a subject has one."""
    names = [Path(page).name for page in PAGES if Path(page).name != "index.md"]
    assert sorted(set(names)) == sorted(names)


def test_the_reference_has_every_public_name():
    text = "".join(TEXT[page] for page in PAGES if page.startswith("docs/reference/"))
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    listed |= set(re.findall(r"`{1,2}kernull\.(\w+)`", text))
    missing = [name for name in kernull.__all__ if name not in listed and name != "__version__"]
    assert missing == []
    for name in listed:  # and nothing that is not there
        module, _, last = f"kernull.{name}".rpartition(".")
        assert hasattr(import_module(module), last), name


def test_public_methods_are_documented():
    """The reference is made from docstrings: every public method has one."""
    for name in kernull.__all__:
        value = getattr(kernull, name)
        if not inspect.isclass(value):
            continue
        for method, function in inspect.getmembers(value, callable):
            own = (getattr(function, "__module__", "") or "").startswith("kernull")
            if not method.startswith("_") and own:
                assert inspect.getdoc(function), f"{name}.{method}"


LINKS = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ALL_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
ALL_PAGES += [
    p
    for p in (ROOT / "docs").rglob("*.md")
    if not {"_build", "auto_examples", "generated"} & set(p.parts)
]


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Offline: every relative link is a file, every anchor a heading of it."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINKS.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target) if target else page
        assert file.exists(), f"{page.name}: {link}"
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in slugs, f"{page.name}: {link}"

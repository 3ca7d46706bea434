"""The stranger's path: what README, tutorial and guide print is typed and run."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from tests.cli.conftest import COLUMNS, kernull, make_rows, write_csv

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/index.md", "docs/choosing.md", "docs/scale.md"]
PAGES += sorted(
    str(page.relative_to(ROOT))
    for part in ("start", "guide")
    for page in (ROOT / "docs" / part).glob("*.md")
)
PAGE_NEEDS = {"docs/scale.md": pytest.mark.torch, "docs/guide/images.md": pytest.mark.weights}
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def type_line(line: str, folder: Path) -> None:
    """Run one line of a terminal in a folder."""
    words = shlex.split(line, comments=True)
    if words[0] == "make":  # the target is there; the tests are what it runs
        makefile = (ROOT / "Makefile").read_text()
        assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), f"no target {words[1]}"
        return
    if words[:2] == ["pip", "install"]:
        return
    if words[0] == "kernull":
        done = kernull(*words[1:], cwd=folder)
    else:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=300, check=False
        )
    assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"


def take_photographs(folder: Path) -> None:
    """The two folders that the page about images speaks of."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    rng = np.random.default_rng(0)
    for part, count in (("known", 25), ("new", 3)):
        (folder / part).mkdir(parents=True)
        for i in range(count):
            pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            image.fromarray(pixels).save(folder / part / f"{i}.png")


# The grids of the examples are small on purpose, and one photograph is broken.
@pytest.mark.filterwarnings("ignore::kernull.errors.EdgeOfGridWarning")
@pytest.mark.filterwarnings("ignore::kernull.errors.BadImageWarning")
@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=PAGE_NEEDS.get(p, ())) for p in PAGES if blocks(p)]
)
def test_examples_run_as_printed(page, tmp_path, monkeypatch):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    if page == "README.md":  # its commands are about tables that a reader has
        write_csv(tmp_path / "train.csv", COLUMNS, make_rows(60, 0))
        write_csv(tmp_path / "new.csv", COLUMNS, make_rows(20, 1))
    if page == "docs/guide/images.md":
        take_photographs(tmp_path / "photographs")
    names: dict[str, object] = {"__name__": "__main__"}
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, page, "exec"), names)
        else:
            for line in text.splitlines():
                if line.startswith("$ "):
                    type_line(line[2:], tmp_path)


def test_the_tutorial_has_examples_of_both_kinds():
    kinds = [kind for kind, _ in blocks("docs/start/tutorial.md")]
    assert kinds.count("python") >= 4
    assert kinds.count("console") >= 4


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

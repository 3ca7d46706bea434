"""The page on the paper: complete, and true of the code and of the results."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module

import pytest

from tests.docs.pages import ROOT, Reader, blocks, same

PAGE = ROOT / "docs" / "explanations" / "paper.md"
TEXT = PAGE.read_text(encoding="utf-8")
WORDS = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)


def sections():
    parts = re.split(r"^## (.+)$", WORDS, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(section):
    lines = [line for line in sections()[section].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\\\)\|", line)[1:-1]] for line in lines[2:]]


def test_every_equation_is_somewhere():
    numbers = set()
    for first, *_ in rows("Its equations"):
        for low, high in re.findall(r"\((\d+)\)(?:-\((\d+)\))?", first):
            numbers |= set(range(int(low), int(high or low) + 1))
    assert numbers == set(range(1, 33))


@pytest.mark.parametrize(("section", "things"), [
    ("Its equations", ["Proposition 1", "Algorithm 1", "Algorithm 2", "Remark", "Conclusion"]),
    ("Its equations", [f"Supplement {n}" for n in ("I", "II", "III", "IV", "V")]),
    ("Its experiments", [f"Figure {n}" for n in range(1, 6)]),
    ("Its experiments", [f"E{n}" for n in range(1, 11)]),
    ("Its methods", ["FN", "GP", "KPCA", "MK-SVDD", "MK-OCSVM", "Slim-MK-SVDD", "Slim-MK-OCSVM",
                     "lp MK-FN", "Joint lp MK-FN", "lp MK-FN-Grad", "lp MK-FN-CVX"]),
])  # fmt: skip
def test_every_piece_of_the_paper_is_named(section, things):
    text = sections()[section]
    for thing in things:
        assert re.search(rf"(?<![\w-]){re.escape(thing)}(?![\w])", text), thing


def test_every_table_has_an_experiment():
    listed = [re.search(r"Tables? (\d(?:, \d)*)", first) for first, *_ in rows("Its experiments")]
    numbers = [int(number) for found in listed if found for number in found[1].split(", ")]
    assert numbers == list(range(1, 9))


def test_every_name_is_there():
    for name in re.findall(r"`(kernull(?:\.\w+)+)", WORDS):
        for cut in range(name.count("."), -1, -1):  # the module, then what it holds
            parts = name.split(".")
            try:
                value = import_module(".".join(parts[: cut + 1]))
            except ModuleNotFoundError:
                continue
            for part in parts[cut + 1 :]:
                value = getattr(value, part)
            break


def test_every_module_named_is_there():
    paths = re.findall(r"`((?:tests|experiments)/[\w/]+\.py)[`:]", WORDS)
    assert len(paths) > 5
    for path in paths:
        assert (ROOT / path).is_file(), path


def test_every_test_named_is_collected():
    ids = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", WORDS)))
    assert len(ids) > 5
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *ids], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_blocks_need_nothing_of_each_other(tmp_path):
    for block in blocks(TEXT):
        assert same(block.printed, Reader(tmp_path).type(block, PAGE.name).printed), block.code


def test_figures_are_those_of_the_results():
    """Every number with a decimal point stands in the overview, or on the page that is linked."""
    overview = (ROOT / "docs/results/README.md").read_text(encoding="utf-8")
    checked = 0
    for claim, here in rows("What came back, and what did not"):
        (link,) = re.findall(r"\]\(([^)]+)\)", here)
        said = overview + (PAGE.parent / link).read_text(encoding="utf-8")
        said = " ".join(said.split())
        for number in re.findall(r"\d+\.\d+", re.sub(r"\(\[.*", "", here)):
            assert number in said, (claim, number)
            checked += 1
    assert checked > 10
    silent = " ".join(cell for row in rows("Where the paper is silent") for cell in row)
    for number in ("75.2", "77.0", "76.6", "77.4", "76.8"):
        assert number in silent
        assert number in overview


def test_delft_ranking_is_that_of_the_page():
    """How many of the eleven are ahead on average, and where the exact optimum is best."""
    page = (ROOT / "docs/results/E4/page.md").read_text(encoding="utf-8")
    published = [line for line in page.splitlines() if re.match(r"\| .* ± \S+ \[", line)]
    auc = {}
    for line in published:
        name, *cells, mean = (cell.strip() for cell in line.strip("|").split("|"))
        auc[name] = [float(cell.split()[0]) for cell in cells], float(mean)
    assert len(auc) == 11
    sets, mean = auc.pop("lp MK-FN")
    best = sum(ours > max(other[k] for other, _ in auc.values()) for k, ours in enumerate(sets))
    assert (len(sets), best) == (9, 1)
    claims = dict(rows("What came back, and what did not"))
    (here,) = (claims[claim] for claim in claims if "Delft" in claim)
    assert f"has {mean} and is best of the eleven on one set" in here
    ahead = {name: other for name, (_, other) in auc.items() if other > mean}
    assert dict(re.findall(r"([\w-]+) \((\d+\.\d)\)", here)) == {
        name: str(other) for name, other in ahead.items()
    }

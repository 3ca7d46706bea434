"""Pages from tables: ``python -m experiments.pages docs/results``.

A full run writes its page at its end. This writes the pages of a folder of results again from the
tables that lie beside them, without the cells, and the overview `README.md` from all of them, so
that no sentence with a number can go stale (`tests/experiments/test_pages.py` compares).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from experiments import _e4_hypotheses_report, e1, e4_protocol, load_experiment
from experiments._cells import Rows, Settings
from experiments._lp_balls import draw_lp_balls
from experiments._store import write_atomically
from experiments._tables import distinct, read_table
from experiments.datasets._delft import TARGETS
from experiments.e9_joint import ENROLMENT

__all__ = ["PAGES", "page_body", "typed_rows", "write_page", "write_pages"]

#: Experiments whose pages follow from their tables.
PAGES = (
    "E1",
    "E2",
    "E3",
    "E4",
    "E4-ablation",
    "E4-family",
    "E4-gp",
    "E4-hypotheses",
    "E8",
    "E8-flowers",
    "E9-joint",
    "E10",
    "local-and-tasks",
)


def typed(text: str) -> Any:
    """A whole number, a number, a truth value, or the text itself.

    Examples
    --------
    >>> typed("3"), typed("0.5"), typed("True"), typed("32/31"), typed("")
    (3, 0.5, True, '32/31', '')
    """
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def typed_rows(path: Path) -> Rows:
    """Rows of a table with numbers as numbers."""
    return [{key: typed(value) for key, value in row.items()} for row in read_table(path)]


def page_settings(name: str, rows: Rows) -> Settings:
    """What a page says about its run, as far as the table does not; needs no data sets."""
    if name == "E4":
        return {
            "problems": list(dict.fromkeys((row["set"], row["target"]) for row in rows)),
            "chosen": TARGETS,
            "methods": [*e4_protocol.PAPER_METHODS, *e4_protocol.PEERS],
        }
    if name in ("E4-ablation", "E4-family", "E4-gp", "local-and-tasks"):
        return {}
    if name in ("E8", "E8-flowers"):
        alone = [m for m in distinct(rows, "method") if m.startswith("FN ") and "," not in m]
        return {"networks": sorted(m.removeprefix("FN ") for m in alone)}
    return load_experiment(name).settings(False)


def page_body(name: str, folder: Path, figures: Path | None = None) -> str:
    """The page of an experiment below its head, from the tables in its folder.

    Parameters
    ----------
    name : str
        One of `PAGES`.
    folder : path
        Where the tables lie.
    figures : path, optional
        Where figures are drawn; the folder itself by default.
    """
    if name == "E4-hypotheses":
        return _e4_hypotheses_report.body(typed_rows(folder / "summary.csv"))
    timings = folder / "timings.csv"
    rows = typed_rows(timings if timings.is_file() else folder / "results.csv")
    if name == "E9-joint":  # times beside results
        rows += [r for r in typed_rows(folder / "results.csv") if r["method"] != ENROLMENT]
    if name == "E1":  # its first figure is of curves that are too long for a table
        draw_lp_balls((figures or folder) / "lp_balls.png")
        return e1.body([{**row, "p": str(row["p"])} for row in rows], e1.settings(False))
    settings = page_settings(name, rows)
    if name == "E8":
        return load_experiment(name).report(rows, {**settings, "tables": folder}, figures or folder)
    return load_experiment(name).report(rows, settings, figures or folder)


def head_of(page: str) -> str:
    """Title and command of a page: its first two paragraphs."""
    return "\n\n".join(page.split("\n\n")[:2])


def write_pages(results: Path) -> list[Path]:
    """Write every page of a folder of results again, and its overview; returns what changed."""
    from experiments.findings import family_page, overview

    found = [results / name / "page.md" for name in PAGES]
    changed = [path for path in found if path.is_file() and write_page(path)]
    for name, text in (("README.md", overview), ("family.md", family_page)):
        path, after = results / name, text(results)
        if not path.is_file() or path.read_text(encoding="utf-8") != after:
            write_atomically(path, after)
            changed.append(path)
    return changed


def write_page(path: Path) -> bool:
    """Write one page again below its head; True where it changed."""
    before = path.read_text(encoding="utf-8")
    after = f"{head_of(before)}\n\n{page_body(path.parent.name, path.parent).rstrip()}\n"
    if after != before:
        write_atomically(path, after)
    return after != before


if __name__ == "__main__":
    for written in write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")):
        print(written)

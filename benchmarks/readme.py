"""Write what README says in figures: ``python -m benchmarks.readme``.

The table is read from the tables that other benchmarks wrote into docs/results (arena, decisions,
alarms); nothing is measured here. The picture is drawn from the demo. A test compares README
with what this module makes of the tables.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
BEGIN, END = "<!-- python -m benchmarks.readme -->\n", "<!-- end -->\n"

OURS = "MultiKernelFisherNull()"
NEIGHBOURS = "5 nearest neighbours"
PEERS = ("OneClassSVM", "IsolationForest", NEIGHBOURS)
#: Families of the arena that have a line of their own, in this order.
FAMILIES = {
    "tables": "AUC, {n} tables",
    "adbench": "AUC, {n} tables of ADBench",
    "multi-view": "AUC, {n} sets of six views",
    "images": "AUC, {n} sets of images",
    "inspection": "AUC, {n} inspection sets",
}
NONE = "–"


def read(name: str, results: Path = RESULTS) -> list[dict[str, str]]:
    """Rows of a table of results."""
    with (results / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def arena_lines(results: Path = RESULTS) -> list[list[str]]:
    """Mean AUC by family, and the median time of a fit."""
    summary = {row["entrant"]: row for row in read("arena/summary.csv", results)}
    problems: dict[str, set[str]] = {}
    for row in read("arena/results.csv", results):
        problems.setdefault(row["family"], set()).add(row["data"])
    lines = []
    for family, title in FAMILIES.items():
        key = f"auc_{family}"
        if not all(summary[name].get(key) for name in (OURS, *PEERS)):
            continue
        values = {name: float(row[key]) for name, row in summary.items() if row.get(key)}
        pyod = {name: v for name, v in values.items() if name.startswith("PyOD")}
        best = max(pyod, key=lambda name: pyod[name])
        cells = [values[name] for name in (OURS, *PEERS)] + [pyod[best]]
        text = bold_best([f"{v:.1f}" for v in cells])
        text[-1] += f" ({best.removeprefix('PyOD ')})"
        lines.append([title.format(n=len(problems[family])), *text])
    return lines


def time_line(results: Path = RESULTS) -> list[str]:
    """The median time to fit and to score one problem of the arena."""
    summary = {row["entrant"]: row for row in read("arena/summary.csv", results)}
    seconds = {name: float(row["seconds_median"]) for name, row in summary.items()}
    pyod = {name: s for name, s in seconds.items() if name.startswith("PyOD")}
    best = min(pyod, key=lambda name: pyod[name])
    cells = [f"{seconds[name]:.3f}" for name in (OURS, *PEERS)]
    return [
        "seconds, median",
        *bold_best([*cells, f"{pyod[best]:.3f}"], lowest=True)[:-1],
        f"{pyod[best]:.3f} ({best.removeprefix('PyOD ')})",
    ]


def alarm_lines(results: Path = RESULTS) -> list[list[str]]:
    """Realised false alarms, unclean training rows, noise views and broken views."""
    decisions = read("decisions.csv", results)

    def mean(column: str, what: str, **want: str) -> float:
        rows = [
            row
            for row in decisions
            if row["what"] == what and all(row[k] == v for k, v in want.items())
        ]
        return fmean(float(row[column]) for row in rows if row[column])

    def unclean(column: str, share: str, first: str) -> list[float]:
        names = (first, "IsolationForest", "five neighbours", "ECOD")
        return [mean(column, "contamination", kind=name, share=share) for name in names]

    shares = {float(row["share"]): row["share"] for row in decisions if row["share"]}
    clean, tenth = shares[0.0], shares[0.1]
    alarms = unclean("alarms", clean, "default")
    auc = unclean("value", tenth, "contamination=0.1")
    lost, theirs = (mean(c, "lost", kind="Gaussian") for c in ("value", "neighbours"))
    broken = mean("value", "broken", kind="none")
    percent = [f"{100 * v:.1f}%" for v in alarms]
    areas = bold_best([f"{100 * v:.1f}" if v <= 1 else f"{v:.1f}" for v in auc])
    return [
        line("false alarms, 5% asked for", percent[0], *percent[1:3], percent[3]),
        line("AUC, training rows 10% unclean", areas[0], *areas[1:]),
        line("AUC lost to a view of noise", f"{lost:.1f}", NONE, f"{theirs:.1f}"),
        line("broken views flagged", f"{100 * broken:.0f}%"),
    ]


def line(
    title: str, ours: str, forest: str = NONE, near: str = NONE, ecod: str = NONE
) -> list[str]:
    """A line of what was measured of some; PyOD's is ECOD."""
    return [title, ours, NONE, forest, near, ecod if ecod == NONE else f"{ecod} (ECOD)"]


def bold_best(cells: list[str], *, lowest: bool = False) -> list[str]:
    """Cells with the best of them in bold."""
    values = [float(cell) for cell in cells]
    best = min(values) if lowest else max(values)
    return [f"**{c}**" if v == best else c for c, v in zip(cells, values, strict=True)]


def table(results: Path = RESULTS) -> str:
    """The table of README."""
    head = ["nothing tuned", "kernull", *PEERS[:2], "5-NN", "best of PyOD"]
    lines = [head, ["---"] * len(head), *arena_lines(results), *alarm_lines(results)]
    lines.append(time_line(results))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def readme(text: str, results: Path = RESULTS) -> str:
    """README with the table of these results."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(results)}\n{END}{after}"


def draw(folder: Path = ROOT / "docs" / "_static") -> None:
    """The picture of README, for a desk and for a phone."""
    from kernull.demo import find
    from kernull.demo.picture import draw_part

    with tempfile.TemporaryDirectory() as place:
        found = find(Path(place))
        draw_part(found, folder / "part.png")
        draw_part(found, folder / "part-phone.png", narrow=True)


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")
    draw()

"""Write what README says in figures: ``python -m benchmarks.readme``.

The table is read from the tables that other benchmarks wrote into docs/results (arena, beside);
nothing is measured here. The picture is drawn from the demo. A test compares README
with what this module makes of the tables.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from statistics import fmean

from benchmarks.beside import means, shown

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
BEGIN, END = "<!-- python -m benchmarks.readme -->\n", "<!-- end -->\n"

OURS = "MultiKernelFisherNull()"
NEIGHBOURS = "5 nearest neighbours"
PEERS = ("OneClassSVM", "IsolationForest", NEIGHBOURS)
#: Families of the arena that have a line of their own, in this order.
FAMILIES = {
    "tables": "AUC, {n} small tables",
    "adbench": "AUC, {n} tables of ADBench",
    "multi-view": "AUC, {n} sets of six views",
    "images": "AUC, {n} sets of images",
    "inspection": "AUC, {n} inspection sets",
}
#: Lines of the table beside peers, and what makes a value worse.
BESIDE = {
    "alarms": ("false alarms, 5% asked for", lambda v: abs(v - 0.05)),
    "noise": ("AUC lost to a view of noise", lambda v: v),
    "broken": ("broken views flagged", lambda v: -v),
    "unclean": ("AUC, training rows 10% unclean", lambda v: -v),
}
#: Width and height of README's picture for a phone, in inches.
PHONE = (5.2, 7.5)


def read(name: str, results: Path = RESULTS) -> list[dict[str, str]]:
    """Rows of a table of results."""
    with (results / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def arena_lines(results: Path = RESULTS) -> list[list[str]]:
    """Mean AUC by family: the mean over problems of the mean over repeats."""
    ranked = {row["entrant"] for row in read("arena/summary.csv", results)}
    aucs: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in read("arena/results.csv", results):
        if row["entrant"] in ranked and not row.get("view"):
            family = "adbench" if row["data"].startswith("adbench/") else row["family"]
            by = aucs.setdefault(family, {}).setdefault(row["entrant"], {})
            by.setdefault(row["data"], []).append(100 * float(row["auc"]))
    lines = []
    for family, title in FAMILIES.items():
        values = {name: fmean(map(fmean, by.values())) for name, by in aucs.get(family, {}).items()}
        if not values:
            continue
        pyod = {name: v for name, v in values.items() if name.startswith("PyOD")}
        best = max(pyod, key=lambda name: pyod[name])
        cells = [values[name] for name in (OURS, *PEERS)] + [pyod[best]]
        text = bold_best([f"{v:.1f}" for v in cells])
        text[-1] += f" ({best.removeprefix('PyOD ')})"
        lines.append([title.format(n=len(aucs[family][OURS])), *text])
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


def beside_lines(results: Path = RESULTS) -> list[list[str]]:
    """Realised false alarms, a noise view, broken views and unclean rows, beside peers."""
    found = {key: mean for key, (mean, _) in means(read("beside.csv", results)).items()}
    names = (OURS, *PEERS[:2], "PyOD KNN")
    lines = []
    for measure, (title, worse) in BESIDE.items():
        pyod = min(("PyOD KNN", "PyOD ECOD"), key=lambda name: worse(found[name, measure]))
        cells = [found[name, measure] for name in (*names, pyod)]
        best = min(map(worse, cells))
        text = [
            f"**{shown(measure, v)}**" if worse(v) == best else shown(measure, v) for v in cells
        ]
        lines.append([title, *text[:-1], f"{text[-1]} ({pyod.removeprefix('PyOD ')})"])
    return lines


def published_line(results: Path = RESULTS) -> str:
    """What others published on ADBench's tables, as the arena's page has it."""
    page = (results / "arena" / "page.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(page) if line.startswith("| ADBench"))
    mean = next(line for line in page[start:] if line.startswith("| mean |"))
    names, values = (
        [c.strip() for c in line.strip("|").split("|")] for line in (page[start], mean)
    )
    known = {
        name.removeprefix("published: "): float(value)
        for name, value in zip(names[2:], values[2:], strict=True)
        if value
    }
    best = max(known, key=lambda name: known[name])
    return (
        f"Published on ADBench's twenty, on other splits: KNN {known['KNN']:.1f}, and the best on "
        f"average, {best}, {known[best]:.1f} ([tables](docs/results/arena/page.md)).\n"
    )


def bold_best(cells: list[str], *, lowest: bool = False) -> list[str]:
    """Cells with the best of them in bold."""
    values = [float(cell) for cell in cells]
    best = min(values) if lowest else max(values)
    return [f"**{c}**" if v == best else c for c, v in zip(cells, values, strict=True)]


def table(results: Path = RESULTS) -> str:
    """The table of README."""
    head = ["nothing tuned", "kernull", *PEERS[:2], "5-NN", "best of PyOD"]
    lines = [head, ["---"] * len(head), *arena_lines(results), *beside_lines(results)]
    lines.append(time_line(results))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def readme(text: str, results: Path = RESULTS) -> str:
    """README with the table of these results."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(results)}\n{published_line(results)}{END}{after}"


def draw_narrow(ax, what) -> None:
    """Lay the demo's picture out on a page of size `PHONE`: one view below the other."""
    from examples import demo as p

    first, _, second = what.title.partition(": ")
    ax.text(0.2, 0.35, f"{first}:", size=15.5, weight="bold", color=p.INK, va="center")
    ax.text(0.2, 0.68, second, size=12.5, weight="bold", color=p.INK, va="center")
    y = 1.12
    for view, gauges in what.views.items():
        odd = p.draw_view_name(ax, what, view, 0.2, y, 14)
        ax.text(2.9, y, "evidence", size=10.5, color=p.QUIET, va="center", ha="right")
        p.draw_bar(ax, what, view, 3.05, y, 1.45, odd, 11)
        for c, gauge in enumerate(gauges):
            p.draw_gauge(ax, gauge, 0.2 + 1.24 * c, y + 0.42, 1.06, 11)
        y += 1.3
        ax.plot([0.2, 5.0], [y - 0.28, y - 0.28], color=p.PALE, lw=0.8)
    first, _, second = what.callout.partition("; ")
    ax.text(0.2, y + 0.02, f"{first};", size=12, color=p.ODD, weight="bold", va="center")
    ax.text(0.2, y + 0.29, second, size=12, color=p.ODD, weight="bold", va="center")
    p.draw_key(ax, 0.2, y + 0.63, p.PALE, "all good parts", 10.5)
    p.draw_key(ax, 2.15, y + 0.63, p.BAND, "parts like this one", 10.5)
    p.draw_tick_key(ax, 0.2, y + 0.93, 10.5)


def draw(folder: Path = ROOT / "docs" / "_static") -> None:
    """The picture of README, for a desk and for a phone."""
    from examples.demo import Findings, draw_part

    with tempfile.TemporaryDirectory() as place:
        found = Findings(Path(place))
        draw_part(found, folder / "part.png")
        draw_part(found, folder / "part-phone.png", draw_narrow, PHONE)


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")
    draw()

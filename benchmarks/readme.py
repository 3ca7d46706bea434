"""Write what README says in figures: ``python -m benchmarks.readme``.

Promises and table are read from what other benchmarks wrote into docs/results (oddbench, arena,
beside, alarms, column_reasons, beside_landed); nothing is measured here. The picture is drawn from
the demo. A test compares README with what this module makes of the pages.
"""

from __future__ import annotations

import csv
import re
import tempfile
from pathlib import Path
from statistics import fmean
from textwrap import TextWrapper

from benchmarks.beside import means, shown
from benchmarks.oddbench import PUBLISHED

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
#: The default alone on tables and views, by ``python -m benchmarks.arena run --families tables
#: multi-view --entrants 'MultiKernelFisherNull()'``, and when: peers are those of the arena.
AGAIN, RUN_AGAIN = "arena/again.csv", "2026-11-19"
END = "<!-- end -->\n"
PROMISES, TABLE = "<!-- promises -->\n", "<!-- python -m benchmarks.readme -->\n"

OURS = "MultiKernelFisherNull()"
HEAD = (
    "nothing tuned", "kernull", "IsolationForest", "nearest rows", "OneClassSVM", "best published"
)  # fmt: skip
#: Names of the columns in the tables of each benchmark.
ARENA = (OURS, "IsolationForest", "5 nearest neighbours", "OneClassSVM")
BESIDE = (OURS, "IsolationForest", "PyOD KNN", "PyOD OCSVM")
ODDBENCH = ("kernull", "IsolationForest", "5-NN", "OneClassSVM")
#: Families of the arena that have a line of their own, in this order.
FAMILIES = {
    "adbench": "AUC, {n} tables of ADBench",
    "tables": "AUC, {n} small tables",
    "images": "AUC, {n} sets of images",
    "multi-view": "AUC, {n} sets of several views",
}
#: Measures of `benchmarks.beside` that have a line, and what makes a value worse.
MEASURES = {
    "swapped": ("AUC, rows whose two views are of two rows", lambda v: -v),
    "noise": ("AUC lost to a view of noise", lambda v: v),
    "alarms": ("false alarms at 5%, ordinary tables", lambda v: abs(v - 0.05)),
    "wide": ("false alarms at 5%, wide tables", lambda v: abs(v - 0.05)),
    "broken": ("rows with a broken sensor flagged", lambda v: -v),
    "unclean": ("AUC, a tenth of the training rows odd", lambda v: -v),
}
#: Width and height of README's picture for a phone, in inches.
PHONE = (5.2, 7.5)


def read(name: str, results: Path = RESULTS) -> list[dict[str, str]]:
    """Rows of a table of results."""
    with (results / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def page_table(name: str, column: str, results: Path = RESULTS) -> list[dict[str, str]]:
    """Rows of the first table of a page that has a column of this name."""
    lines = (results / name).read_text(encoding="utf-8").splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    start = next(i for i, row in enumerate(cells) if column in row)
    rows = []
    for row in cells[start + 2 :]:
        if len(row) != len(cells[start]):
            break
        rows.append(dict(zip(cells[start], row, strict=True)))
    return rows


def compared(title: str, cells: list[float], show, worse, published: str = "") -> list[str]:
    """A line of the table; what reads as the best of the cells is bold."""
    best = show(min(cells, key=worse))
    return [title, *(f"**{t}**" if t == best else t for t in map(show, cells)), published]


def by_auc(title: str, cells: list[float], published: str = "") -> list[str]:
    """A line of mean AUC."""
    return compared(title, cells, "{:.1f}".format, lambda v: -v, published)


def oddbench_lines(results: Path = RESULTS) -> list[list[str]]:
    """Mean AUC over the tables of OddBench, where it has been run."""
    if not (results / "oddbench.csv").exists():
        return []
    rows = read("oddbench.csv", results)
    cells = []
    for method in ODDBENCH:
        auc = [float(row["auc"]) for row in rows if row["method"] == method]
        cells.append(fmean(auc))
    n = len({row["data"] for row in rows})
    best = max(PUBLISHED, key=lambda name: PUBLISHED[name][0])
    published = f"{PUBLISHED[best][0]:.1f} ({best}, all 790)"
    return [by_auc(f"AUC, {n} tables of OddBench", cells, published)]


def arena_lines(results: Path = RESULTS) -> list[list[str]]:
    """Mean AUC by family: the mean over problems of the mean over repeats."""
    aucs, again = by_family("arena/results.csv", results), by_family(AGAIN, results)
    for family, entrants in again.items():  # the default of today in place of that of the arena
        aucs[family] |= entrants
    lines = []
    for family, title in FAMILIES.items():
        if family in aucs:
            cells = [fmean(map(fmean, aucs[family][name].values())) for name in ARENA]
            published = "{:.1f} ({})".format(*adbench(results)) if family == "adbench" else ""
            lines.append(by_auc(title.format(n=len(aucs[family][OURS])), cells, published))
    return lines


def by_family(name: str, results: Path = RESULTS) -> dict[str, dict[str, dict[str, list[float]]]]:
    """AUCs of a table of the arena by family, entrant and problem."""
    aucs: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in read(name, results):
        if row["entrant"] in ARENA and not row.get("view"):
            family = "adbench" if row["data"].startswith("adbench/") else row["family"]
            by = aucs.setdefault(family, {}).setdefault(row["entrant"], {})
            by.setdefault(row["data"], []).append(100 * float(row["auc"]))
    return aucs


def adbench(results: Path = RESULTS) -> tuple[float, str]:
    """The best published mean over ADBench's tables of the arena, and whose it is."""
    mean = page_table("arena/page.md", "default, here", results)[-1]
    known = {k.removeprefix("published: "): float(v) for k, v in list(mean.items())[2:] if v}
    best = max(known, key=lambda name: known[name])
    return known[best], best


def beside_lines(results: Path = RESULTS) -> list[list[str]]:
    """Swapped views, noise, false alarms, broken sensors and unclean rows, beside peers."""
    value = {key: mean for key, (mean, _) in means(read("beside.csv", results)).items()}
    return [
        compared(title, [value[name, m] for name in BESIDE], lambda v, m=m: shown(m, v), worse)
        for m, (title, worse) in MEASURES.items()
    ]


def time_line(results: Path = RESULTS) -> list[str]:
    """The median time to fit and to score one problem of the arena."""
    summary = {row["entrant"]: row for row in read("arena/summary.csv", results)}
    summary |= {row["entrant"]: row for row in read("arena/again_summary.csv", results)}
    cells = [float(summary[name]["seconds_median"]) for name in ARENA]
    return compared("seconds to fit and score, median", cells, "{:.3f}".format, lambda v: v)


def table(results: Path = RESULTS) -> str:
    """The table of README."""
    lines = [list(HEAD), ["---"] * len(HEAD), *oddbench_lines(results), *arena_lines(results)]
    lines += [*beside_lines(results), time_line(results)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def losses(results: Path = RESULTS) -> str:
    """Where others are ahead, and what is hardly seen."""
    rows = [[c.strip() for c in row.split("|")[1:3]] for row in table(results).splitlines()[2:]]
    behind = [title for title, ours in rows if "**" not in ours]
    page = (results / "beside_landed.md").read_text(encoding="utf-8")
    (swapped,) = re.findall(r"AUC, swapped\**\** \| [\d.]+ \| ([\d.]+) \|", page)
    (sets,) = re.findall(r"## swapped: (\d+) tasks", page)
    arena = (results / "arena" / "page.md").read_text(encoding="utf-8")
    (date,) = re.findall(r"^`python .*?, (\d{4}-\d\d-\d\d),", arena, re.MULTILINE)
    page = (results / "published.md").read_text(encoding="utf-8")
    ours, nearest = re.findall(r"\| mean \|  \| \*\*([\d.]+)\*\* \| \*\*([\d.]+)", page)[0]
    return (
        f"**Where it loses**: {'; '.join(behind)}; rows of which a third of the views is another "
        f"row's\n(AUC {swapped}, [{sets} sets](docs/results/beside_landed.md)). "
        "Published means are of more tables (OddBench), or of a protocol that draws small sets "
        f"with copies before they are split (ADBench: by it kernull has {ours}, the nearest row "
        f"{nearest}, [both ways](docs/results/published.md)). "
        f"Arena: {date}; kernull again {RUN_AGAIN}, but images.\n"
    )


def promises(results: Path = RESULTS) -> str:
    """What one gets, each with what was measured."""
    page = (results / "alarms.md").read_text(encoding="utf-8")
    pattern = r"'cross', continuous tables: mean ([\d.]+)%, from ([\d.]+) to ([\d.]+)%"
    mean, low, high = re.findall(pattern, page)[0]
    first = [
        float(row["right column first"].rstrip("%"))
        for row in page_table("benchmarks.md", "right column first", results)
    ]
    value = {key: mean for key, (mean, _) in means(read("beside.csv", results)).items()}
    noise, broken = (shown(m, value[OURS, m]) for m in ("noise", "broken"))
    named = f"{min(first):.0f} to {max(first):.0f}%"
    points = [
        f"**Keeps close to the false-alarm rate you name.** Asked for 5%, it flags {mean}% "
        f"of new normal rows on average over tables of continuous columns, {low} to {high}% "
        "by table ([`python -m benchmarks.alarms`](docs/results/alarms.md); [when it does "
        "not](docs/explanations/evidence.md#when-the-rate-is-not-kept)).",
        "**How rare each row is, and why**: one in how many normal rows, which view, which column, "
        "and what is usual for rows like it. Where one column was altered, it is named first in "
        f"{named} of the flagged rows ([`python -m benchmarks.column_reasons`]"
        "(docs/results/benchmarks.md#tables-measured)).",
        f"**One bad view does not spoil the rest.** A view of pure noise costs {noise} points of "
        f"AUC, and a broken sensor is flagged in {broken} of rows "
        "([`python -m benchmarks.beside`](docs/results/beside.md)).",
    ]
    wrap = TextWrapper(
        120,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    whole = (point.replace("python -m ", "python\0-m\0") for point in points)  # not parted
    return "".join(f"{wrap.fill(point)}\n" for point in whole).replace("\0", " ")


def replaced(text: str, begin: str, body: str) -> str:
    """A text with what stands between a marker and the next end."""
    before, _, rest = text.partition(begin)
    return f"{before}{begin}{body}{END}{rest.partition(END)[2]}"


def readme(text: str, results: Path = RESULTS) -> str:
    """README with the promises and the table of these results."""
    text = replaced(text, PROMISES, promises(results))
    return replaced(text, TABLE, f"{table(results)}\n{losses(results)}")


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

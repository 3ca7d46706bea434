"""Values never seen and unusual gaps: how many are flagged, and at what rate of false alarms.

    python -m benchmarks.unseen [--rows 100 1000] [--seeds 10] [--only "20 Zipf"]
        [--write docs/results/unseen.md]

Rows have five correlated numbers, a constant text, a category of three values, an on/off column and
a number of four values; some tables have categories of 40 values with Zipf's frequencies beside, or
gaps. `kernull.TableViews` reads them. Printed, in %, at a false-alarm rate of 5%: normal rows that
are flagged, and of rows with one cell changed those that are: a value never seen in the constant
column, the category, the on/off column and the number; an empty cell in a column that is never
empty otherwise (where there are no gaps: the constant one, and the category); and, of tables in two
views, the same in the view of one column.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from experiments._tables import markdown
from kernull import MultiKernelFisherNull, TableViews

ODD = {
    "constant": ("status", "ERROR"), "category": ("mode", "z"), "on/off": ("on", "broken"),
    "number": ("code", 9), "gap": ("status", None), "gap 2": ("mode", None),
}  # fmt: skip
#: Tables: number of Zipf-distributed categories, share of empty cells among the numbers.
TABLES = {
    "plain": (0, 0.0), "1 Zipf": (1, 0.0), "5 Zipf": (5, 0.0), "20 Zipf": (20, 0.0),
    "gaps of 10%": (0, 0.1), "gaps of 30%": (0, 0.3), "5 Zipf, gaps of 10%": (5, 0.1),
    "plain, two views": (0, 0.0),
}  # fmt: skip
VIEWS = {"numbers": ["x*", "code", "mode"], "state": ["status", "on"]}
TEST_ROWS, CHANGED = 1000, 300


def draw(rng, n, categories, gaps):
    """Normal rows by column."""
    z = rng.normal(size=(n, 2))
    share = 1.0 / np.arange(1, 41) ** 1.2
    table = {f"x{j}": z @ [np.cos(j), np.sin(j)] + 0.5 * rng.normal(size=n) for j in range(5)}
    for j in range(categories):
        table[f"zipf{j}"] = rng.choice([f"v{i}" for i in range(40)], n, p=share / share.sum())
    for name in [f"x{j}" for j in range(5)]:
        table[name][rng.random(n) < gaps] = np.nan
    table["status"], table["mode"] = ["OK"] * n, rng.choice(["a", "b", "c"], n)
    return table | {"on": rng.random(n) < 0.5, "code": rng.integers(1, 5, n)}


def run(key, n, seed):
    """Shares flagged, in %: of normal rows, then of rows with each of `ODD`; and seconds to fit."""
    categories, gaps = TABLES[key]
    rng = np.random.default_rng([n, seed, *key.encode()])
    train, test = draw(rng, n, categories, gaps), draw(rng, TEST_ROWS, categories, gaps)
    views = VIEWS if "views" in key else None
    begin = time.perf_counter()
    table = TableViews(views=views).fit(train)
    model = MultiKernelFisherNull(views=table.views_).fit(table.transform(train))
    seconds = time.perf_counter() - begin

    def flagged(rows):
        return 100 * float((model.predict(table.transform(rows)) == -1).mean())

    some = {name: list(cells)[:CHANGED] for name, cells in test.items()}
    odd = [flagged(some | {column: [value] * CHANGED}) for column, value in ODD.values()]
    return [flagged(test), *odd, seconds]


def main(rows=(100, 1000), seeds=10, only="", write=None):
    """Print a line for each table and number of rows, and write the page; give the means."""
    warnings.simplefilter("ignore")
    print(f"{'table':22s}{'rows':>6s}{'alarms':>8s}" + "".join(f"{name:>10s}" for name in ODD))
    found = {}
    for key in TABLES:
        for n in rows if only in key else ():
            mean = np.mean([run(key, n, seed) for seed in range(seeds)], axis=0)
            found[key, n] = mean
            line = "".join(f"{value:10.1f}" for value in mean[1:-1])
            print(f"{key:22s}{n:6d}{mean[0]:8.1f}{line}   {mean[-1]:.1f} s", flush=True)
    if write:
        lines = [[key, n, *(f"{v:.1f}" for v in mean[:-1])] for (key, n), mean in found.items()]
        table = markdown(["table", "rows", "alarms", *ODD], lines)
        text = (__doc__ or "").split("\n\n", 2)[2]
        head = (
            f"# Values never seen and unusual gaps\n\n`python -m benchmarks.unseen --seeds {seeds}`"
        )
        Path(write).write_text(f"{head}\n\n{text}\n{table}\n")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", metavar="FILE")
    main(**vars(parser.parse_args()))

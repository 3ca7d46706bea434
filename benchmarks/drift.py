"""How often unchanged rows are reported to drift, and whether a shift is.

    python -m benchmarks.drift [--rows 300000] [--only "on/off"] [--write docs/results/drift.md]

Protocol, fixed before the first run. Six kinds of tables of five columns: *normal*; *on/off* with
shares 0.5, 0.3, 0.2, 0.1, 0.05; *ratings* from 1 to 5; *rounded*, to half a deviation; *texts*,
categories of 2, 3, 5, 8 and 12 values with Zipf's frequencies; and *AR(1)*, an autoregression of
coefficient 0.6 that starts anew every ten rows, with these stretches as groups. A default `Judge`
learns from 2,000 rows; `Judge.drift` is asked of batches of 500.

*Unchanged*: 300,000 rows a kind, 600 batches by ten judges. Aim: at most one batch is reported.
*Shifted*: 50 batches a kind by the same judges, of which the first column is higher by one
deviation. (On/off: it is on. Texts: its second value is more frequent by its deviation,
sqrt(p (1 - p)).) Aim: 49 of 50 are reported.

Changed after the first run, in which ranks reported 6 of 600 batches of texts: half as many rows
more than expected may rank low (`LOW_SLACK` of `kernull.explain.drift`), and scores are tested at a
level of 1e-6.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from experiments._tables import markdown
from kernull import Judge
from kernull.explain.drift import SCORE_LEVEL

TRAIN, BATCH, JUDGES, SHIFTED, COLUMNS = 2000, 500, 10, 50, 5
STRETCH, COEFFICIENT = 10, 0.6
KINDS = ("normal", "on/off", "ratings", "rounded", "texts", "AR(1)")
SHARES = (0.5, 0.3, 0.2, 0.1, 0.05)


def draw(kind, rng, n):
    """Rows by column."""
    Z = rng.normal(size=(n, COLUMNS))
    if kind == "on/off":
        Z = (rng.random((n, COLUMNS)) < SHARES).astype(float)
    elif kind == "ratings":
        Z = np.clip(np.round(3 + Z), 1, 5)
    elif kind == "rounded":
        Z = np.round(2 * Z) / 2
    elif kind == "AR(1)":
        for i in range(n):
            if i % STRETCH:
                Z[i] = COEFFICIENT * Z[i - 1] + np.sqrt(1 - COEFFICIENT**2) * Z[i]
    elif kind == "texts":
        columns = []
        for size in (2, 3, 5, 8, 12):
            share = 1.0 / np.arange(1, size + 1)
            columns.append(rng.choice([f"v{i}" for i in range(size)], n, p=share / share.sum()))
        return {f"x{j}": column for j, column in enumerate(columns)}
    return {f"x{j}": column for j, column in enumerate(Z.T)}


def shifted(kind, rng, n):
    """Rows of which the first column is higher by one deviation."""
    rows = draw(kind, rng, n)
    first = rows["x0"]
    if kind == "texts":
        share = (first == "v1").mean()
        more = np.sqrt(share * (1 - share)) / (1 - share)
        return rows | {"x0": np.where(rng.random(n) < more, "v1", first)}
    return rows | {"x0": np.ones(n) if kind == "on/off" else first + 1.0}


def reported(judge, rows):
    """Whether ranks, columns or either are reported; and the size of the drift of the first."""
    result = judge.drift(rows)
    size = [column["distance"] for column in result["columns"] if column["column"] == "x0"]
    by = (result["p_value"] < SCORE_LEVEL, bool(result["columns"]), result["drifted"])
    return [*map(float, by), size[0] if size else 0.0]


def run(kind, batches):
    """What `reported` gives of unchanged and of shifted batches: (batches, 4) each."""
    rng = np.random.default_rng([0, *kind.encode()])
    unchanged, moved = [], []
    groups = np.arange(TRAIN) // STRETCH if kind == "AR(1)" else None
    for _ in range(JUDGES):
        judge = Judge().fit(draw(kind, rng, TRAIN), groups=groups)
        unchanged += [reported(judge, draw(kind, rng, BATCH)) for _ in range(batches // JUDGES)]
        moved += [reported(judge, shifted(kind, rng, BATCH)) for _ in range(SHIFTED // JUDGES)]
    return np.array(unchanged), np.array(moved)


def main(rows=300_000, only="", write=None):
    """Print a line for each kind, and write the page."""
    warnings.simplefilter("ignore")
    lines = []
    for kind in KINDS if not only else [only]:
        unchanged, moved = run(kind, rows // BATCH)
        counts = [*unchanged[:, :3].sum(axis=0), *moved[:, :3].sum(axis=0)]
        size = f"{moved[:, 3].mean():.2f}"
        lines.append([kind, len(unchanged) * BATCH, *(f"{c:.0f}" for c in counts), size])
        print(*lines[-1], sep="  ", flush=True)
    head = ["columns", "unchanged rows", "reported by ranks", "by columns", "by either"]
    head += ["of 50 shifted: by ranks", "by columns", "by either", "mean size"]
    protocol = (__doc__ or "").split("\n\n", 2)[2]
    page = f"# Drift\n\n`python -m benchmarks.drift`\n\n{protocol}\n{markdown(head, lines)}\n"
    if write:
        Path(write).write_text(page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--only", default="", choices=("", *KINDS))
    parser.add_argument("--write", metavar="FILE")
    main(**vars(parser.parse_args()))

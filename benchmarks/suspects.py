"""Does `fit` notice training rows that are not clean, and leave clean tables alone?

    python -m benchmarks.suspects [--fits 100] [--write docs/results/suspects.md]

Protocol, fixed before the first run. Tables of 200 and 500 rows: Gaussian (10 columns), five
factors (20), lognormal (10), Student's t of 2 degrees of freedom (10), one-hot (30), five clusters
(10) and counts (20). *Clean*, and with 5% of the rows replaced: *scattered* (each cell normal, with
five standard deviations of its column) and *clustered* (one point six standard deviations off in
every column, half a deviation wide). Default `MultiKernelFisherNull`.

Printed: fits that warn, of 100; of the first 20 that warn, which of the replaced rows `suspects_`
has, how many others, and the share of 1,000 new normal rows that are flagged at 5% once suspects
are dropped and a model is fitted again. Aims: clean, at most 2 of 100 in every line; scattered, at
least 80 of 100 where columns are Gaussian, factors or clusters; after dropping, 3 to 8% flagged.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.alarms import generators as g
from experiments._tables import markdown
from kernull import MultiKernelFisherNull

KINDS = {
    "Gaussian": (g.gauss, 10), "five factors": (g.factor, 20), "lognormal": (g.lognormal, 10),
    "Student, 2 degrees": (g.student, 10), "one-hot": (g.one_hot, 30),
    "clusters": (g.clusters, 10), "counts": (g.counts, 20),
}  # fmt: skip
ROWS, SHARE, NEW, REFITS = (200, 500), 0.05, 1000, 20


def replaced(rng, X, how):
    """The table with the first rows replaced, and how many."""
    k = round(SHARE * len(X)) if how != "clean" else 0
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    off = 5.0 * rng.normal(size=(k, X.shape[1]))
    if how == "clustered":
        off = 6.0 * rng.choice([-1.0, 1.0], X.shape[1]) + 0.1 * off
    return np.vstack([X.mean(axis=0) + spread * off, X[k:]]), k


def run(kind, n, how, fits):
    """Fits that warn, share of the replaced rows that are suspects, others, and share flagged."""
    make, d = KINDS[kind]
    warned, seen = 0, []
    for seed in range(fits):
        rng = np.random.default_rng([n, seed, *kind.encode()])
        draw = make(rng, d)
        X, k = replaced(rng, draw(n), how)
        suspects = MultiKernelFisherNull().fit(X).suspects_
        warned += len(suspects) > 0
        if len(suspects) and len(seen) < REFITS:
            again = MultiKernelFisherNull().fit(np.delete(X, suspects, axis=0))
            flagged = (again.predict(draw(NEW)) == -1).mean()
            seen.append([(suspects < k).sum() / max(k, 1), (suspects >= k).sum(), flagged])
    return warned, np.mean(seen, axis=0) if seen else None


def main(fits=100, write=None):
    """Print a line for each table, and write the page."""
    warnings.simplefilter("ignore")
    lines = []
    for how in ("clean", "scattered", "clustered"):
        for kind in KINDS:
            for n in ROWS:
                warned, after = run(kind, n, how, fits)
                line = [how, f"{kind}, {n} rows", warned]
                line += ["", "", ""] if after is None else [
                    f"{after[0]:.0%}", f"{after[1]:.1f}", f"{after[2]:.1%}"
                ]  # fmt: skip
                lines.append(line)
                print(*line, sep="  ", flush=True)
    head = ["rows", "table", f"warned, of {fits}", "replaced rows named", "others named"]
    table = markdown([*head, "flagged after dropping"], lines)
    protocol = (__doc__ or "").split("\n\n", 2)[2]
    if write:
        Path(write).write_text(
            f"# Unclean rows\n\n`python -m benchmarks.suspects`\n\n{protocol}\n{table}\n"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--write", metavar="FILE")
    main(**vars(parser.parse_args()))

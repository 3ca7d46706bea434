"""The default beside peers on the tables of the decision bench: ``python -m benchmarks.beside``.

Tables, splits, noise and broken views are those of ``benchmarks/decisions/protocol.py`` (the seeds
that had no part in choosing). Peers are called as their documentation does: standardised columns,
5% as ``nu`` or ``contamination``, and their own ``predict``; ECOD ranks rows one by one, with the
5% quantile of its training scores as threshold. OneClassSVM is scikit-learn's, whose ``nu`` bounds
the share of training rows outside, and not that of new rows; PyOD OCSVM is the same machine with
the 5% quantile of its training scores as threshold. Asked of everybody:

- alarms: share of new normal rows that are flagged, where 5% were asked for;
- wide: the same, of 2,000 new rows of tables with as many columns as rows or more (Gaussian,
  100 x 100; five factors, 100 x 300; embedding, 110 x 300);
- noise: AUC points lost when a view of pure noise joins (Gaussian; Student's t);
- broken: share of normal rows flagged whose first or second half of columns reads 1e8 or -1e8;
- swapped: AUC of normal rows against rows whose second half of columns is another normal row's;
- unclean: AUC where a tenth of the training rows are outliers, ours with ``contamination=0.1``.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from statistics import fmean

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks.alarms import generators
from benchmarks.arena.peers import RowByRow
from benchmarks.decisions import protocol
from benchmarks.decisions.measures import auc, fitted
from benchmarks.decisions.tables import TABLES, halves, split, with_noise
from benchmarks.peers import pyod_detector
from experiments._cells import generator
from experiments._store import write_atomically
from experiments._tables import markdown
from kernull import __version__

OURS = "MultiKernelFisherNull()"
PYOD = ("PyOD KNN", "PyOD OCSVM")
NAMES = (OURS, "OneClassSVM", "IsolationForest", "LocalOutlierFactor", *PYOD, "PyOD ECOD")
NOISE = ("Gaussian", "heavy-tailed")
MEASURES = {
    "alarms": "false alarms at 5%",
    "wide": "on wide tables",
    "noise": "AUC lost to noise",
    "broken": "broken views flagged",
    "swapped": "AUC, swapped halves",
    "unclean": "AUC, 10% unclean",
}
#: Wide tables: what makes rows, number of training rows, number of columns.
WIDE = {
    "Gaussian, 100 x 100": (generators.gauss, 100, 100),
    "five factors, 100 x 300": (generators.factor, 100, 300),
    "embedding, 110 x 300": (generators.embedding, 110, 300),
}
NEW_ROWS = 2000
RESULTS = Path(__file__).parents[1] / "docs" / "results"


class Judge:
    """One detector on one training table: scores, higher for normal, and flags."""

    def __init__(self, name, train, views, seed, **more):
        self.name, rate = name, protocol.RATE
        if name == OURS:
            self.model = fitted(train, views, **more)
            return
        self.scaler = StandardScaler().fit(train)
        Z = self.scaler.transform(train)
        self.model = {
            "OneClassSVM": lambda: OneClassSVM(nu=rate),
            "IsolationForest": lambda: IsolationForest(contamination=rate, random_state=seed),
            "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True, contamination=rate),
            **{
                of: lambda of=of: pyod_detector(of.removeprefix("PyOD "), contamination=rate)
                for of in PYOD
            },
            "PyOD ECOD": lambda: RowByRow("ECOD"),
        }[name]().fit(Z)
        if name == "PyOD ECOD":
            self.threshold = np.quantile(self.model.score_samples(Z), rate)

    def scores(self, X):
        if self.name in PYOD:  # there, higher is more abnormal
            return -self.model.decision_function(self.scaler.transform(X))
        return np.asarray(self.model.score_samples(self._scaled(X)))

    def flagged(self, X):
        if self.name == "PyOD ECOD":
            return self.scores(X) < self.threshold
        return np.asarray(self.model.predict(self._scaled(X))) == (1 if self.name in PYOD else -1)

    def _scaled(self, X):
        return X if self.name == OURS else self.scaler.transform(X)


def of_table(table, seed):
    """Rows of the table of results: one per entrant and measure."""
    rows, out = split(table, seed), []
    views = halves(rows.train.shape[1])
    count = round(0.1 * len(rows.train) / 0.9)
    for name in NAMES:

        def add(measure, value, name=name):
            line = {"table": table, "seed": seed, "entrant": name}
            out.append({**line, "measure": measure, "value": round(float(value), 6)})

        judge = Judge(name, rows.train, views, seed)
        clean = auc(judge.scores(rows.normal), judge.scores(rows.outliers))
        add("alarms", judge.flagged(rows.normal).mean())
        for kind in NOISE:
            noisy, columns = with_noise(kind, rows, table, seed)
            other = Judge(name, noisy.train, {**views, "noise": columns}, seed)
            add("noise", clean - auc(other.scores(noisy.normal), other.scores(noisy.outliers)))
        for columns in views.values():
            for sign in (1.0, -1.0):
                broken = rows.normal.copy()
                broken[:, columns] = sign * protocol.BROKEN
                add("broken", judge.flagged(broken).mean())
        order = generator("beside", "swapped", table, seed).permutation(len(rows.normal))
        mixed = rows.normal.copy()
        mixed[:, views["second"]] = rows.normal[np.ix_(order, views["second"])]
        add("swapped", auc(judge.scores(rows.normal), judge.scores(mixed)))
        if count <= len(rows.spare):
            X = np.vstack([rows.train, rows.spare[:count]])
            more = {"contamination": protocol.GUESS} if name == OURS else {}
            told = Judge(name, X, views, seed, **more)
            add("unclean", auc(told.scores(rows.normal), told.scores(rows.outliers)))
    return out


def of_wide(table, seed):
    """Rows of the table of results: false alarms of each entrant on a wide table."""
    make, n, d = WIDE[table]
    X = make(generator("beside", table, seed), d)(n + NEW_ROWS)
    out = []
    for name in NAMES:
        rate = Judge(name, X[:n], halves(d), seed).flagged(X[n:]).mean()
        line = {"table": table, "seed": seed, "entrant": name, "measure": "wide"}
        out.append({**line, "value": round(float(rate), 6)})
    return out


def means(rows):
    """By entrant and measure: the mean over tables and seeds, and the worst table."""
    found = {}
    for row in rows:
        key = row["entrant"], row["measure"]
        found.setdefault(key, {}).setdefault(row["table"], []).append(float(row["value"]))
    return {
        key: (fmean(v for of in by.values() for v in of), {t: fmean(v) for t, v in by.items()})
        for key, by in found.items()
    }


def shown(measure, value):
    """A value as a page shows it."""
    return f"{100 * value:.1f}%" if measure in ("alarms", "wide", "broken") else f"{value:.1f}"


def page(rows, command):
    """The page: a table of means, and false alarms by table."""
    found = means(rows)
    tables, wide = (list(found[OURS, measure][1]) for measure in ("alarms", "wide"))
    seeds = len({row["seed"] for row in rows})
    lines = [[n, *(shown(m, found[n, m][0]) for m in MEASURES)] for n in NAMES]
    alarms, of_wide_tables = (
        [[n, *(shown(m, found[n, m][1][t]) for t in names)] for n in NAMES]
        for m, names in (("alarms", tables), ("wide", wide))
    )
    about = __doc__.split("\n\n", 1)[1].strip().replace("``", "`")
    return (
        f"# The default beside peers\n\n`{command}`, kernull {__version__}, {seeds} seeds, "
        f"{len(tables)} tables.\n\n{about}\n\n{markdown(['', *MEASURES.values()], lines)}\n\n"
        f"False alarms by table, where 5% were asked for:\n\n{markdown(['', *tables], alarms)}\n\n"
        f"{markdown(['', *wide], of_wide_tables)}\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    first = protocol.FIRST_SEED
    rows = []
    for table in (*TABLES, *WIDE):
        for seed in range(first, first + arguments.seeds):
            rows += of_wide(table, seed) if table in WIDE else of_table(table, seed)
        print(table, flush=True)
    with (RESULTS / "beside.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = page(rows, f"python -m benchmarks.beside --seeds {arguments.seeds}")
    write_atomically(RESULTS / "beside.md", text)


if __name__ == "__main__":
    main()

"""Each ingredient of the decision, and what is lost without it.

    python -m benchmarks.ablation                   # measure what is missing, print the table
    python -m benchmarks.ablation --only "no gate"  # one variant
    python -m benchmarks.ablation --out docs/results/ablation.md

The protocol, fixed before the first run. Every variant is ``MultiKernelFisherNull`` with default
arguments but for the one ingredient that is taken away: by an argument where there is one, and by
replacing one function of `kernull.detector` in this process where there is none. All variants see
the same rows. Finished variants are kept in ``results-cache/ablation``, so an interrupted run goes
on where it stopped; a change of this file's protocol needs ``--again``.

AUC in percent, means over tasks and three seeds (0, 1, 2):

tables    the eight tables of `benchmarks.decisions` (half of the normal rows to train), and eight
          tables of OddBench where ``KERNULL_DATA`` has them (the first by name that have 100 to
          1,500 training rows).
views     the same tables with their columns cut into two views.
swapped   the same two views, against rows whose second view is another row's.
noise     the two views beside five kinds of noise, each a view of its own.

Alarms in percent of 2,000 new normal rows, at 5%, over ten seeds: the lowest mean of the kinds
without copies, the highest mean of all `KINDS`, and which. Rows flagged in percent:

far       one of five correlated one-column views moved by 100 deviations, twelve rows, 50 seeds.
gross     one column of Gaussian rows moved by 100 deviations; one of the 300 training rows lies
          10,000 deviations off.
sensor    one of 60 correlated one-column views moved by 1,000 deviations, 100 rows.
category  fits that flag a category of five even ones, of 300 rows, as a whole; 50 seeds.

After a first run three cases were replaced, where nothing failed without two of the ingredients:
far rows had one view, the category of five levels 100 rows, and alarms were averaged over kinds
whose rows are copies, which flag none.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import warnings
from collections import defaultdict
from pathlib import Path
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

from benchmarks.alarms import generators as g
from benchmarks.decisions import tables
from experiments._cells import generator
from experiments._store import write_atomically
from experiments._tables import markdown
from kernull import Cross, Evidence, MultiKernelFisherNull, Nearest, Projection
from kernull.detector import calibration, evidence, scores, tails
from kernull.detector.gate import factors_by_odds
from kernull.views.kernel_set import WHOLE

CACHE = Path("results-cache/ablation")
SEEDS, ALARM_SEEDS, FAR_SEEDS = 3, 10, 50
ODDBENCH, FEWEST, MOST = 8, 100, 1500
KINDS = {
    "Gaussian, 50 x 5": (g.gauss, 50, 5),
    "Gaussian, 100 x 100": (g.gauss, 100, 100),
    "five factors, 150 x 60": (g.factor, 150, 60),
    "lognormal, 300 x 10": (lambda rng, d: g.lognormal(rng, d, 2.0), 300, 10),
    "a category of 5 levels, 300 rows": (g.one_hot, 300, 5),
    "a category of 100 levels, 100 rows": (g.one_hot, 100, 100),
    "three categories, 300 x 30": (g.skewed_categories, 300, 30),
    "rare flags, 300 x 3": (lambda rng, d: g.rare_ones(rng, d, 0.05), 300, 3),
    "embedding, 200 x 300": (g.embedding, 200, 300),
}
#: Those whose rows are all different.
CONTINUOUS = [
    kind for kind, (make, *_) in KINDS.items() if make in (g.gauss, g.factor, g.embedding)
]


def _exponential(scores, weight, extrapolates, fold):
    """`tails.left_out_evidence` with the exponential tail of new rows."""
    of = tails.Tails.evidence
    with mock.patch.object(tails.Tails, "evidence", lambda self, s, predictive=False: of(self, s)):
        return LEFT_OUT_EVIDENCE(scores, weight, extrapolates, fold)


def _whole_of_weight_one(left_out, mixed, view):
    return np.where(view == WHOLE, 1.0, factors_by_odds(left_out, mixed, view))


def _none_is_common(keys):
    return np.zeros(len(keys), dtype=bool)


def _side_by_side(keys, n_folds, groups=None):
    """Folds of rows that are neighbours in the order of their content: copies share one."""
    place = np.argsort(np.argsort(keys, kind="stable"), kind="stable")
    return place * min(n_folds, len(keys)) // len(keys)


LEFT_OUT_EVIDENCE = tails.left_out_evidence

#: Variant -> arguments of the model, and what replaces which functions.
VARIANTS: dict[str, tuple[dict, list]] = {
    "all of it": ({}, []),
    "no learned weights: uniform ones": ({"p": np.inf}, []),
    "one norm, p = 1.5, not 4 between views": ({"p": 1.5}, []),
    "kernels as they are, not on one scale": ({"normalize": "none"}, []),
    "no projection": ({"decision": Evidence(scores=(Nearest(),))}, []),
    "no distance": ({"decision": Evidence(scores=(Projection(),))}, []),
    "no whole": ({"decision": Evidence(whole=False)}, []),
    "no ranks: whitened views alone": ({"scaling": "whiten"}, []),
    "no whitening: ranks alone": ({"scaling": "quantile"}, []),
    "a third scaling: standardised too": ({"scaling": ("standard", "whiten", "quantile")}, []),
    "no gate": (
        {},
        [(evidence, "factors_by_odds", lambda left_out, mixed, view: np.full(len(view), 2.0))],
    ),
    "a whole of weight one": ({}, [(evidence, "factors_by_odds", _whole_of_weight_one)]),
    "ten folds of few rows, not twenty": ({"calibration": Cross(10)}, []),
    "five folds": ({"calibration": Cross(5)}, []),
    "no slack for ties": ({}, [(calibration, "TIE_SHARE", 0.0)]),
    "common rows scored by their folds": ({}, [(scores, "common", _none_is_common)]),
    "folds out of line left there": ({}, [(evidence, "aligned", lambda scores, fold: scores)]),
    "the exponential tail for rows left out": (
        {},
        [(evidence, "left_out_evidence", _exponential)],
    ),
    "copies in the same fold": ({}, [(evidence, "folds_of", _side_by_side)]),
}


@contextlib.contextmanager
def _replaced(patches):
    with contextlib.ExitStack() as stack:
        for module, name, instead in patches:
            stack.enter_context(mock.patch.object(module, name, instead))
        yield


def _fit(options, X, views=None):
    return MultiKernelFisherNull(views=views, **options).fit(X)


def _auc(model, normal, odd):
    truth = np.r_[np.zeros(len(normal)), np.ones(len(odd))]
    return 100 * roc_auc_score(truth, -model.score_samples(np.vstack([normal, odd])))


def _tables():
    """Name -> rows by seed."""
    out = {name: lambda seed, name=name: tables.split(name, seed) for name in tables.TABLES}
    folder = Path(os.environ.get("KERNULL_DATA", "")) / "oddbench"
    for path in sorted(folder.glob("*.npz")) if "KERNULL_DATA" in os.environ else []:
        with np.load(path) as file:
            rows = len(file["train"])
        if FEWEST <= rows <= MOST and len(out) < len(tables.TABLES) + ODDBENCH:
            out[path.stem] = lambda seed, path=path: _oddbench(path, seed)
    return out


def _oddbench(path, seed):
    rng = generator("ablation", path.stem, seed)
    with np.load(path) as file:
        train, test, outlier = (file[name] for name in ("train", "test", "outlier"))
    odd = outlier.astype(bool)
    kept = rng.permutation(len(train))[: int(0.8 * len(train))]  # another sample for each seed
    return tables.Split(
        train[kept].astype(float), test[~odd].astype(float), test[odd].astype(float), None
    )


def _of_table(options, name, seed):
    rows = _tables()[name](seed)
    d = rows.train.shape[1]
    yield "tables", _auc(_fit(options, rows.train), rows.normal, rows.outliers)
    if d < 4:
        return
    views = tables.halves(d)
    model = _fit(options, rows.train, views)
    yield "views", _auc(model, rows.normal, rows.outliers)
    swapped = rows.normal.copy()
    swapped[:, views["second"]] = np.roll(rows.normal, 1, axis=0)[:, views["second"]]
    yield "swapped", _auc(model, rows.normal, swapped)
    for kind in tables.NOISE:
        noisy, columns = tables.with_noise(kind, rows, name, seed)
        model = _fit(options, noisy.train, views | {"noise": columns})
        yield "noise", _auc(model, noisy.normal, noisy.outliers)


def _of_kind(options, kind, seed):
    make, n, d = KINDS[kind]
    rng = generator("ablation", kind, seed)
    draw = make(rng, d)
    model = _fit(options, draw(n))
    yield f"alarms: {kind}", 100 * float((model.predict(draw(2000)) == -1).mean())


def _of_far(options, what, seed):
    rng = generator("ablation", what, seed)
    views = None
    if what == "sensor":
        draw, n, d, m, views = g.factor(rng, 60), 100, 60, 60, "features"
    elif what == "gross":
        draw, n, d, m = g.gauss(rng, 5), 300, 5, 300
    else:
        draw, n, d, m, views = g.factor(rng, 5), 12, 5, 20, "features"
    train, odd = draw(n), draw(m)
    if what == "gross":
        train[0] += 1e4
    odd[np.arange(m), np.arange(m) % d] += (1e3 if what == "sensor" else 1e2) * draw(500).std()
    yield what, 100 * float((_fit(options, train, views).predict(odd) == -1).mean())


def _of_category(options, what, seed):
    draw = g.one_hot(generator("ablation", what, seed), 5)
    yield what, 100 * float((_fit(options, draw(300)).predict(draw(500)) == -1).any())


def tasks():
    """Every task: what measures it, its name and its seed."""
    out = [(_of_table, name, seed) for name in _tables() for seed in range(SEEDS)]
    out += [(_of_kind, kind, seed) for kind in KINDS for seed in range(ALARM_SEEDS)]
    out += [(_of_far, "far", seed) for seed in range(FAR_SEEDS)]
    out += [(_of_category, "category", seed) for seed in range(FAR_SEEDS)]
    return out + [(_of_far, what, seed) for what in ("gross", "sensor") for seed in range(SEEDS)]


def measure(variant, jobs):
    """Means of the lines of a variant, measured or read from the cache."""
    path = CACHE / f"{variant}.json".replace(":", "").replace(" ", "-")
    if not path.is_file():
        rows = Parallel(n_jobs=jobs)(delayed(_task)(variant, *task) for task in tasks())
        CACHE.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps([row for some in rows for row in some]))
    means = defaultdict[str, list[float]](list)
    for line, value in json.loads(path.read_text()):
        means[line].append(value)
    return {line: float(np.mean(values)) for line, values in means.items()}


def _task(variant, work, name, seed):
    options, patches = VARIANTS[variant]
    with warnings.catch_warnings(), _replaced(patches):
        warnings.simplefilter("ignore")
        return list(work(options, name, seed))


def summary(mean):
    """Columns of the table, from the means of the lines of a variant."""
    alarms = {kind: mean[f"alarms: {kind}"] for kind in KINDS}
    lowest, highest = min(CONTINUOUS, key=alarms.get), max(alarms, key=alarms.get)
    return {
        **{name: f"{mean[name]:.1f}" for name in ("tables", "views", "swapped", "noise")},
        "fewest alarms": f"{alarms[lowest]:.1f} ({lowest})",
        "most alarms": f"{alarms[highest]:.1f} ({highest})",
        **{name: f"{mean[name]:.0f}" for name in ("far", "gross", "sensor", "category")},
    }


def page(lines):
    """The table as a page."""
    header = ["without", *next(iter(lines.values()))]
    table = markdown(header, [[name, *line.values()] for name, line in lines.items()])
    return f"""# Each ingredient of the decision, off

`python -m benchmarks.ablation`: the default model with one ingredient taken away. The module's
docstring has the protocol. AUC in % on tables, the same cut into two views, rows whose second view
is another row's, and two views beside noise; false alarms in % at 5%, lowest and highest
mean of {len(KINDS)} kinds of tables; rows flagged in %: one of five views
100 deviations off after twelve training rows; one column 100 off after 300 rows of which one is
10,000 off; one dead sensor of sixty; fits in % that flag one of five even categories as a whole.

{table}
"""


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, metavar="VARIANT")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--again", action="store_true", help="forget what was measured first")
    parser.add_argument("--out", metavar="FILE", help="write the page")
    options = parser.parse_args(argv)
    if options.again:
        for path in CACHE.glob("*.json"):
            path.unlink()
    lines = {}
    for variant in options.only or VARIANTS:
        lines[variant] = summary(measure(variant, options.jobs))
        print(variant, lines[variant], flush=True)
    if options.out:
        write_atomically(Path(options.out), page(lines))


if __name__ == "__main__":
    main()

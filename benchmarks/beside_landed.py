"""The decision beside the one before cross-fitting, measured by the same code on the same rows.

    python -m benchmarks.beside_landed                        # all parts, both sides
    python -m benchmarks.beside_landed arena far --again new  # forget what was measured of one side
    python -m benchmarks.beside_landed --report --out FILE    # print what there is

`benchmarks.landed` makes the worktree of the commit before; its Python runs this module with that
commit's ``kernull``. Every finished task is kept in ``results-cache/beside_landed``: after a kill
the same command resumes.

The protocol, fixed before the first run. All models are ``MultiKernelFisherNull(views=...)`` with
default arguments. AUC in percent, means over the tasks of a part.

arena    one split of every problem of `benchmarks.arena`: AUC by family and set, false alarms.
cut      its tables of four columns and more, their columns cut into two views.
swapped  its sets of several views: new normal rows against such rows with a third of the views
         (one at least) from another row.
deep     its image sets with two of the four networks.
few      mfeat and flowers17, all views, learned from 20 rows.
noise    the tables of `benchmarks.decisions`, three seeds: AUC without and with a view of noise,
         false alarms, broken views (+-1e8), rows whose second view is another row's.
sensor   60 columns, 100 and 300 rows, Gaussian and of five factors, each column a view and all of
         them one: normal rows with one column at 1,000 standard deviations, every column in turn.
far      5 columns, 12 to 50 rows, 100 draws: normal rows with one column moved by 100 standard
         deviations, and rows moved by 100 in a random direction.
alarms   the quick cases of `benchmarks.alarms`: planted outliers flagged at 5%.

Bounds: no family's AUC below the one before by more than 0.3 (few, deep: 0.8); swapped at least 18
above; cut at least 1 above; with a view of noise no lower; one sensor of 60 and far rows flagged in
99%; a broken view in 100%; outliers of no case of the alarm benchmark caught less by more than 2
points.

The factors of views and of the whole were chosen on the choosing half (`benchmarks.arena.halves`;
of the decision tables, seeds of even number) of arena, cut, swapped, deep, few and noise: the root
of the odds A / (1 - A) that there is more evidence against a row of mixed parts than against a
left-out row, at most 2. Mixed are the cells of a view, and the views of the whole; views of one
column have 2, and the largest factor of the views times learned weight is brought to one.
Candidates were a whole of weight 0 to 5, clip((2A - 1) / F, least, most), odds, and their root with
a limit of 2, 3, 4 and none. The judging half decided before anything was replaced: adopted if there
swapped views gain 2 points at least, and no family, nor the mean with noise, loses more than 0.3
against a whole of weight one and views of clip((2A - 1) / 0.1, 0.5, 1). After it a lower limit of
1/2 was added: without one, views may end with no weight at all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks import landed
from benchmarks.alarms import experiment as alarms
from benchmarks.alarms import generators as g
from benchmarks.arena import protocol as arena_protocol
from benchmarks.arena.problems import catalogue, named, split
from benchmarks.decisions import measures, protocol, tables, together
from benchmarks.decisions.measures import auc, fitted, flagged
from experiments._cells import generator
from experiments._tables import markdown
from kernull import __version__

CACHE = landed.ROOT / "results-cache" / "beside_landed"
SIDES = ("old", "new")
SEEDS = 3
DEEP = ("alexnet", "mobilenet_v2")
FEW = 20
#: Of lines that start so: least difference to the side before, and least value.
BOUNDS = {
    "AUC, cut": (1.0, None),
    "AUC, swapped": (18.0, None),
    "AUC, two deep views": (-0.8, None),
    "AUC, views of 20 rows": (-0.8, None),
    "AUC with noise": (0.0, None),
    "AUC": (-0.3, None),
    "broken view": (None, 100.0),
    "one sensor": (None, 99.0),
    "far": (None, 99.0),
    "outliers caught": (-2.0, None),
}


# -- tasks: names, and the lines that one gives ---------------------------------------------------


def _problems(*families):
    return [problem.name for problem in catalogue(families or arena_protocol.FAMILIES).problems]


def _rows(name):
    """Training rows, new normal rows, outliers and views of a problem."""
    data, train, test, labels = split(named(name), 0)
    X = data.X[test]
    return data.X[train], X[labels == 1], X[labels == -1], data.views


def _auc(model, normal, outliers):
    return auc(np.asarray(model.score_samples(normal)), np.asarray(model.score_samples(outliers)))


def arena(name):
    train, normal, outliers, views = _rows(name)
    model, problem = fitted(train, views), named(name)
    value, alarm = _auc(model, normal, outliers), 100 * float(flagged(model, normal).mean())
    of = [problem.family] + ([] if problem.family == "tables" else [problem.source])
    yield from ((f"AUC, {line}", value) for line in dict.fromkeys(of))
    yield f"false alarms, {problem.family}", alarm


def cut(name):
    train, normal, outliers, _ = _rows(name)
    if train.shape[1] < 4:
        return
    model = fitted(train, tables.halves(train.shape[1]))
    yield "AUC, cut into two views", _auc(model, normal, outliers)


def swapped(name):
    train, normal, _, views = _rows(name)
    rng = generator("beside_landed", "swapped", name)
    other, odd = rng.permutation(len(normal)), normal.copy()
    fixed = other == np.arange(len(normal))
    other[fixed] = (other[fixed] + 1) % len(normal)
    for i, j in enumerate(other):
        for view in rng.choice(list(views), max(len(views) // 3, 1), replace=False):
            odd[i, views[view]] = normal[j, views[view]]
    value = _auc(fitted(train, views), normal, odd)
    yield from ((line, value) for line in ("AUC, swapped", f"AUC, swapped, {named(name).source}"))


def deep(name):
    train, normal, outliers, views = _rows(name)
    model = fitted(train, {view: views[view] for view in DEEP})
    yield f"AUC, two deep views, {named(name).source}", _auc(model, normal, outliers)


def few(name):
    train, normal, outliers, views = _rows(name)
    model = fitted(train[:FEW], views)
    yield f"AUC, views of {FEW} rows, {named(name).source}", _auc(model, normal, outliers)


def noise(name):
    table, _, seed = name.rpartition(" ")
    seed = int(seed)
    rows = tables.split(table, seed)
    plain = _auc(fitted(rows.train, tables.halves(rows.train.shape[1])), rows.normal, rows.outliers)
    yield "AUC, decision tables", plain
    for row in measures.of_table(table, seed):
        if row["what"] == "lost":
            yield "AUC with noise", plain - row["value"]
            yield f"AUC with noise, {row['kind']}", plain - row["value"]
        elif row["what"] == "broken":
            yield f"broken view, noise: {row['kind']}", 100 * row["value"]
        elif row["what"] == "alarms":
            yield f"false alarms, decisions, noise: {row['kind']}", 100 * row["value"]
    yield "second view of another row (AUC)", together.of_table(table, seed)[0]["own"]


def sensor(name):
    kind, n, _ = name.split()
    rng = generator("beside_landed", "sensor", name)
    draw = {"gauss": g.gauss, "factor": g.factor}[kind](rng, 60)
    train, odd = draw(int(n)), draw(60)
    odd[np.arange(60), np.arange(60)] = train.mean(axis=0) + 1e3 * train.std(axis=0)
    for shown, views in (("60 views", "features"), ("one view", None)):
        model = fitted(train, views)
        yield f"one sensor of 60, {shown}, {n} rows", 100 * float(flagged(model, odd).mean())
        yield (
            f"false alarms, {shown} of 60, {n} rows",
            100 * float(flagged(model, draw(500)).mean()),
        )


def far(name):
    kind, n, _ = name.split()
    rng = generator("beside_landed", "far", name)
    draw = {"gauss": g.gauss, "factor": g.factor}[kind](rng, 5)
    train = draw(int(n))
    one, many = draw(20), draw(20)
    one[np.arange(20), rng.integers(0, 5, 20)] += 100 * train.std() * rng.choice([-1, 1], 20)
    away = rng.normal(size=(20, 5))
    many += 100 * train.std() * away / np.linalg.norm(away, axis=1, keepdims=True)
    model = fitted(train)
    yield f"far in one column, {n} rows", 100 * float(flagged(model, one).mean())
    yield f"far in a random direction, {n} rows", 100 * float(flagged(model, many).mean())
    yield f"false alarms, far, {n} rows", 100 * float(flagged(model, draw(500)).mean())


def alarm(name):
    key, _, seed = name.rpartition(" | ")
    cell = next(c for c in alarms.cells(only=lambda known: known == key) if c.repeat == int(seed))
    row = alarms.run(cell, {}, None)[0]
    yield f"outliers caught, {key}", 100 * row["power"]
    yield "outliers caught, mean", 100 * row["power"]
    yield f"alarms at 5%, {key}", 100 * row["rate_5"]


def _alarm_tasks():
    keys = dict.fromkeys(cell.data for cell in alarms.cells(seeds=1))
    return [f"{key} | {seed}" for seed in range(10) for key in keys]


PARTS = {
    "arena": (_problems, arena),
    "cut": (lambda: _problems("tables"), cut),
    "swapped": (lambda: _problems("multi-view", "images"), swapped),
    "deep": (lambda: _problems("images"), deep),
    "few": (lambda: [p for p in _problems("multi-view", "images") if "mnist" not in p], few),
    "noise": (
        lambda: [
            f"{table} {protocol.FIRST_SEED + seed}"
            for seed in range(SEEDS)
            for table in tables.TABLES
        ],
        noise,
    ),
    "sensor": (
        lambda: [f"{k} {n} {s}" for s in range(3) for k in ("gauss", "factor") for n in (100, 300)],
        sensor,
    ),
    "far": (
        lambda: [
            f"{k} {n} {s}"
            for s in range(100)
            for k in ("gauss", "factor")
            for n in (12, 20, 30, 50)
        ],
        far,
    ),
    "alarms": (_alarm_tasks, alarm),
}


# -- sides ---------------------------------------------------------------------------------------


def _path(part, side):
    return CACHE / f"{part}-{side}.jsonl"


def _kept(part, side):
    """Tasks that are measured: name -> (line, value) pairs."""
    path = _path(part, side)
    lines = path.read_text().splitlines() if path.is_file() else []
    return dict(json.loads(line) for line in lines)


def measure(part, side):
    """Measure what of a part is missing, with the ``kernull`` that this process imports."""
    tasks, of = PARTS[part]
    done = _kept(part, side)
    _path(part, side).parent.mkdir(parents=True, exist_ok=True)
    for task in tasks():
        if task in done:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = list(of(task))
            except Exception as error:  # a case that one side cannot do, or that breaks it
                found = [(f"failed: {type(error).__name__}: {str(error)[:80]}", 1.0)]
        with _path(part, side).open("a") as file:
            file.write(json.dumps([task, found]) + "\n")


def run(part, side):
    """Measure a part by the Python of a side."""
    environment, executable = dict(os.environ), sys.executable
    if side == "old":
        executable = str(landed.python())
        environment["PYTHONPATH"] = os.pathsep.join([str(landed.TREE / "src"), str(landed.ROOT)])
    command = [executable, "-m", "benchmarks.beside_landed", part, "--side", side]
    subprocess.run(command, cwd=landed.ROOT, env=environment, check=True)


# -- the table -----------------------------------------------------------------------------------


def _means(part, side, tasks):
    """By line: mean over tasks that both sides have measured without failing."""
    found = {}
    for task, lines in _kept(part, side).items():
        for line, value in lines:
            if task in tasks or line.startswith("failed"):
                found.setdefault(line, []).append(value)
    fails = {k: v for k, v in found.items() if k.startswith("failed")}
    means = {line: float(np.mean(v)) for line, v in found.items() if line not in fails}
    return means, {line: len(v) for line, v in fails.items()}


def _worked(part, side):
    return {t for t, rows in _kept(part, side).items() if not rows or "failed" not in rows[0][0]}


def lines_of(part):
    """Line, old, new, difference, bound and whether it holds."""
    both = _worked(part, "old") & _worked(part, "new")
    (old, failed_old), (new, failed_new) = (_means(part, side, both) for side in SIDES)
    out = []
    for line in sorted(old, key=lambda name: not name.startswith("AUC")):
        before, after = old[line], new[line]
        bound = next((b for start, b in BOUNDS.items() if line.startswith(start)), (None, None))
        less, least = bound
        held = (less is None or after - before >= less) and (least is None or after >= least)
        asked = f"difference {less:+g}" if less is not None else f"{least:g}" if least else ""
        out.append((line, before, after, asked, held))
    for side, failed in (("old", failed_old), ("new", failed_new)):
        out += [
            (f"{side} {line}", float(n), float(n), "0", side == "old") for line, n in failed.items()
        ]
    return out, len(both)


def page(parts, everything=False):
    """The table in Markdown; of the alarm cases, those that miss."""
    out = []
    for part in parts:
        if not _kept(part, "old") or not _kept(part, "new"):
            continue
        lines, count = lines_of(part)
        if part == "alarms" and not everything:
            few_lines = [x for x in lines if not x[-1] or "mean" in x[0] or "failed" in x[0]]
            lines = [x for x in few_lines if not x[0].startswith("alarms")]
        shown = [
            [
                line if held else f"**{line}**",
                f"{old:.1f}",
                f"{new:.1f}",
                f"{new - old:+.1f}",
                asked,
            ]
            for line, old, new, asked, held in lines
        ]
        table = markdown(["line", "old", "new", "difference", "at least"], shown)
        out += [f"## {part}: {count} tasks", table]
    return "\n\n".join(out) + "\n"


HEAD = """# Old beside new

`python -m benchmarks.beside_landed`, kernull {version}, {date:%Y-%m-%d}. The decision by \
cross-fitting beside the one before, measured by the same code on the same rows, without labels. \
AUC and rates in percent; lines that miss their bound are bold. The protocol, with what each part \
is, stands in `benchmarks/beside_landed.py`. Of the alarm benchmark, the cases that miss are shown.

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--side", choices=SIDES, help="measure with the kernull at hand, no more")
    parser.add_argument("--again", choices=SIDES, help="forget what was measured of a side")
    parser.add_argument("--report", action="store_true", help="print what is measured, no more")
    parser.add_argument("--all", action="store_true", help="every case of the alarm benchmark")
    parser.add_argument("--out", type=Path, help="where to write the table")
    options = parser.parse_args()
    parts = options.parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; expected some of {', '.join(PARTS)}")
    if options.side:
        for part in parts:
            measure(part, options.side)
        return
    for part in parts:
        if options.again:
            _path(part, options.again).unlink(missing_ok=True)
        for side in () if options.report else SIDES:
            run(part, side)
        if not options.report:
            print(page([part], options.all), flush=True)
    text = page(parts, options.all)
    if options.out:
        options.out.write_text(HEAD.format(version=__version__, date=datetime.now(UTC)) + text)
    elif options.report:
        print(text)


if __name__ == "__main__":
    main()

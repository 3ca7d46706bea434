"""One cell: fit a case for one seed, judge new rows, count."""

from __future__ import annotations

import time
import warnings

import numpy as np

from benchmarks.alarms import protocol
from benchmarks.alarms.cases import CASES, named
from benchmarks.alarms.generators import emptied
from experiments import Cell, Experiment
from experiments._cells import generator
from kernull.detector.calibration import discoveries

NAME = "benchmarks.alarms.experiment"


def method_name(calibration, decision=None):
    """The method of a cell: a calibration, and a decision where it is not the default."""
    return calibration if decision is None else f"{calibration}, {decision}"


def cells(full=False, decision=None, seeds=None, only=None):
    """All cells, the first seed of every case first."""
    known = [case for case in CASES if (full or not case.full) and (only is None or only(case.key))]
    most = protocol.SEEDS if seeds is None else seeds
    return [
        Cell(case.key, method_name(calibration, decision), repeat)
        for repeat in range(most)
        for case in known
        if seeds is not None or not case.full or repeat < protocol.FULL_SEEDS
        for calibration in (("own",) if case.tasks else protocol.CALIBRATIONS)
    ]


def attainable(rate, calibration):
    """The rate that a calibration stands for when asked for another one."""
    lowest = 1.0 / (calibration.total + 1.0)
    rate = max(rate, lowest)
    if getattr(calibration, "smooth", False):
        return rate
    return np.floor(rate * (calibration.total + 1.0) + 1e-9) * lowest


def run(cell, settings, folder):
    """Realised rates of one fit."""
    case = named(cell.data)
    calibration, _, decision = cell.method.partition(", ")
    rng = generator("alarms", cell.data, cell.repeat)
    populations = case.populations(rng)
    X, weights, groups = case.training(rng, populations)
    normal, tasks = case.test(populations, protocol.TEST_ROWS)
    planted, planted_tasks = case.test(populations, protocol.OUTLIERS)
    planted = case.outliers(rng, planted)
    if any(case.gaps):
        X = emptied(rng, X, case.gaps[0])
        normal, planted = (emptied(rng, rows, case.gaps[1]) for rows in (normal, planted))
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = case.fit(X, weights, groups, calibration, decision or None)
    seconds = time.process_time() - start
    more = {} if tasks is None else {"groups": tasks}
    p = np.asarray(model.p_values(normal, **more))
    models = [model] if tasks is None else [model.task(name) for name in model.tasks_]
    calibrations = [model.calibration_ for model in models]
    row = {
        "n": case.n,
        "d": case.d,
        "discrete": case.discrete,
        "warnings": sorted({w.category.__name__ for w in caught}),
        "time_fit": seconds,
    }
    for rate in protocol.RATES:
        lowest = max(1.0 / (c.total + 1.0) for c in calibrations)
        name = f"{100 * rate:g}"
        row[f"rate_{name}"] = float((p <= max(rate, lowest) * (1 + 1e-9)).mean())
        row[f"attainable_{name}"] = float(np.mean([attainable(rate, c) for c in calibrations]))
    row["rare"] = float("nan")  # models that decide by the sum have no rarity
    if hasattr(model, "rarity"):
        rarity = np.asarray(model.rarity(normal, **more))
        row["rare"] = float((rarity >= protocol.RARE * (1 - 1e-9)).mean())
    other = {} if tasks is None else {"groups": planted_tasks}
    q = np.asarray(model.p_values(planted, **other))
    row["power"] = float((q <= max(0.05, lowest) * (1 + 1e-9)).mean())
    row["fdp"] = _false_discoveries(model, normal, planted, tasks, planted_tasks)
    return [row]


def _false_discoveries(model, normal, planted, tasks, planted_tasks):
    """Share of normal rows among those that are discoveries; 0 where it flags none."""
    some = np.linspace(0, len(normal) - 1, protocol.FDR_NORMAL).astype(int)
    batch = np.vstack([normal[some], planted])
    more = {} if tasks is None else {"groups": np.concatenate([tasks[some], planted_tasks])}
    flagged = discoveries(np.asarray(model.p_values(batch, **more)), protocol.FDR)
    return float(flagged[: len(some)].sum() / max(flagged.sum(), 1))


# -- apart ---------------------------------------------------------------------------------------


def shifted(decision=None, units=(1e-3, 1.0, 1e3), repeats=5):
    """Share of rows flagged whose only fault is a value off a constant column, by its unit."""
    case = next(c for c in CASES if c.name == "Gaussian")
    out = []
    for unit in units:
        shares = []
        for repeat in range(repeats):
            rng = generator("alarms", "shifted", repeat)
            X, new = rng.normal(size=(300, 8)), rng.normal(size=(500, 8))
            X[:, 0], new[:, 0] = unit, 1.01 * unit
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = case.fit(X, None, None, "cross", decision)
            shares.append(float((np.asarray(model.p_values(new)) <= 0.05).mean()))
        out.append({"unit": unit, "flagged": float(np.mean(shares))})
    return out


def _report(rows, settings, folder):
    from benchmarks.alarms.report import page

    return page(rows, [])


EXPERIMENT = Experiment(
    NAME,
    "realised false alarms on ordinary tables",
    settings=lambda quick: dict(protocol.SETTINGS),
    cells=lambda settings, repeats: cells(seeds=repeats),
    run=run,
    report=_report,
)

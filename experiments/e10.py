"""E10. Training times (the paper's Tables T1 and T2) as ratios to Algorithm 1 run beside them.

Data as in E2 with 100 features a view, p = 2, kernel matrices given. Each cell times one method at
one size, in a process of its own that is ended at the cap, one BLAS thread a process. Times of
different machines are not compared, so the published column is a ratio as well.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from experiments import published
from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._plots import COLOURS, MARKERS, new_figure, save
from experiments._tables import distinct, markdown, where
from kernull._typing import Array
from kernull.mkl.balls import LpBall, Simplex
from kernull.mkl.problems import FisherProblem, OneClassSVMProblem, SVDDProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from kernull.views import KernelSet

__all__ = ["EXPERIMENT", "runs_that_reach", "smaller_in_print", "time_ratio"]

REFERENCE = "lp MK-FN (Algorithm 1)"
#: Method -> (problem, solver); what the paper times, and our default solver.
METHODS = {
    REFERENCE: ("fisher", "paper"),
    "lp MK-FN": ("fisher", "auto"),
    "lp MK-FN-Grad": ("fisher", "gradient"),
    "lp MK-FN-CVX": ("fisher", "paper-cvx"),
    "Slim-MK-SVDD": ("svdd", "slim"),
    "MK-SVDD": ("svdd", "auto"),
    "Slim-MK-OCSVM": ("ocsvm", "slim"),
    "MK-OCSVM": ("ocsvm", "auto"),
}

#: Seconds within which training is timed again and again.
SHORT = 0.3


def settings(quick: bool) -> Settings:
    """Sizes, repeats and the cap."""
    return {
        "kernels": [5, 50] if quick else list(published.TIMING_KERNELS),
        "samples": [50, 400] if quick else list(published.TIMING_SAMPLES),
        "repeats": 1 if quick else 3,
        "cap": 20.0 if quick else 600.0,
        "delta": 1e-2,
        "nu": 0.1,
        "slim_lambda": 0.3,
        "gap": 1e-4,
        "features": 100,
        "width": 0.5,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Sizes x methods x repeats, small sizes first."""
    count = settings["repeats"] if repeats is None else repeats
    sizes = [f"J={J}, n=100" for J in settings["kernels"]]
    sizes += [f"J=10, n={n}" for n in settings["samples"]]
    return [Cell(size, m, r) for size in sizes for m in METHODS for r in range(count)]


def _size(data: str) -> tuple[int, int]:
    J, n = (int(part.split("=")[1]) for part in data.split(", "))
    return J, n


def _kernels(J: int, n: int, repeat: int, settings: Settings) -> Array:
    """J kernel matrices of Gaussian views; the same for every method."""
    rng = generator("E10", J, n, repeat)
    d = settings["features"]
    out = np.empty((J, n, n))
    for j in range(J):
        view = rng.uniform(0.0, 1.0, d) + rng.standard_normal((n, d)) @ rng.uniform(0, 1, (d, d))
        bank = KernelSet.fit(view, {"v": np.arange(d)}, widths=settings["width"])
        for _, K in bank.matrices():
            out[j] = K
    return out


def _train(cell: Cell, settings: Settings, answer: Any) -> None:
    """Build kernels, train, and send (milliseconds, gap); runs in a process of its own."""
    warnings.simplefilter("ignore")
    J, n = _size(cell.data)
    kind, solver = METHODS[cell.method]
    stack = DenseStack(_kernels(J, n, cell.repeat, settings))
    answer.send(("ready", 0.0, 0.0))
    options: dict[str, Any] = {"tol": settings["gap"]}
    if solver == "slim":
        options["slim_lambda"] = settings["slim_lambda"]
    if solver == "paper":  # the same stop for all
        options["stop_at_gap"] = True

    def train(part: DenseStack) -> Any:
        if kind == "fisher":
            return solve(
                FisherProblem(part, settings["delta"] * part.n), LpBall(2.0), solver, **options
            )
        if kind == "svdd":
            return solve(SVDDProblem(part, settings["nu"]), Simplex(), solver, **options)
        return solve(OneClassSVMProblem(part, settings["nu"]), LpBall(1.0), solver, **options)

    train(DenseStack(stack.kernels[:2, :20, :20]))  # imports and first calls are not training
    answer.send(("warm", 0.0, 0.0))
    # Runs of milliseconds are at the mercy of the machine: the fastest of those that fit SHORT.
    fastest, spent = np.inf, 0.0
    while spent < SHORT:
        start = time.perf_counter()
        result = train(stack)
        last = time.perf_counter() - start
        fastest, spent = min(fastest, last), spent + last
    answer.send(("done", 1e3 * fastest, float(result.gap)))


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """Time one method at one size, or say that it took longer than the cap."""
    J, n = _size(cell.data)
    row: dict[str, Any] = {"J": J, "n": n, "outcome": "done"}
    # What was over the cap once would be again, at this size or a larger one: ten minutes saved.
    slow = folder / "capped" / f"{cell.method.replace(' ', '-')}.txt"
    capped = [_size(line) for line in slow.read_text().splitlines()] if slow.exists() else []
    if any(J_capped <= J and n_capped <= n for J_capped, n_capped in capped):
        return [{**row, "outcome": "not tried"}]
    need, room = 1.5 * 8 * J * n * n, psutil.virtual_memory().available
    if need > room:
        return [{**row, "outcome": "too little memory"}]
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(cell, settings, sender), daemon=True)
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    before = {key: os.environ.get(key) for key in threads}
    os.environ.update(threads)  # read by BLAS when the child imports it
    try:
        process.start()
        sender.close()
        stage, elapsed, gap = "start", 0.0, 0.0
        while stage != "done":
            # Building kernels does not count against the cap of training.
            wait = settings["cap"] if stage == "warm" else max(600.0, settings["cap"])
            if not receiver.poll(wait):
                slow.parent.mkdir(parents=True, exist_ok=True)
                with slow.open("a") as file:
                    file.write(f"{cell.data}\n")
                return [{**row, "outcome": "over the cap"}]
            stage, elapsed, gap = receiver.recv()
    except EOFError:
        process.join(10)
        raise RuntimeError(
            f"{cell}: the timed process ended with code {process.exitcode} before it was done"
        ) from None
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
        process.kill()  # this child alone; it is done, over the cap, or interrupted with us
        process.join()
    return [{**row, "gap_reached": gap <= settings["gap"], "time_ms": elapsed}]


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """Two tables of ratios with the published ratios beside them, and a figure."""
    parts = [
        f"Ratios to {REFERENCE}, as printed, on the same kernels, median of "
        f"{len(distinct(rows, 'repeat'))} repeats (each the fastest of the runs that fit "
        f"{SHORT:g} s), one thread. Methods stop at a relative gap of {settings['gap']:g}, the "
        "slim ones by a criterion of their own; Algorithm 1 too stops at the gap here, not at a "
        "change of its coefficients. In brackets the ratio of the published times to "
        f"the published lp MK-FN. > means over the cap of {settings['cap']:g} s; a star that the "
        "gap was not reached in some repeat. What was over the cap is not tried again, nor at "
        "larger sizes.",
        _reached(rows, settings),
    ]
    figure, axes = new_figure(1, 2, figsize=(11, 4.8))
    tables: tuple[tuple[str, str, list[str], dict[str, dict[int, float]]], ...] = (
        (
            "kernels J at n = 100",
            "J",
            [f"J={J}, n=100" for J in settings["kernels"]],
            published.TIMES_BY_KERNELS,
        ),
        (
            "samples n at J = 10",
            "n",
            [f"J=10, n={n}" for n in settings["samples"]],
            published.TIMES_BY_SAMPLES,
        ),
    )
    for axis, (title, column, sizes, known) in zip(axes, tables, strict=True):
        lines = []
        for i, method in enumerate(METHODS):
            line, x, y = [method], [], []
            for size in sizes:
                number = _size(size)[0 if column == "J" else 1]
                text, ratio = _ratio(rows, size, method, settings)
                theirs = _published_ratio(known, method, number)
                line.append(f"{text} [{theirs}]" if theirs else text)
                if ratio is not None:
                    x.append(number)
                    y.append(ratio)
            lines.append(line)
            style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
            axis.plot(x, y, label=method, ms=6, **style)
        axis.set(xscale="log", yscale="log", xlabel=title, ylabel="time, ratio to Algorithm 1")
        numbers = [_size(size)[0 if column == "J" else 1] for size in sizes]
        axis.set_xticks(numbers, [str(number) for number in numbers], minor=False)
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3)
        reference = [f"{size}: {_milliseconds(rows, size, REFERENCE)}" for size in sizes]
        parts += [
            f"## Number of {title}",
            markdown(["method", *sizes], lines),
            "Algorithm 1 took " + "; ".join(reference) + ".",
        ]
    axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, folder / "times.png")
    return "\n\n".join([*parts[:2], "![training times](times.png)", *parts[2:]])


def runs_that_reach(rows: Rows, slim: bool) -> tuple[int, int]:
    """Of the runs that were timed, how many reach the gap, and how many there are."""
    timed = [
        row
        for row in rows
        if row["outcome"] == "done" and (METHODS[row["method"]][1] == "slim") == slim
    ]
    return sum(bool(row["gap_reached"]) for row in timed), len(timed)


def _reached(rows: Rows, settings: Settings) -> str:
    (plain, every), (slim, of_slim) = (runs_that_reach(rows, slim) for slim in (False, True))
    return (
        f"A gap of {settings['gap']:g} was reached by {plain} of {every} runs of the other methods "
        f"and by {slim} of {of_slim} runs of the slim ones."
    )


def time_ratio(rows: Rows, size: str, method: str, settings: Settings) -> float | None:
    """Time of a method as a ratio to Algorithm 1; None where it was not timed."""
    return _ratio(rows, size, method, settings)[1]


def smaller_in_print(rows: Rows, settings: Settings) -> list[str]:
    """Cells in which the published ratio is not larger than ours."""
    out = []
    for column, numbers, known in (
        ("J", settings["kernels"], published.TIMES_BY_KERNELS),
        ("n", settings["samples"], published.TIMES_BY_SAMPLES),
    ):
        for method in METHODS:
            for number in numbers:
                size = f"J={number}, n=100" if column == "J" else f"J=10, n={number}"
                _, ours = _ratio(rows, size, method, settings)
                theirs = _published_ratio(known, method, number)
                if ours is not None and theirs and float(theirs) <= ours:
                    out.append(f"{method} at {column} = {number}")
    return out


def _times(rows: Rows, size: str, method: str) -> list[float]:
    return [row["time_ms"] for row in where(rows, data=size, method=method) if "time_ms" in row]


def _milliseconds(rows: Rows, size: str, method: str) -> str:
    found = _times(rows, size, method)
    return f"{np.median(found):.3g} ms" if found else "no time"


def _ratio(rows: Rows, size: str, method: str, settings: Settings) -> tuple[str, float | None]:
    reference, found = _times(rows, size, REFERENCE), _times(rows, size, method)
    if not reference:
        return "–", None
    if not found:
        outcomes = {row["outcome"] for row in where(rows, data=size, method=method)}
        if "over the cap" in outcomes:
            return f"> {1e3 * settings['cap'] / np.median(reference):.3g}", None
        return ", ".join(sorted(outcomes)) or "–", None
    missed = any(row.get("gap_reached") is False for row in where(rows, data=size, method=method))
    star = "*" if missed else ""
    ratio = float(np.median(found) / np.median(reference))
    return f"{ratio:.3g}{star}", ratio


def _published_ratio(known: dict[str, dict[int, float]], method: str, number: int) -> str:
    base = known["lp MK-FN"].get(number)
    theirs = known.get(method, {}).get(number)
    if method == "lp MK-FN" or base is None or theirs is None:
        return ""
    return f"{theirs / base:.3g}"


EXPERIMENT = Experiment(
    "E10", "Training times as ratios", settings, cells, run, report, exclusive=True
)

"""Whole fits, as people wait for them: seconds beside floors and what a user would pick instead.

    python -m benchmarks.fits [fits] [views] [given] [deep] [busy] [scoring] [storage] [large]
                              [--repeats 5] [--clock wall|cpu] [--out FILE] [--against FILE]
                              [--landed]

The protocol, fixed before the first run. Everything is timed in one process by the clock; runs that
are compared take turns, and the best of several counts. At its turn, what takes less than a second
runs three times in a row: threads of BLAS that worked for another run spin for a while after it,
which nobody sees who fits a model. On a machine that others use too, ``--clock
cpu`` counts this process's own seconds: give it one thread (OMP_NUM_THREADS=1) for them to tell
work. Rows are a factor model (six factors, noise 0.5, d = 30, seed 0) unless said. A whole fit
includes its threshold.

fits     n = 300 to 4000, one view, default arguments, decision "sum" and "evidence", beside
         OneClassSVM() and five nearest neighbours.
views    the model of the README, and 60 one-column views of 300 rows.
given    kernels given, n = 2000, J = 10 (those of `benchmarks.core`), p = 2, delta = 1e-3, gap
         1e-6, decision "sum", beside the solver alone and Algorithm 1 written in ten lines (stops
         when the weights move by less than 1e-4). Limits: 1.5 solvers, half of Algorithm 1.
         Floor: one LAPACK Cholesky + one combination of the kernels + one pass of products.
deep     two deep views (rank 60 + noise), n = 114, d = 512 and 1000, and one of d = 2048, n = 1000.
busy     the same beside six busy loops. Limit: twice the quiet time.
scoring  100,000 rows against n = 2000, beside OneClassSVM().score_samples; peak memory of scoring.
         Limit: as long per kernel.
storage  n = 16,000: storage "auto" beside "dense" and "tiled". Limit: 1.2 of the better.
large    n = 100,000: storage "auto" (limit 90 s), and "tiled" (exact and certified, 10 minutes).

``--out`` keeps the numbers as JSON lines; ``--against`` prints them beside those of another run.
``--landed`` times the decision before cross-fitting first (`benchmarks.landed`), by this module,
and judges by it. Limits: twice its time at 300 and 1,000 rows, for the README's model and for 60
views; three times for deep views; once at 2,000 rows and for scoring; half at 4,000 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import OneClassSVM

from benchmarks import landed
from kernull import MultiKernelFisherNull
from kernull.datasets import make_line

BUSY_LOOPS = 6
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
CLOCK = "wall"
#: What a time may be of the one before cross-fitting, by how the name of its row begins.
LANDED = {
    "fit n=300 evidence": 2.0,
    "fit n=1000 evidence": 2.0,
    "fit n=2000 evidence": 1.0,
    "fit n=4000 evidence": 0.5,
    "views": 2.0,
    "deep": 3.0,
    "scoring": 1.0,
}


def factor_rows(n: int, d: int = 30, factors: int = 6, noise: float = 0.5, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((factors, d))
    return rng.standard_normal((n, factors)) @ loadings + noise * rng.standard_normal((n, d))


def take_turns(repeats: int, **runs: Callable[[], Any]) -> dict[str, float]:
    """Best seconds of each, taken in turns; one that takes a minute is run once."""
    best: dict[str, float] = {}
    clock = CLOCKS[CLOCK]
    for _ in range(repeats):
        for name, run in runs.items():
            for _ in range(3 if best.get(name, 0.0) < 1.0 else 1):
                if best.get(name, 0.0) > 60:
                    break
                start = clock()
                run()
                best[name] = min(best.get(name, np.inf), clock() - start)
    return best


def floor_runs(stack: Any, delta: float) -> dict[str, Callable[[], Any]]:
    """The three parts of a floor, each to be timed."""
    b, v = np.full(stack.J, 1.0 / stack.J), np.ones(stack.n)
    A = stack.combine(b)
    A.flat[:: stack.n + 1] += delta * stack.n
    return {
        "cholesky": lambda: cholesky(A.T, lower=True, check_finite=False),
        "combine": lambda: stack.combine(b),
        "pass": lambda: stack.products(v),
    }


class Report:
    """Prints rows as they come; keeps them, and knows those of another run."""

    def __init__(self, out: str | None, against: str | None, landed: bool = False) -> None:
        self.landed = landed
        self.out = None if out is None else Path(out)
        lines = [] if against is None else Path(against).read_text().splitlines()
        self.before = {row["name"]: row for row in map(json.loads, lines)}

    def row(self, name: str, seconds: float, limit: float | None = None, **more: Any) -> None:
        parts = [f"{name}: {_shown(seconds)}"]
        if limit is not None:
            ratio = seconds / limit
            parts.append(f"{ratio:.2f} of its limit" + ("" if ratio <= 1 else "  **MISSED**"))
        parts += [f"{key} {value}" for key, value in more.items()]
        if name in self.before:
            before = self.before[name]["seconds"]
            parts.append(f"before {_shown(before)}, {seconds / before:.2f} of that")
            most = next((m for start, m in LANDED.items() if name.startswith(start)), None)
            if self.landed and most is not None:
                parts.append(
                    f"limit {most:g}" + ("" if seconds <= most * before else "  **MISSED**")
                )
        print("; ".join(parts), flush=True)
        if self.out is not None:
            kept = {"name": name, "seconds": seconds, "limit": limit, **more}
            with self.out.open("a") as file:
                file.write(json.dumps(kept) + "\n")


def _shown(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def fits(report: Report, repeats: int) -> None:
    for n in (300, 1000, 2000, 4000):
        X = factor_rows(n)
        by_sum, by_evidence = MultiKernelFisherNull(decision="sum"), MultiKernelFisherNull()
        t = take_turns(
            repeats,
            sum=lambda X=X, model=by_sum: model.fit(X),
            evidence=lambda X=X, model=by_evidence: model.fit(X),
            svm=lambda X=X: OneClassSVM().fit(X),
            knn=lambda X=X: NearestNeighbors(n_neighbors=5).fit(X).kneighbors(),
        )
        shown = {"OneClassSVM": _shown(t["svm"]), "kNN": _shown(t["knn"])}
        report.row(f"fit n={n} sum", t["sum"], **shown)
        report.row(f"fit n={n} evidence", t["evidence"])


def views(report: Report, repeats: int) -> None:
    line, X = make_line(), factor_rows(300, d=60)
    models = {
        "views README": (
            MultiKernelFisherNull(views=line.slices, false_alarm_rate=0.05),
            line.good,
        ),
        "views 60 of one column n=300": (MultiKernelFisherNull(views="features"), X),
    }
    for name, (model, rows) in models.items():
        t = take_turns(repeats, fit=lambda model=model, rows=rows: model.fit(rows))
        report.row(name, t["fit"])


def algorithm_1(K: Any, p: float, ridge: float, change: float = 1e-4) -> Any:
    """Algorithm 1 in ten lines, as a reader of the paper would write it."""
    J, n, _ = K.shape
    b = np.full(J, J ** (-1 / p))
    for _ in range(200):
        A = np.tensordot(b, K, axes=1)
        A.flat[:: n + 1] += ridge
        a = cho_solve(cho_factor(A, overwrite_a=True), np.ones(n))
        u = np.array([a @ (Kj @ a) for Kj in K])
        new = u ** (1 / (p - 1))
        new /= np.linalg.norm(new, p)
        if np.abs(new - b).max() <= change * np.abs(b).max():
            return new, a
        b = new
    return b, a


def given(report: Report, repeats: int) -> None:
    # The version before cross-fitting has these elsewhere.
    from benchmarks.core import timing_kernels
    from kernull.mkl.balls import LpBall
    from kernull.mkl.problems import FisherProblem
    from kernull.mkl.solvers import solve

    stack = timing_kernels(2000, 10)
    settings: dict[str, Any] = {"kernels": "precomputed", "p": 2.0, "delta": 1e-3}
    plain = MultiKernelFisherNull(decision="sum", normalize="none", **settings)
    ridge = plain.delta * stack.n
    t = take_turns(
        repeats,
        fit=lambda: plain.fit(stack.kernels),
        evidence=lambda: MultiKernelFisherNull(**settings).fit(stack.kernels),
        solver=lambda: solve(FisherProblem(stack, ridge), LpBall(2.0), tol=1e-6),
        paper=lambda: algorithm_1(stack.kernels, 2.0, ridge),
        **floor_runs(stack, plain.delta),
    )
    report.row("given, solver alone", t["solver"])
    report.row("given, Algorithm 1", t["paper"])
    report.row("given, against the solver", t["fit"], 1.5 * t["solver"])
    report.row("given, against Algorithm 1", t["fit"], 0.5 * t["paper"])
    floor = t["cholesky"] + t["combine"] + t["pass"]
    report.row("given, evidence", t["evidence"], 4 * stack.J * floor, floor=_shown(floor))


def deep_rows(n: int, d: int, seed: int) -> Any:
    return factor_rows(n, d, factors=60, noise=0.3, seed=seed)


def deep_cases() -> Iterator[tuple[str, Any, Any]]:
    X = np.hstack([deep_rows(114, 512, 1), deep_rows(114, 1000, 2)])
    yield "n=114 d=512+1000", X, {"a": slice(0, 512), "b": slice(512, 1512)}
    yield "n=1000 d=2048", deep_rows(1000, 2048, 3), None


def deep(report: Report, repeats: int, loops: str = "") -> dict[str, float]:
    quiet = {}
    for name, X, views in deep_cases():
        t = take_turns(
            repeats,
            evidence=lambda X=X, views=views: MultiKernelFisherNull(views=views).fit(X),
            sum=lambda X=X, views=views: MultiKernelFisherNull(views=views, decision="sum").fit(X),
        )
        for decision, seconds in t.items():
            quiet[f"deep {name} {decision}{loops}"] = seconds
            if not loops:
                report.row(f"deep {name} {decision}", seconds)
    return quiet


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def busy(report: Report, repeats: int) -> None:
    quiet = deep(Report(None, None), repeats, " (quiet)")
    with busy_loops(BUSY_LOOPS):
        time.sleep(0.5)
        beside = deep(report, repeats, " beside six loops")
    # A fair share of the cores is what anyone would get; it is printed beside the limit.
    share = (len(os_cores()) + BUSY_LOOPS) / len(os_cores())
    for (name, t), q in zip(beside.items(), quiet.values(), strict=True):
        report.row(name, t, 2 * q, quiet=_shown(q), fair_share=f"{share:.1f}")


def os_cores() -> Any:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count())


def scoring(report: Report, repeats: int) -> None:
    X, new = factor_rows(2000), factor_rows(100_000, seed=1)
    svm = OneClassSVM().fit(X)
    for decision in ("sum", "evidence"):
        model = MultiKernelFisherNull(decision=decision).fit(X)
        t = take_turns(
            max(1, repeats // 2),
            ours=lambda model=model: model.score_samples(new),
            svm=lambda: svm.score_samples(new),
        )
        peaks = [_peak(model, new[:count]) for count in (50_000, 100_000)]
        report.row(
            f"scoring 100,000 {decision}", t["ours"], len(model.weights_) * t["svm"],
            OneClassSVM=_shown(t["svm"]), peak_MB=[round(peak) for peak in peaks],
        )  # fmt: skip


def _peak(model: Any, rows: Any) -> float:
    """Megabytes that scoring takes at most, beyond the rows."""
    tracemalloc.start()
    model.score_samples(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def storage(report: Report, repeats: int) -> None:
    X = factor_rows(16_000)
    for decision in ("sum", "evidence"):
        t = {}
        for kind in ("auto", "tiled", "dense"):
            model = MultiKernelFisherNull(decision=decision, storage=kind)
            t |= take_turns(1, **{kind: lambda model=model: model.fit(X)})
            report.row(f"n=16,000 {decision} {kind}", t[kind], gap=f"{model.gap_:.0e}")
        best = min(t["tiled"], t["dense"])
        report.row(f"n=16,000 {decision} auto against the better", t["auto"], 1.2 * best)


def large(report: Report, repeats: int) -> None:
    X = factor_rows(100_000)
    for kind, limit in (("auto", 90.0), ("tiled", 600.0)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = MultiKernelFisherNull(storage=kind)
            t = take_turns(1, fit=lambda model=model: model.fit(X))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        warned = sorted({w.category.__name__ for w in said})
        report.row(
            f"n=100,000 {kind}", t["fit"], limit,
            gap=f"{model.gap_:.1e}", peak_GB=f"{peak:.1f}", warned=warned,
        )  # fmt: skip


ROWS: dict[str, Callable[[Report, int], Any]] = {
    "fits": fits, "views": views, "given": given, "deep": deep, "busy": busy, "scoring": scoring,
    "storage": storage, "large": large,
}  # fmt: skip


def time_landed(arguments: argparse.Namespace) -> Path:
    """Run the same rows with the ``kernull`` before cross-fitting; the file of its numbers."""
    out = landed.HOME / "fits.jsonl"
    executable = landed.python()
    out.unlink(missing_ok=True)
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(landed.TREE / "src"), str(landed.ROOT)])
    command = [str(executable), "-m", "benchmarks.fits", *arguments.what, "--out", str(out)]
    command += ["--repeats", str(arguments.repeats), "--clock", arguments.clock]
    subprocess.run(command, cwd=landed.ROOT, env=environment, check=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", nargs="*", help=f"of {', '.join(ROWS)}; the first two, deep and scoring by default"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", help="keep the numbers here, as JSON lines")
    parser.add_argument("--against", help="numbers of another run, to print beside")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--landed", action="store_true", help="beside the decision before")
    arguments = parser.parse_args()
    global CLOCK
    CLOCK = arguments.clock
    if arguments.landed:
        arguments.against = str(time_landed(arguments))
    report = Report(arguments.out, arguments.against, arguments.landed)
    for name in arguments.what or ("fits", "views", "deep", "scoring"):
        ROWS[name](report, arguments.repeats)


if __name__ == "__main__":
    main()

"""Training time of every method the paper times (E10), as ratios to its own algorithm.

    python -m benchmarks.methods [--methods NAME ...] [--cells J5 J15 J50 n50 n100 n1000 n2000]
                                 [--out FILE]

Kernel matrices are given; what is timed is the search for weights and coefficients. Each cell runs
in a process of its own with one thread, is repeated three times (median of the processor times) and
is cut off after two minutes of processor time, or ten on the clock: a cell that was says so, with
the repeats it finished, and gets no further one. Times of different machines are not compared:
every number is a ratio to lp MK-FN run beside it, by our default solver and by Algorithm 1, which
is what the paper times; the paper's own ratio stands in brackets. With --out, cells are kept in a
file of JSON lines as they end and not run again, and the table of all of them is printed last, in
Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances

CAP_SECONDS, REPEATS = 120, 3
#: Beside much other work the clock runs faster than the processor time; it must end some day too.
CLOCK_SECONDS = 5 * CAP_SECONDS
TOLERANCE = 1e-6
OURS, BASE = "lp MK-FN", "Algorithm 1"
#: Other work on the machine must not decide a ratio, nor should the number of cores.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
#: Cell -> (J, n), as in the paper's tables T1 (n = 100) and T2 (J = 10).
CELLS = {
    "J5": (5, 100),
    "J15": (15, 100),
    "J50": (50, 100),
    "n50": (10, 50),
    "n100": (10, 100),
    "n1000": (10, 1000),
    "n2000": (10, 2000),
}
#: The paper's milliseconds, in the order of CELLS; its lp MK-FN is Algorithm 1.
PAPER = {
    BASE: (1.8, 4.2, 13.9, 0.8, 2.1, 719, 759),
    OURS: (1.8, 4.2, 13.9, 0.8, 2.1, 719, 759),
    "lp MK-FN-Grad": (35.4, 410.5, 420.5, 18, 58.3, 20713, 46727),
    "lp MK-FN-CVX": (334.5, 321.4, 346.4, 330, 529, 1067, 1669),
    "Slim-MK-SVDD": (34.1, 65.3, 296.1, 453.9, 605.7, 30392, 107385),
    "MK-SVDD": (78.5, 173.7, 325.6, 32.9, 63.5, 2172, 4768),
    "Slim-MK-OCSVM": (41.9, 93.7, 221.4, 199.4, 404, 39973, 85429),
    "MK-OCSVM": (49.2, 85.4, 324.7, 22.3, 46.7, 4254, 12758),
}


def kernels(J, n, seed=0):
    """E2's data with 100 features: J Gaussians with random means and covariances."""
    rng = np.random.default_rng(seed)
    out = np.empty((J, n, n))
    for j in range(J):
        root = rng.normal(size=(100, 100)) / 10
        X = rng.uniform(size=100) + rng.normal(size=(n, 100)) @ root
        squared = euclidean_distances(X, squared=True)
        width = np.sqrt(squared).sum() / (n * (n - 1)) / 2
        out[j] = np.exp(-squared / (2 * width**2))
    return out


def train(name, stack):
    """Run one method's solver; returns its result."""
    from kernull.mkl.balls import LpBall, Simplex
    from kernull.mkl.problems import FisherProblem, OneClassSVMProblem, SVDDProblem
    from kernull.mkl.solvers import solve

    if "SV" in name:
        solver, options = ("slim", {"slim_lambda": 0.3}) if "Slim" in name else ("auto", {})
        if "SVDD" in name:
            return solve(SVDDProblem(stack, 0.1), Simplex(), solver, tol=TOLERANCE, **options)
        return solve(OneClassSVMProblem(stack, 0.1), LpBall(1), solver, tol=TOLERANCE, **options)
    solver = {
        BASE: "paper",
        OURS: "auto",
        "lp MK-FN-Grad": "gradient",
        "lp MK-FN-CVX": "paper-cvx",
    }[name]
    stop = {"stop_at_gap": True} if solver == "paper" else {}  # the same for all
    return solve(FisherProblem(stack, 1e-3 * stack.n), LpBall(2), solver, tol=TOLERANCE, **stop)


def run_cell(name, cell):
    """Child process: one JSON line per repeat."""
    from kernull.operators import DenseStack

    warnings.simplefilter("ignore", ConvergenceWarning)
    train(name, DenseStack(kernels(2, 20)))  # imports are not training
    stack = DenseStack(kernels(*CELLS[cell]))
    _limit_processor_time()
    for _ in range(REPEATS):
        # Runs of milliseconds are shorter than the processor clock's tick: the mean of many counts.
        runs, started = 0, time.process_time()
        while (spent := time.process_time() - started) < 0.4:
            result = train(name, stack)
            runs += 1
        print(json.dumps([spent / runs, result.gap, len(result.history)]), flush=True)


def _limit_processor_time():
    """Let the system end this process after the cap, where it can."""
    try:
        import resource
    except ImportError:  # Windows: the parent's clock serves
        return
    limit = int(time.process_time()) + CAP_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))


def measure(name, cell):
    """The repeats of a cell, and whether it was cut off."""
    command = [sys.executable, "-m", "benchmarks.methods", "--cell", name, cell]
    environment = {**os.environ, **ONE_THREAD}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            out, capped = process.communicate(timeout=CLOCK_SECONDS)[0], False
        except subprocess.TimeoutExpired:
            process.kill()
            out, capped = process.communicate()[0], True
    if process.returncode == -getattr(signal, "SIGXCPU", 0) != 0:
        capped = True  # by the limit of processor time
    if not capped and process.returncode:
        raise SystemExit(f"{name} {cell}: exit status {process.returncode}")
    return {"repeats": [json.loads(line) for line in out.splitlines()], "capped": capped}


def seconds(found):
    """Median over the repeats of a cell, or None."""
    if not found or not found["repeats"]:
        return None
    return statistics.median(repeat[0] for repeat in found["repeats"])


def columns(cell, name, results):
    """Ratios to lp MK-FN, to Algorithm 1 and the paper's, then what else there is to say."""
    found = results[cell, name]
    own = seconds(found)
    place = list(CELLS).index(cell)
    paper = f"{PAPER[name][place] / PAPER[BASE][place]:.3g}"
    if own is None:
        return "-", "-", paper, f"capped at {CAP_SECONDS} s before its first repeat ended"
    ratios = [seconds(results.get((cell, base))) for base in (OURS, BASE)]
    shown = [f"{own / base:.3g}" if base else "-" for base in ratios]
    gap, steps = found["repeats"][-1][1:]
    note = f"{1e3 * own:.3g} ms, gap {gap:.0e}, {steps} steps"
    if found["capped"]:
        note += f"; capped at {CAP_SECONDS} s: {len(found['repeats'])} of {REPEATS} repeats"
    return *shown, paper, note


def table(results):
    """All that was measured, in Markdown."""
    yield "| J | n | method | to lp MK-FN | to Algorithm 1 | the paper's | time, last gap |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for cell, (J, n) in CELLS.items():
        for name in PAPER:
            if (cell, name) in results:
                yield f"| {J} | {n} | {name} | {' | '.join(columns(cell, name, results))} |"


def stored(path):
    """Cells of an earlier run."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(line["cell"], line["method"]): line for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", default=list(PAPER)[1:], choices=list(PAPER))
    parser.add_argument("--cells", nargs="*", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--out", type=Path, help="JSON lines; cells found there are not run again")
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cell:
        run_cell(*arguments.cell)
        return
    print(
        "E10: ratio to lp MK-FN, to Algorithm 1 [the paper's ratio]; p = 2, delta = 1e-3 n, "
        f"nu = 0.1, tol {TOLERANCE:g}",
        flush=True,
    )
    results = stored(arguments.out)
    names = [OURS, BASE, *(name for name in arguments.methods if name not in (OURS, BASE))]
    todo = [(cell, name) for cell in arguments.cells for name in names]
    for done, (cell, name) in enumerate(todo, start=1):
        if (cell, name) not in results:
            found = {"cell": cell, "method": name, **measure(name, cell)}
            results[cell, name] = found
            if arguments.out is not None:
                with arguments.out.open("a") as file:
                    file.write(json.dumps(found) + "\n")
        J, n = CELLS[cell]
        ours, base, paper, note = columns(cell, name, results)
        print(
            f"[{done:2d}/{len(todo)}] J={J:<3d} n={n:<5d} {name:15s} {ours:>8s} x {base:>8s} x "
            f"[{paper}]  {note}",
            flush=True,
        )
    if arguments.out is not None:
        print("", *table(results), sep="\n")


if __name__ == "__main__":
    main()

"""A joint model whose tasks come and go for ten minutes while its process is killed at random.

    python -m benchmarks.soak                 # ten minutes
    python -m benchmarks.soak --minutes 1

A child enrols a task at every step (and forgets the oldest), scores, and saves. The parent kills
it (SIGKILL) every few seconds and starts it again; the last life is a fifth of the time. The file
must always load and be the model of the last step or the one before; in the end it must score as a
run that nobody killed; and the memory of a process must not grow with its steps.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import kernull

ROOT = Path(__file__).parents[1]
ROWS, COLUMNS, TASKS = 30, 6, 5
#: Megabytes that a process may grow between its 40th and its last step.
GROWTH = 16.0


def rows_of(step: int) -> Any:
    """The rows of the task of a step, the same in every run."""
    return np.random.default_rng([7, step]).normal(size=(ROWS, COLUMNS))


def first_model() -> Any:
    """A model of the tasks that are there at the beginning: those of the last steps before 1."""
    views = {"a": [0, 1, 2], "b": [3, 4, 5]}
    model = kernull.JointMultiKernelFisherNull(views=views, scaling="standard")
    rows = np.random.default_rng(7).normal(size=(TASKS * ROWS, COLUMNS))
    return model.fit(rows, groups=np.repeat(np.arange(1 - TASKS, 1), ROWS))


def step_forward(model: Any, step: int) -> None:
    """The task of this step comes, and the oldest one goes."""
    model.enroll(rows_of(step), step).forget(step - TASKS)


def step_of(model: Any) -> int:
    """The last step whose task a model has; 0 where it was only fitted."""
    return max(model.tasks_)


def memory() -> float:
    """Megabytes of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def child(folder: Path, last: int) -> None:
    """Learn step after step, from where the files say that it stopped."""
    path, note = folder / "model.kernull", folder / "step.json"
    if not path.exists():
        model, step = first_model(), 0
        kernull.save(model, path)
    else:
        model = kernull.load(path)
        # The step is in the model too: the note may be one behind.
        step = step_of(model)
        noted = json.loads(note.read_text())["step"] if note.exists() else 0
        if step not in (noted, noted + 1):
            raise AssertionError(f"the model is of step {step}, the note of {noted}")
    rows = np.random.default_rng(8).normal(size=(20, COLUMNS))
    for number in range(step + 1, last + 1):
        step_forward(model, number)
        if not np.isfinite(model.score_samples(rows, groups=number)).all():
            raise AssertionError("scores that are no numbers")
        kernull.save(model, path)
        part = folder / "step.part"
        part.write_text(json.dumps({"step": number}))
        os.replace(part, note)
        print(json.dumps({"step": number, "megabytes": memory()}), flush=True)


def run(seconds: float, seed: int = 0, pause: tuple[float, float] = (2.0, 12.0)) -> dict[str, Any]:
    """Kill and restart for so long, then compare with a run that nobody killed."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as holder:
        folder, kills, wrong = Path(holder), 0, []
        sizes: list[float] = []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not wrong:
            lines, code = life(folder, left if left < seconds / 5 else rng.uniform(*pause))
            kills += code == -signal.SIGKILL
            if code not in (0, -signal.SIGKILL):
                wrong.append(f"the child ended with {code}: {lines[-1:]}")
            grown = [json.loads(line)["megabytes"] for line in lines if line.startswith("{")]
            if len(grown) > 100:
                sizes.append(statistics.median(grown[-20:]) - statistics.median(grown[30:50]))
        parts = len(list(folder.glob("*.part"))) + len(list(folder.glob(".*.part")))
        model = kernull.load(folder / "model.kernull")
        steps = step_of(model)
        wrong += compare(model, steps)
    growth = max(sizes, default=0.0)
    if growth > GROWTH:
        wrong.append(f"a process grew by {growth:.1f} MB")
    return {"steps": steps, "kills": kills, "parts left by kills": parts,
            "lives measured": len(sizes), "growth in MB": round(growth, 2),
            "findings": wrong}  # fmt: skip


def life(folder: Path, seconds: float) -> tuple[list[str], int]:
    """One life of the child, counted from its first step; what it said, and how it ended."""
    command = [sys.executable, "-m", "benchmarks.soak", "--child", str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    )
    lines: list[str] = []
    begun = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            begun.set()
        begun.set()

    listener = threading.Thread(target=listen)
    listener.start()
    begun.wait(120)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    listener.join()
    return lines, process.returncode


def compare(model: Any, steps: int) -> list[str]:
    """What differs from a run in one process."""
    plain = first_model()
    for number in range(max(1, steps - TASKS + 1), steps + 1):  # those before are gone again
        plain.enroll(rows_of(number), number)
    rows = np.random.default_rng(9).normal(size=(50, COLUMNS))
    difference = max(
        np.abs(
            model.score_samples(rows, groups=name) - plain.score_samples(rows, groups=name)
        ).max()
        for name in model.tasks_
    )
    return [] if difference < 1e-6 else [f"scores differ by {difference:.2g} after {steps} steps"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.child:
        child(Path(options.child), 10**9)
        return 0
    found = run(60 * options.minutes, options.seed)
    print(", ".join(f"{name}: {value}" for name, value in found.items()))
    return 1 if found["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())

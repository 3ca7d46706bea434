"""One case after the other: time, memory and what must never happen while a file is read."""

from __future__ import annotations

import collections
import json
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

#: A case that takes longer, or a process that takes more, is a finding. Seconds are those of the
#: processor: others may run on the same machine.
MAX_SECONDS = 2.0
MAX_MEGABYTES = 1024.0
#: After so many of them a case is stopped; and after so many of the clock, for cases that wait.
STOP_SECONDS = 20
WAIT_SECONDS = 120

#: What reading a file has no business to do.
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork",
             "socket.connect", "pickle.find_class", "ctypes.dlopen")  # fmt: skip

Action = Callable[[], str]


class Target(Protocol):
    """What is fuzzed: valid files, and ways to spoil them."""

    def case(self, rng: np.random.Generator, folder: Path) -> tuple[str, Action]:
        """A case's kind, and what to do: it returns the outcome in a word, or raises."""

    def corpus(self, folder: Path) -> Iterator[tuple[str, Action]]:
        """Past failures by name."""


class Outcome(str):
    """An outcome in a word, with what another process took for it."""

    seconds = 0.0
    megabytes = 0.0


class WrongError(Exception):
    """What was taken does not hold together."""


@dataclass
class Report:
    """What came of the cases of one target."""

    target: str
    cases: int = 0
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    findings: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    megabytes: float = 0.0
    path: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        values = {name: value for name, value in vars(self).items() if name != "path"}
        return {**values, "outcomes": dict(self.outcomes)}

    def note(self, label: str) -> None:
        """Write down what has come so far: the next case may end the process."""
        if self.path is not None:
            self.path.write_text(json.dumps({**self.as_dict(), "now": label}))


class Watch:
    """Notes what is done that must not be done, while a case runs."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        # Libraries of installed packages are loaded on first use.
        library = event == "ctypes.dlopen" and "packages" in str(args)
        if self.on and event in FORBIDDEN and not library:
            self.seen.append(f"{event} {str(args)[:200]}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.seen, self.on = [], True
        try:
            yield
        finally:
            self.on = False


def run_cases(
    name: str,
    target: Target,
    seed: int,
    seconds: float,
    *,
    first: int = -1,
    most: int = 10**9,
    path: Path | None = None,
) -> Report:
    """Run the corpus (unless ``first`` is the number of a case), then cases until the time is over.

    ``path`` gets the report as it grows.
    """
    report, watch = Report(name, path=path), Watch()
    end = time.perf_counter() + seconds
    with tempfile.TemporaryDirectory() as holder:
        folder = Path(holder)
        if first < 0:
            for label, action in target.corpus(folder):
                run_one(report, watch, f"corpus {label}", action)
        number = max(first, 0)
        last = number + most
        while number < last and time.perf_counter() < end:
            kind, action = target.case(np.random.default_rng([seed, number]), folder)
            run_one(report, watch, f"{kind} (--seed {seed} --case {number})", action, kind)
            number += 1
    report.note("done")
    return report


def run_one(report: Report, watch: Watch, label: str, action: Action, kind: str = "corpus") -> None:
    """Run one case and note what came of it."""
    report.note(label)
    start, outcome = time.process_time(), ""
    try:
        with warnings.catch_warnings(), watch.watching(), _stopped_after(STOP_SECONDS):
            warnings.simplefilter("error")
            outcome = action()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        outcome = "FINDING"
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        report.findings.append(f"{label}: {type(error).__name__} at {where}: {str(error)[:300]}")
    taken = max(time.process_time() - start, getattr(outcome, "seconds", 0.0))
    report.findings += [f"{label}: {event}" for event in watch.seen]
    if taken > MAX_SECONDS:
        report.findings.append(f"{label}: took {taken:.1f} s")
    before = report.megabytes
    report.megabytes = max(before, peak_megabytes(), getattr(outcome, "megabytes", 0.0))
    if before <= MAX_MEGABYTES < report.megabytes:
        report.findings.append(f"{label}: the process grew to {report.megabytes:.0f} MB")
    report.cases += 1
    report.outcomes[f"{kind}: {outcome}"] += 1
    report.slowest = max(report.slowest, (taken, label))


def peak_megabytes() -> float:
    """The largest memory that this process ever took."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@contextmanager
def _stopped_after(seconds: int) -> Iterator[None]:
    def stop(number: int, _: Any) -> None:
        limit = seconds if number == signal.SIGPROF else WAIT_SECONDS
        raise TimeoutError(f"still running after {limit} s")

    before = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(WAIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)


def spoil(data: bytes, rng: np.random.Generator) -> bytes:
    """Change, remove, insert or repeat a few bytes, or cut the end off."""
    out = bytearray(data)
    at = int(rng.integers(max(1, len(out))))
    length = int(rng.integers(1, 200))
    kind = rng.integers(6)
    if kind == 0:
        return bytes(out[:at])
    if kind == 1:
        return bytes(out[:at] + rng.bytes(length) + out[at:])
    if kind == 2:
        return bytes(out[:at] + out[at + length :])
    if kind == 3:
        return bytes(out[: at + length] + out[at:])
    if kind == 4:  # a number of four bytes: sizes and offsets
        value = int(rng.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 65535]))
        order = "little" if rng.random() < 0.5 else "big"
        out[at : at + 4] = value.to_bytes(4, order)
        return bytes(out)
    for _ in range(int(rng.integers(1, 10))):
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
    return bytes(out)

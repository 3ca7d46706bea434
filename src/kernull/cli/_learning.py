"""What a long fit shows: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator

from kernull.cli._console import note, progress

#: Seconds between lines where there is no terminal.
EVERY = 10.0
_GAP = re.compile(r"gap ([-+.\de]+) \(until ([-+.\de]+)\)")


@contextlib.contextmanager
def learning(text: str, quiet: bool) -> Iterator[None]:
    """Show that something is being learned, and how far it is."""
    if quiet:
        yield
        return
    start, last, done = time.monotonic(), "", threading.Event()

    def work() -> None:
        while not done.wait(EVERY):
            so_far = f"{text}: {time.monotonic() - start:.0f} s so far"
            note(f"{so_far}; {last}." if last else f"{so_far}.", quiet)

    with progress(quiet) as bar:
        task = bar.add_task(text, total=None)

        def tell(line: str, share: float | None) -> None:
            nonlocal last
            last = line
            if share is not None:
                bar.update(task, total=1.0, completed=share)

        lines = threading.Thread(target=work, daemon=True)
        if bar.disable:  # no terminal
            lines.start()
        try:
            with _heard(tell):
                yield
        finally:
            done.set()
            if bar.disable:
                lines.join()


@contextlib.contextmanager
def _heard(tell: Callable[[str, float | None], None]) -> Iterator[None]:
    """Tell of every iteration of the solver: its line, and how far the gap has closed."""

    def hear(record: logging.LogRecord) -> bool:
        text, share = record.getMessage(), None
        if found := _GAP.search(text):
            gap, tol = map(float, found.groups())
            if 0 < gap < 1 and 0 < tol < 1:
                share = min(math.log(gap) / math.log(tol), 1.0)
        tell(text, share)
        return False  # for nobody else

    logger = logging.getLogger("kernull")
    before = logger.level
    logger.addFilter(hear)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeFilter(hear)
        logger.setLevel(before)


@contextlib.contextmanager
def cores(jobs: int | None) -> Iterator[None]:
    """Work on so many cores at most; on all of them where None."""
    if jobs is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    name = "LOKY_MAX_CPU_COUNT"  # what joblib counts cores by
    before = os.environ.get(name)
    os.environ[name] = str(jobs)
    try:
        with threadpool_limits(jobs):
            yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before

"""What a long fit shows: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

from kernull.cli._console import note, progress

#: Seconds between lines where there is no terminal.
EVERY = 10.0


@contextlib.contextmanager
def learning(text: str, quiet: bool) -> Iterator[None]:
    """Show that something is being learned, and for how long."""
    start, done = time.monotonic(), threading.Event()

    def work() -> None:
        while not done.wait(EVERY):
            note(f"{text}: {time.monotonic() - start:.0f} s so far.", quiet)

    with progress(quiet) as bar:
        bar.add_task(text, total=None)
        lines = threading.Thread(target=work, daemon=True)
        if bar.disable and not quiet:  # no terminal
            lines.start()
        try:
            yield
        finally:
            done.set()
            if lines.is_alive():
                lines.join()


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

"""What a long fit shows while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from kernull.solvers import Record

__all__ = ["iterations_shown"]

#: Every iteration of every fit is told to this logger, at level INFO.
LOGGER = logging.getLogger("kernull")


@contextmanager
def iterations_shown(
    verbose: Any, what: str, tol: float
) -> Iterator[Callable[[Record], None] | None]:
    """A callback for `solve` that tells how far the gap is, and None where nobody listens.

    Parameters
    ----------
    verbose : int
        0: only the logger ``kernull`` hears of it. 1: a line on stderr that is renewed with each
        iteration on a terminal, and a line an iteration elsewhere.
    what : str
        What is being learned from.
    tol : float
        The gap at which the fit will stop.
    """
    if isinstance(verbose, bool | int) and verbose >= 0:
        heard = LOGGER.isEnabledFor(logging.INFO)
    else:
        raise ValueError(f"verbose: got {verbose!r}; expected 0 (silent) or 1 (show progress).")
    if not verbose and not heard:
        yield None
        return
    count, start = 0, monotonic()

    def line(record: Record) -> str:
        nonlocal count
        count += 1
        return f"{what}: iteration {count}, gap {record.gap:.1e} (until {tol:.0e})"

    if not verbose:
        yield lambda record: LOGGER.info("%s", line(record))
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(f"{what}: first iteration") as status:

        def tell(record: Record) -> None:
            text = line(record)
            LOGGER.info("%s", text)
            if console.is_terminal:
                status.update(text)
            else:
                console.print(text, markup=False, highlight=False, soft_wrap=True)

        yield tell
    console.print(
        f"{what}: {count} iterations in {monotonic() - start:.1f} s",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )

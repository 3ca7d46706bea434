"""One BLAS thread while threads of our own do the work.

The number of BLAS threads belongs to the process. Were every caller to limit and restore it by
itself, one that came in while another was inside would take the limit for the usual number, and
restore that at the end: the process would stay at one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

#: Up to so many rows, threads take longer to meet than to work: on a busy machine, far longer.
FEW_ROWS = 600
#: Up to so many rows, this holds for those of BLAS, not for our own, which meet less often.
SOME_ROWS = 5000
#: Threads of our own beside a GPU.
BESIDE_GPU = 8

Part = TypeVar("Part")
Found = TypeVar("Found")

_lock = threading.Lock()
_limit: Any = None
_inside = 0


class _Own(threading.local):
    """What this thread has been told."""

    threads = 0
    """Threads of our own that work is shared among; 0 where nobody has said."""


_own = _Own()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: the first one in limits it, the last one out restores."""
    global _inside
    with _lock:
        if _inside == 0:
            _in_passing(_set)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _in_passing(_limit.restore_original_limits)


@contextmanager
def instead_of_blas() -> Iterator[int]:
    """One BLAS thread, and as many of our own, which it gives, as BLAS would have had."""
    before = _own.threads
    threads = before or blas_threads()
    with one_blas_thread():
        _own.threads = threads
        try:
            yield threads
        finally:
            _own.threads = before


@contextmanager
def threads_for(rows: float, *, beside_gpu: bool = False) -> Iterator[None]:
    """One BLAS thread where there are few rows to work on, and no change elsewhere.

    Threads of our own stay as many where they pay: BLAS threads, those of numpy and those of scipy,
    spin for a while when their work is done, in the way of whoever is next. Beside a GPU, BLAS has
    little to work on whatever the number of rows, and few threads of our own serve best.
    """
    if rows > SOME_ROWS and not beside_gpu:
        yield
        return
    with instead_of_blas() as usual:
        _own.threads = 1 if rows <= FEW_ROWS else min(usual, BESIDE_GPU) if beside_gpu else usual
        yield


def in_threads(work: Callable[[Part], Found], parts: Sequence[Part]) -> list[Found]:
    """Do each part of some work, in as many threads as BLAS would take, this one among them.

    Work that is shared out again within a part is done in its thread. An exception, an interrupt
    among them, leaves out the parts that were not begun.
    """
    before = _own.threads
    threads = min(before or blas_threads(), len(parts))
    if threads <= 1:
        return [work(part) for part in parts]
    todo, found, failed = iter(enumerate(parts)), dict[int, Found](), list[BaseException]()

    def take_turns() -> None:
        _own.threads = 1
        try:
            for number, part in todo:
                found[number] = work(part)
                if failed:
                    return
        except BaseException as error:
            failed.append(error)

    # A pool would start one thread more, and take longer to hand out parts than some of them take.
    others = [threading.Thread(target=take_turns) for _ in range(threads - 1)]
    with one_blas_thread():
        for thread in others:
            thread.start()
        try:
            take_turns()
            for thread in others:
                thread.join()
        except BaseException as error:  # an interrupt of the waiting
            failed.append(error)
        finally:
            _own.threads = before
    if failed:
        raise failed[0]
    return [found[number] for number in range(len(parts))]


def blas_threads() -> int:
    """Threads that BLAS would take now."""
    found = [lib.num_threads for lib in _libraries().lib_controllers if lib.user_api == "blas"]
    return max(found, default=1)


@cache  # looking for libraries takes a millisecond
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def _set() -> None:
    global _limit
    _limit = _libraries().limit(limits=1, user_api="blas")


def _in_passing(call: Callable[[], None]) -> None:
    # threadpoolctl lets one living thread at a time change the number, and ignores the others:
    # the last one out could not undo what the first one in did. One that is over bars nobody.
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

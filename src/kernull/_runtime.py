"""What the process is asked for: threads of BLAS and of our own, and files written whole.

The number of BLAS threads belongs to the process. It is one while any thread is inside a `Limit`,
and what it was once the last one is out. An interrupt may come at any instruction, so a limit is
named twice where it is used::

    with one_blas_thread() as limit, limit:
        ...

Each name leaves it once more: if an interrupt stops the first `__exit__` (at its first instruction,
where Ctrl-C during a long product arrives), the second restores. Threads of their own change the
number, since Python interrupts the main thread alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

from threadpoolctl import ThreadpoolController

# -- One BLAS thread while threads of our own do the work. --


#: Rows up to which threads take longer to meet than to work: on a busy machine, far longer.
FEW_ROWS = 600
#: Rows up to which this holds for threads of BLAS, not for our own, which meet less often.
MANY_ROWS = 5000
#: Threads of our own where a GPU does the rest.
BESIDE_GPU = 8

Part = TypeVar("Part")
Answer = TypeVar("Answer")

_lock = threading.Lock()
#: Limits that threads are inside.
_inside: set[Limit] = set()
#: What restores the number of BLAS threads, while it is limited.
_restorer: Any = None
#: The last thread that changed the number.
_changer: threading.Thread | None = None


class _Local(threading.local):
    limit: Limit | None = None
    """The innermost limit that this thread is inside."""


_local = _Local()


class Limit:
    """One BLAS thread, from `__enter__` to `__exit__`; see the text of the module.

    Parameters
    ----------
    threads : int, optional
        Threads of our own that `in_threads` takes inside; by default those of the limit around.
    active : bool, default=True
        Whether to limit anything.
    """

    def __init__(self, threads: int | None = None, *, active: bool = True) -> None:
        self.outer = _local.limit
        inherited = self.outer.threads if self.outer else None
        self.threads: int | None = threads or inherited
        self.active, self.left = active, True

    def __enter__(self) -> Self:
        try:
            if self.active and self.left:
                self.left = False
                _inside.add(self)
                _local.limit = self
                if self.outer is None:  # inside another, the number is one already
                    _change_in_passing()
            return self
        except BaseException:
            try:
                self.__exit__()
            finally:
                self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        """Restore all; may be interrupted anywhere, and called again."""
        if self.left:
            return
        _local.limit = self.outer
        _inside.discard(self)
        if self.outer is None:
            _change_in_passing()
        self.left = True


def _change_in_passing() -> None:
    """Limit or restore the number of BLAS threads, whichever is due."""
    thread = threading.Thread(target=_change)
    thread.start()
    thread.join()


def _change() -> None:
    global _restorer, _changer
    with _lock:
        # threadpoolctl lets one living thread at a time change the number, and ignores the others.
        if _changer is not None:
            _changer.join()
        _changer = threading.current_thread()
        if _inside and _restorer is None:
            _restorer = _libraries().limit(limits=1, user_api="blas")
        elif not _inside and _restorer is not None:
            _restorer.restore_original_limits()
            _restorer = None


def one_blas_thread(active: bool = True) -> Limit:
    """Limit BLAS to one thread, where ``active``: the first in limits, the last out restores."""
    return Limit(active=active)


def threads_for(rows: float, *, beside_gpu: bool = False) -> Limit:
    """One BLAS thread where there are few rows to work on, and no change elsewhere.

    Threads of our own stay as many where they pay: BLAS threads, those of numpy and those of scipy,
    spin for a while when their work is done, in the way of whoever is next. Beside a GPU, BLAS has
    little to work on whatever the number of rows, and few threads of our own serve best.
    """
    if rows > MANY_ROWS and not beside_gpu:
        return Limit(active=False)
    usual = _our_threads()
    return Limit(1 if rows <= FEW_ROWS else min(usual, BESIDE_GPU) if beside_gpu else usual)


def in_threads(
    work: Callable[[Part], Answer], parts: Sequence[Part], threads: int | None = None
) -> list[Answer]:
    """Results of a function for each part, in order, by threads of which this one is one.

    Parameters
    ----------
    work : callable
        What it shares out in turn is done in its thread.
    parts : sequence
    threads : int, optional
        As many as BLAS would take by default.

    Notes
    -----
    An exception, an interrupt among them, leaves out the parts that were not begun.
    """
    threads = min(threads or _our_threads(), len(parts))
    if threads <= 1:
        return [work(part) for part in parts]
    todo, answers, failed = iter(enumerate(parts)), dict[int, Answer](), list[BaseException]()

    def take_turns() -> None:
        try:
            for number, part in todo:
                answers[number] = work(part)
                if failed:
                    return
        except BaseException as error:
            failed.append(error)

    def help_out() -> None:
        _local.limit = limit
        take_turns()

    # A pool would start one thread more, and take longer to hand out parts than some of them take.
    others = [threading.Thread(target=help_out) for _ in range(threads - 1)]

    def together() -> None:  # the body of a `with` that ends in `except` is not covered to its end
        try:
            for thread in others:
                thread.start()
            take_turns()
            for thread in others:
                thread.join()
        except BaseException as error:  # an interrupt of the waiting
            failed.append(error)

    with Limit(1) as limit, limit:
        together()
    if failed:
        raise failed[0]
    return [answers[number] for number in range(len(parts))]


def _our_threads() -> int:
    """Threads that this thread shares work among."""
    limit = _local.limit
    return (limit.threads if limit else None) or blas_threads()


def blas_threads() -> int:
    """Threads that BLAS would take now."""
    numbers = [lib.num_threads for lib in _libraries().lib_controllers if lib.user_api == "blas"]
    return max(numbers, default=1)


@cache  # looking for libraries takes a millisecond
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


# -- Files that are there whole or not at all, whatever happens while they are written. --


#: Bytes of a file's name that the name of its temporary file repeats.
LONGEST_STEM = 200


def write_whole(data: bytes, path: Path) -> None:
    """Write bytes to a file; errors name that file, not a temporary one."""
    with errors_name(path), atomic_write(path) as part:
        part.write_bytes(data)


@contextlib.contextmanager
def errors_name(path: str | Path) -> Iterator[None]:
    """Let errors of the system name a file, not the temporary one in its place."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A temporary file next to ``path``, which takes its name when all went well.

    On any error, Ctrl-C included, the temporary file goes and ``path`` stays as it was. A link
    stays a link to what is written; a pipe or a device gets the content.
    """
    final = Path(path).resolve()
    special = final.exists() and not final.is_file() and not final.is_dir()
    mode = None if special else _permissions(final)
    part = _private_file() if special else _temporary_name(final)
    try:  # from here on: a signal may come just when the file is there
        if not special:
            # The system itself takes the umask off the mode of new files; asking for the umask
            # would mean to set it, for all threads, and to set it back.
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            os.close(os.open(part, flags, 0o666 if mode is None else 0o600))
        yield part
        if special:
            with part.open("rb") as source, final.open("wb") as target:
                shutil.copyfileobj(source, target)
            return
        _flush(part)
        if mode is not None:
            os.chmod(part, mode)
        os.replace(part, final)
    finally:  # there is none left where it took its name
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # folders cannot be flushed everywhere
        _flush(final.parent)


def _private_file() -> Path:
    """An empty file in the system's folder for temporary files, readable by this user alone."""
    handle, name = tempfile.mkstemp(suffix=".part")
    os.close(handle)
    return Path(name)


def _permissions(path: Path) -> int | None:
    """Those of a file that exists; None of any other."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    return None


def _temporary_name(final: Path) -> Path:
    """A name in the same folder that no other process takes."""
    # Names may have 255 bytes, and the final one may take them all.
    stem = os.fsencode(final.name)[:LONGEST_STEM].decode("utf-8", "ignore")
    return final.with_name(f".{stem}.{secrets.token_hex(8)}.part")


def _flush(path: Path) -> None:
    """Wait until the disk has a file, or what a folder lists."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Talking to the terminal: progress, warnings and errors on stderr, results on stdout."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress

from kernull._text import visible
from kernull.errors import AdviceWarning

P = ParamSpec("P")
R = TypeVar("R")


def show(text: str, *, err: bool = False, colour: str | None = None) -> None:
    """Print text; names in files cannot make the terminal obey them."""
    typer.secho(visible(text, keep="\n\t"), err=err, fg=colour)


def note(text: str, quiet: bool) -> None:
    """Print something that is no result on stderr, unless asked to be quiet."""
    if text and not quiet:
        show(in_options(text), err=True)


#: Parameters that have an option of another form than ``--set NAME=VALUE``.
OPTION_OF = {
    "absent": "drop", "decimal": "decimal", "empty": "empty", "encoding": "encoding",
    "false_alarm_rate": "false-alarm-rate", "group": "group", "id": "id", "kinds": "kind",
    "missing_views": "missing-view", "sep": "sep", "sheet": "sheet", "task": "task",
    "views": "views",
}  # fmt: skip
#: Advice of the library, and how the command line writes it.
_ADVICE = (
    (r"kinds=\{(.+?): 'left out'\}", r"--drop \1"),
    (r"kinds=\{'(.+?)': '(\w+)'\}", r"--kind '\1=\2'"),
    (r"\(kinds= can", "(--drop can"),
    (r"\bempty=\[(.+?)\]", r"--empty \1"),
    (r"To do without, pass absent=.* of a Judge", "To do without, use --drop NAME"),
    (r"\b(decimal|encoding|sheet)='(.+?)'", r"--\1 \2"),
    (r"\b(encoding|sheet)=(?=[ )])", r"--\1"),
    (r"\b(missing|calibration|decision|scaling|solver|storage)='(.+?)'", r"--set \1=\2"),
    (r": empty: no cell", ": --empty: no cell"),
    (r"^X: ", ""),  # the table at hand
    (r"(?<![\w-])false_alarm_rate=", "--false-alarm-rate "),
    (r"(?<![\w-])false_alarm_rate\b", "--false-alarm-rate"),
)


def in_options(message: Warning | str) -> str:
    """A message of the library with options instead of parameters.

    Where an option is no parameter by another name, the advice is another: an `AdviceWarning`
    knows both.

    Examples
    --------
    >>> in_options("set what it is: kinds={'a b': 'category'}, or use missing='impute'")
    "set what it is: --kind 'a b=category', or use --set missing=impute"
    >>> in_options(AdviceWarning("X: alike; false_alarm_rate lies.", "groups=g", "Try --stretch 9"))
    'alike; --false-alarm-rate lies. Try --stretch 9'
    """
    text = message.in_options if isinstance(message, AdviceWarning) else str(message)
    for python, option in _ADVICE:
        text = re.sub(python, option, text)
    return text


def finite(value: Any) -> Any:
    """What JSON can hold: NaN becomes null, and infinite numbers become text."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(json.dumps(finite(value), indent=2, default=str) + "\n")


def progress(quiet: bool) -> Progress:
    """Progress on stderr, only where that is a terminal and nobody asked to be quiet."""
    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    return Progress(console=console, transient=True, disable=hidden)


#: The input cannot be used, or the output cannot be written.
DATA = 1
#: The command line itself is wrong: an option, a name, a file that is not there.
USAGE = 2


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Turn errors of a command into one line on stderr and an exit code."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _warnings_in_one_line(bool(kwargs.get("quiet", False))), _terminable():
                return function(*args, **kwargs)
        except typer.Exit:
            raise
        except BrokenPipeError:  # the reader has seen enough
            # Python flushes stdout once more at exit; let that go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt as stop:
            _complain("stopped; no file was left half-written.")
            raise typer.Exit(128 + int(stop.args[0] if stop.args else signal.SIGINT)) from None
        except Exception as error:
            if os.environ.get("KERNULL_DEBUG"):
                traceback.print_exc()
            raise typer.Exit(_report(error)) from None

    return guarded


def _report(error: Exception) -> int:
    """Print an error in one line, with options for parameters, and give its exit code."""
    text, values = str(error), isinstance(error, ValueError)
    if not isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError):
        text = f"unexpected {type(error).__name__}: {text} (KERNULL_DEBUG=1 shows where)."
    name, _, rest = text.partition(": ")
    text = f"--{OPTION_OF[name]}: {rest}" if values and name in OPTION_OF else text
    _complain(text or type(error).__name__)
    named = values and text.startswith(("--", "view "))
    return USAGE if named or isinstance(error, FileNotFoundError | IsADirectoryError) else DATA


def _complain(text: str) -> None:
    line = " ".join(in_options(text).split())  # one line, whatever the library wrote
    with contextlib.suppress(OSError):  # the terminal may be gone
        show(f"kernull: {line}", err=True, colour="red")


#: Warnings that a promise is not kept, of the rate or the weights: --quiet does not hide them. By
#: name, since `kernull --help` should not load scikit-learn.
_PROMISES = {
    "CannotFlagWarning", "ConvergenceWarning", "NearCopiesWarning", "TooFewRowsWarning",
    "TrainingRowsWarning",
}  # fmt: skip


@contextlib.contextmanager
def _warnings_in_one_line(quiet: bool) -> Iterator[None]:
    shown = set()  # Python forgets what it showed once wherever filters change

    def warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = f"warning: {in_options(message)}"
        promise = _PROMISES.intersection(base.__name__ for base in category.__mro__)
        if text not in shown and (promise or not quiet):
            show(text, err=True, colour="yellow")
        shown.add(text)

    with warnings.catch_warnings():
        warnings.simplefilter("once")
        for category in (DeprecationWarning, FutureWarning, ResourceWarning, RuntimeWarning):
            warnings.simplefilter("ignore", category)
        # The command line finds columns by name itself and passes plain arrays.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = warn
        yield


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let ``kill``, and a terminal that closes, unwind like Ctrl-C, so that temporary files go."""

    def stop(number: int, _: Any) -> None:
        raise KeyboardInterrupt(number)

    before = {}
    try:
        for number in (getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks
                before[number] = signal.signal(number, stop)
    except ValueError:  # not the main thread: somebody else's business
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Talking to the terminal: progress, warnings and errors on stderr, results on stdout."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kernull._text import visible
from kernull.errors import (
    AdviceWarning,
    CannotFlagWarning,
    NearCopiesWarning,
    TooFewRowsWarning,
    TrainingRowsWarning,
)

P = ParamSpec("P")
R = TypeVar("R")


class SafeConsole(Console):
    """A console that shows what it is given: names in files cannot make the terminal obey them."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Render text with control characters written as escapes."""
        return super().render_str(visible(text, keep="\n\t"), **options)

    def on_broken_pipe(self) -> None:
        """Leave it to the command, which knows that a reader may stop early."""
        raise BrokenPipeError


def stdout() -> Console:
    """Console for results; made anew, since tests and pipes replace sys.stdout."""
    return SafeConsole(highlight=False, emoji=False)


def stderr() -> Console:
    """Console for everything that is not a result."""
    return SafeConsole(stderr=True, highlight=False, emoji=False)


def note(text: str, quiet: bool) -> None:
    """Say something on stderr, unless asked to be quiet."""
    if not quiet:
        stderr().print(in_options(text), markup=False, soft_wrap=True)


#: Parameters as messages of the library name them, and the options that set them.
_OPTIONS = (
    (r"kinds=\{(.+?): 'left out'\}", r"--drop \1"),
    (r"kinds=\{'(.+?)': '(\w+)'\}", r"--kind '\1=\2'"),
    (r"\bempty=\[(.+?)\]", r"--empty \1"),
    (
        r"\b(missing|decimal|encoding|sheet|calibration|decision|scaling|solver|storage)='(.+?)'",
        r"--\1 \2",
    ),
    (r"\b(encoding|sheet)=(?=[ )])", r"--\1"),
    (r": empty: no cell", ": --empty: no cell"),
    (r" \(or raise max_categories\)", ""),
    (r"To do without, pass absent=.* of a Judge", "To do without, use --drop NAME"),
    (r"^X: ", ""),  # the table at hand
    (r"(?<![\w-])false_alarm_rate=", "--false-alarm-rate "),
    (r"(?<![\w-])false_alarm_rate\b", "--false-alarm-rate"),
)


def in_options(said: Warning | str) -> str:
    """A message of the library with options instead of parameters.

    Where an option is no parameter by another name, the advice is another: an `AdviceWarning`
    knows both.

    Examples
    --------
    >>> in_options("say what it is: kinds={'a b': 'category'}, or use missing='impute'")
    "say what it is: --kind 'a b=category', or use --missing impute"
    >>> in_options(AdviceWarning("X: alike; false_alarm_rate lies.", "groups=g", "Try --stretch 9"))
    'alike; --false-alarm-rate lies. Try --stretch 9'
    """
    text = said.in_options if isinstance(said, AdviceWarning) else str(said)
    for python, option in _OPTIONS:
        text = re.sub(python, option, text)
    return text


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, default=str) + "\n")


def progress(quiet: bool) -> Progress:
    """Progress on stderr, only where that is a terminal and nobody asked to be quiet."""
    console = stderr()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Turn errors of a command into one line on stderr and an exit code."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        ended: list[int] = []
        try:
            with _warnings_in_one_line(bool(kwargs.get("quiet", False))), _terminable(ended):
                return function(*args, **kwargs)
        except typer.Exit:
            raise
        except BrokenPipeError:  # the reader has seen enough
            # Python flushes stdout once more at exit; let that go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            _complain("stopped; no file was left half-written.")
            raise typer.Exit(128 + ended[0] if ended else INTERRUPTED) from None
        except CliError as error:
            _complain(str(error))
            raise typer.Exit(128 + ended[0] if ended else error.code) from None
        except Exception as error:
            if os.environ.get("KERNULL_DEBUG"):
                stderr().print_exception()
            kind, said = type(error).__name__, str(error)
            if not isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError):
                said = f"unexpected {kind}: {said} (KERNULL_DEBUG=1 shows where)."
            _complain(said or kind)
            no_such_file = isinstance(error, FileNotFoundError | IsADirectoryError)
            raise typer.Exit(USAGE if no_such_file else DATA) from None

    return guarded


def _complain(text: str) -> None:
    line = " ".join(in_options(text).split())  # one line, whatever the library said
    with contextlib.suppress(OSError):  # the terminal may be gone
        stderr().print("[bold red]kernull:[/] ", end="", markup=True)
        stderr().print(line, markup=False, soft_wrap=True)


#: Warnings that a promise is not kept, of the rate or the weights: --quiet does not hide them.
_PROMISES = (
    CannotFlagWarning,
    NearCopiesWarning,
    TooFewRowsWarning,
    TrainingRowsWarning,
)


def _is_of_a_promise(category: type[Warning]) -> bool:
    # Imported here, where a warning has come up: `kernull --help` should not load scikit-learn.
    from sklearn.exceptions import ConvergenceWarning

    return issubclass(category, (*_PROMISES, ConvergenceWarning))


@contextlib.contextmanager
def _warnings_in_one_line(quiet: bool) -> Iterator[None]:
    shown = set()  # Python forgets what it showed once wherever filters change

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = f"warning: {in_options(message)}"
        if text not in shown and (not quiet or _is_of_a_promise(category)):
            stderr().print(text, markup=False, soft_wrap=True, style="yellow")
        shown.add(text)

    with warnings.catch_warnings():
        warnings.simplefilter("once")
        for category in (DeprecationWarning, FutureWarning, ResourceWarning, RuntimeWarning):
            warnings.simplefilter("ignore", category)
        # The command line finds columns by name itself and passes plain arrays.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = show
        yield


#: Signals that ask to end: of Ctrl-C, of `kill`, and of a terminal that was closed.
_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextlib.contextmanager
def _terminable(ended: list[int]) -> Iterator[None]:
    """Let signals that end the process unwind like Ctrl-C, so that temporary files go.

    They are noted in ``ended``.
    """

    def stop(number: int, _: Any) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    before = {}
    try:
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks
                before[number] = signal.signal(number, stop)
    except ValueError:  # not the main thread: somebody else's business
        yield
        return
    try:
        yield
    except (CliError, typer.Exit):
        raise
    except Exception as error:
        if ended:  # NumPy tells an interrupt of some comparisons as an error of its own
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


#: The input cannot be used, or the output cannot be written.
DATA = 1
#: The command line itself is wrong: an option, a name, a file that is not there.
USAGE = 2
#: Ctrl-C; of another signal that asks to end, 128 and its number.
INTERRUPTED = 130


class CliError(Exception):
    """What went wrong, in one line that says what to do."""

    code = DATA


class DataError(CliError):
    """A file was found and cannot be used."""


class UsageError(CliError):
    """The command was called wrongly."""

    code = USAGE


class StoppedError(CliError):
    """Somebody stopped the command after some results were out."""

    code = INTERRUPTED

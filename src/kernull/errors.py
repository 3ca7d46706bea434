"""Errors and warnings that kernull raises, all in one place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from kernull._text import visible


class InvalidKernelError(ValueError):
    """A kernel stack is not a stack of symmetric positive semidefinite matrices."""


class MemoryLimitError(MemoryError):
    """A dense allocation was planned that does not fit the memory limit."""


class MissingCapabilityError(TypeError):
    """A solver was asked to run on a problem or a ball that lacks what it needs."""


class MissingDependencyError(ImportError):
    """An optional dependency (an extra) is needed and not installed."""


class _FileError(ValueError):
    """Its message quotes what a file says, so it is shown with control characters as escapes."""

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n")


class ModelFileError(_FileError):
    """A model file is damaged, not of kernull's format, too new, or does not make sense."""


class TableError(_FileError):
    """A table cannot be used; the message says which file, column and row."""


class ClusterError(RuntimeError):
    """A cluster has no workers, or lost them all for good."""


class AdviceWarning(UserWarning):
    """A warning that says what to do: in Python, and by the options of the command line.

    Parameters
    ----------
    fact : str
        What was found.
    python, options : str
        What to do about it, by arguments and by options. ``in_options`` is the message with these.

    Examples
    --------
    >>> warning = AdviceWarning("X: too long.", "Pass short=True.", "Use --short.")
    >>> str(warning), warning.in_options
    ('X: too long. Pass short=True.', 'X: too long. Use --short.')
    """

    # Defaults, so that it can be pickled: exceptions are made anew from their message.
    def __init__(self, fact: str, python: str = "", options: str = "") -> None:
        super().__init__(f"{fact} {python}".strip())
        self.in_options = f"{fact} {options}".strip()


class ApproximationWarning(UserWarning):
    """Kernels were approximated because exact ones would cost too much."""


class CannotFlagWarning(UserWarning):
    """No row whatever would be flagged by the model."""


class ConstantViewWarning(UserWarning):
    """A view is constant on the training rows: it has no kernel, and another reads its columns."""


class DominantViewWarning(UserWarning):
    """A view takes most of the weight, or hardly separates one row from another."""


class OutlierLabelsWarning(UserWarning):
    """Rows that y marks as outliers are learned from like all others."""


class GapsWarning(UserWarning):
    """Cells of a table were empty, and were filled in from the other columns."""


class OneKernelWarning(AdviceWarning):
    """The paper's rule was asked for, and there is one kernel: nothing is weighed."""


class NearCopiesWarning(AdviceWarning):
    """Rows are copies of each other, or alike the row before or after, as readings in time are."""


class SuspectRowsWarning(AdviceWarning):
    """Training rows stand apart from all others, and no share of outliers was named."""


class TrainingRowsWarning(AdviceWarning):
    """The rows to judge are those that the model learned from: none of them is flagged."""


class TooFewRowsWarning(UserWarning):
    """There are too few rows: for the false-alarm rate asked for, or to begin a model with."""


class ZeroProjectionWarning(UserWarning):
    """No kernel separates the training rows from the origin: every projection is zero."""


def need(module: str, otherwise: str) -> Any:
    """An optional dependency, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(otherwise) from error


# -- Warnings of kernull that a caller inside the package does not pass on, or reads itself. --


_collected: ContextVar[tuple[tuple[tuple[type[Warning], ...], list[str]], ...]] = ContextVar(
    "collected", default=()
)


@contextmanager
def collected(*categories: type[Warning]) -> Iterator[list[str]]:
    """Put what `warn` says in these categories into a list instead, in this thread.

    Examples
    --------
    >>> from kernull.errors import collected, warn
    >>> with collected(UserWarning) as messages:
    ...     warn("the caller reads this", UserWarning)
    >>> messages
    ['the caller reads this']
    """
    messages: list[str] = []
    token = _collected.set((*_collected.get(), (categories, messages)))
    try:
        yield messages
    finally:
        _collected.reset(token)


def warn(
    message: str | Warning, category: type[Warning] = UserWarning, *, stacklevel: int = 1
) -> None:
    """`warnings.warn`, unless collected; ``stacklevel`` 1 is the caller."""
    category = type(message) if isinstance(message, Warning) else category
    for wanted, messages in reversed(_collected.get()):
        if issubclass(category, wanted):
            messages.append(str(message))
            return
    warnings.warn(message, category, stacklevel=stacklevel + 1)

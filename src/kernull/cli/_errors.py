"""Errors that the command line shows as one line, and the exit codes they carry."""

from __future__ import annotations

__all__ = ["DATA", "INTERRUPTED", "USAGE", "CliError", "DataError", "StoppedError", "UsageError"]

#: The input cannot be used, or the output cannot be written.
DATA = 1
#: The command line itself is wrong: an option, a name, a file that is not there.
USAGE = 2
#: Ctrl-C, or a signal that asks to end.
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

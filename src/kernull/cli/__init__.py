"""The command line: from a file to reasons in one command.

``kernull --help`` lists the commands. Exit codes: 0 done, 1 the input cannot be used or the output
cannot be written, 2 the command was called wrongly, 130 stopped by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line (the ``kernull`` command).

    Ctrl-C while Python still imports what a command needs ends it without a word.
    """
    try:
        # Imported here: `import kernull.cli` alone should not pull in typer.
        from kernull.cli._app import app

        app(prog_name="kernull")
    except KeyboardInterrupt:
        raise SystemExit(130) from None

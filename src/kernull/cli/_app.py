"""The commands, all thin: read options, call the library, show the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kernull import _removed
from kernull.cli import _learn, _rows
from kernull.cli._console import command
from kernull.cli._options import ungrouped


class _Commands(TyperGroup):
    """The commands, and errors for those that were removed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in _removed.COMMANDS:
            ctx.fail(_removed.message(f"kernull {args[0]}"))
        return super().resolve_command(ctx, args)


class _Command(TyperCommand):
    """A command, with errors for options that were removed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for parameter in self.params for name in parameter.opts}
        for option in (word.partition("=")[0] for word in args):
            if option in _removed.OPTIONS and option not in known:
                ctx.fail(_removed.instead(option, _removed.OPTIONS[option]))
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="kernull",
    cls=_Commands,
    help="Learn what normal looks like from several views of the same things, and "
    "find what is not.",
    epilog="Start with: kernull fit train.csv -o model.kernull, then kernull score model.kernull "
    "new.csv. Exit codes: 0 done, 1 input or output cannot be used, 2 called wrongly, "
    "130 stopped by Ctrl-C, 143 by SIGTERM.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from kernull import __version__

        typer.echo(f"kernull {__version__}")
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learn what normal looks like from several views, and find what is not."""


_EXAMPLES: dict[Callable[..., None], str] = {
    _learn.fit: "kernull fit train.csv -o model.kernull --view 'colour=col_*'",
    _rows.score: "kernull score model.kernull new.csv -o scores.csv",
    _rows.explain: "kernull explain model.kernull new.csv --row 17",
    _rows.report: "kernull report model.kernull new.csv -o report.html",
    _rows.evaluate: "kernull evaluate model.kernull test.csv --label class --normal good",
    _learn.info: "kernull info model.kernull --json",
}
for _function, _example in _EXAMPLES.items():
    app.command(cls=_Command, epilog=f"Example: {_example}")(command(ungrouped(_function)))

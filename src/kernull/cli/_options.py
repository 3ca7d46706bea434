"""Options that several commands share, one by one and in groups.

A group is a dataclass, and a command takes it as one argument: `ungrouped` shows its fields to
typer as single options.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

if TYPE_CHECKING:
    from kernull.tables import TextFormat

#: What an option holds that may be left out: a text, several, or a number.
Text = str | None
Texts = list[str] | None
Real = float | None

ModelFile = Annotated[str, Argument(metavar="MODEL", help="A model file.")]
DataFile = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="CSV, JSON lines, Excel (also .ods) or Parquet; - for standard input.",
    ),
]
RowNames = Annotated[Text, Option("--id", metavar="COLUMN", help="Column that names the rows.")]
Label = Annotated[Text, Option(metavar="COLUMN", help="Column of labels.")]
Normal = Annotated[
    Text, Option(metavar="VALUE", help="The label of normal rows (default: 1 of 1/-1).")
]
Empty = Annotated[
    Texts,
    Option(
        metavar="TEXT",
        help="A text or number that stands for an empty cell, as NA, n/a, - and so on do. "
        "Repeat it.",
    ),
]
Drop = Annotated[Texts, Option(metavar="PATTERN", help="Columns to leave out. Repeat it.")]
Rate = Annotated[Real, Option(help="Share of normal rows to flag: 0.05, or that of the fit.")]
Json = Annotated[bool, Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[
    bool,
    Option(
        "--quiet",
        "-q",
        help="Print results, errors and warnings that a rate cannot be kept, and nothing else.",
    ),
]


@dataclass(frozen=True)
class FileForm:
    """How files are written."""

    sep: Annotated[
        Text, Option(metavar="CHAR", help="What separates cells: ',' ';' tab. Detected.")
    ] = None
    decimal: Annotated[Text, Option(metavar="CHAR", help="Decimal mark: '.' or ','.")] = None
    encoding: Annotated[
        Text, Option(metavar="NAME", help="Of text files: utf-8, cp1252, ... Detected.")
    ] = None
    sheet: Annotated[Text, Option(metavar="NAME", help="Of Excel files; the first one.")] = None

    def text(self) -> TextFormat:
        """Form of text files for `kernull.tables`, where "tab" is a tab."""
        # Imported here: `kernull --help` should not pull in NumPy.
        from kernull.tables import TextFormat

        sep = {"tab": "\t", "\\t": "\t"}.get(self.sep or "", self.sep)
        return TextFormat(sep, self.decimal, self.encoding)


@dataclass(frozen=True)
class RowsToJudge(FileForm):
    """How new rows are written, what they may lack, and how many of them are flagged."""

    empty: Empty = None
    drop: Drop = None
    missing_view: Annotated[
        Texts, Option(metavar="VIEW", help="A view to do without. Repeat it.")
    ] = None
    false_alarm_rate: Rate = None


@dataclass(frozen=True)
class Parameters:
    """Parameters of a `kernull.Judge`, of its table and of its model."""

    config: Annotated[
        Text, Option(metavar="FILE", help="TOML file of parameters; see the guide.")
    ] = None
    set: Annotated[
        Texts,
        Option(
            metavar="NAME=VALUE",
            help="A parameter of the model or the table, such as p=4, decision=sum, "
            "contamination=0.1, dates=parts, missing=error. Repeat it.",
        ),
    ] = None
    paper: Annotated[
        bool,
        Option("--paper", help="The rule of the paper, arXiv:2008.08642, as `kernull.PAPER`."),
    ] = False
    views: Annotated[
        Text,
        Option(help="features: one view per column; auto: columns that belong together."),
    ] = None
    view: Annotated[
        Texts,
        Option(
            metavar="NAME=PATTERN",
            help="A view by name patterns: 'colour=col_*'. Repeat it.",
        ),
    ] = None
    kind: Annotated[
        Texts,
        Option(
            metavar="PATTERN=KIND",
            help="What columns are: number, category, date, identifier, left out. Repeat it.",
        ),
    ] = None
    drop: Drop = None
    empty: Empty = None
    false_alarm_rate: Rate = None
    id: RowNames = None
    group: Annotated[
        Text, Option(metavar="COLUMN", help="Rows of one value are left out together.")
    ] = None
    task: Annotated[
        Text, Option(metavar="COLUMN", help="Rows of one value are judged by each other.")
    ] = None


def ungrouped(function: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it, with the options of its groups one by one."""
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for name, option in signature.parameters.items():
        if is_dataclass(option.annotation):
            groups[name] = option.annotation
            options += inspect.signature(groups[name], eval_str=True).parameters.values()
        else:
            options.append(option)

    @functools.wraps(function)
    def call(**words: Any) -> None:
        for name, group in groups.items():
            words[name] = group(**{field.name: words.pop(field.name) for field in fields(group)})
        function(**words)

    by_name = [option.replace(kind=option.KEYWORD_ONLY) for option in options]
    vars(call)["__signature__"] = signature.replace(parameters=by_name)  # typer asks for it
    call.__annotations__ = {option.name: option.annotation for option in by_name}
    return call

"""Options that several commands share, one by one and in groups.

A group is a dataclass, and a command takes it as one argument: `ungrouped` shows its fields to
typer as options of their own.
"""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from kernull.cli._console import DataError, UsageError, command

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
Label = Annotated[Text, Option(metavar="COLUMN", help="Column that says what is normal.")]
Normal = Annotated[
    Text, Option(metavar="VALUE", help="The label of normal rows (default: 1 of 1/-1).")
]
Missing = Annotated[Text, Option(metavar="HOW", help="Empty cells: impute or error.")]
Empty = Annotated[
    Texts,
    Option(
        metavar="TEXT",
        help="A text or number that stands for an empty cell, beside NA, n/a, - and so on. "
        "Repeat it.",
    ),
]
Drop = Annotated[Texts, Option(metavar="PATTERN", help="Columns to leave out. Repeat it.")]
Json = Annotated[bool, Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[
    bool,
    Option(
        "--quiet",
        "-q",
        help="Say nothing but results, errors and warnings that a rate cannot be kept.",
    ),
]


#: Words that stand for views.
WORDS = ("features", "auto")
#: What a file of options may have beside options: tables, and what adds to them.
TABLES = ("views", "kinds", "drop", "encode")


def read_toml(file: str, option: str) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{option}: {file}: no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{option}: {file}: is not a TOML file ({error}).") from None


def _defaults(context: Context, file: Any) -> Any:
    """Make options of a TOML file, at its top or under ``[fit]``, defaults; give its tables."""
    if file is None:
        return None
    flat = read_toml(file, "--config")
    section = flat.pop("fit", {})
    flat |= section if isinstance(section, dict) else {}
    known = {str(option.name): option for option in context.command.params}
    tables = {n: flat.pop(n) for n in TABLES if n in flat and flat[n] not in WORDS}
    for name in flat:
        if name not in known:
            expected = ", ".join(sorted(known.keys() - {"data", "config"}))
            raise UsageError(f"--config: {file}: no option {name!r}; expected some of {expected}.")
    # As words of the command line, which typer reads and checks.
    words = {n: list(map(str, v if isinstance(v, list) else [v])) for n, v in flat.items()}
    context.default_map = {n: w if known[n].multiple else w[0] for n, w in words.items() if w}
    return tables


Config = Annotated[
    Text,
    Option(
        metavar="FILE", callback=command(_defaults), is_eager=True,
        help="TOML file with any of these options; see the guide.",
    ),
]  # fmt: skip


def _check_share(option: str, value: float | None, most: float = 1.0) -> None:
    if value is not None and (not 0 < value <= most or value == 1):
        hint = f"; {value:g}% is {value / 100:g}" if 1 <= value <= 100 * most else ""
        limit = "below 1" if most == 1 else f"at most {most:g}"
        raise UsageError(f"{option}: got {value:g}; expected a share above 0, {limit}{hint}.")


def check_words(option: str, asked: str | list[str] | None, known: Sequence[str]) -> None:
    """Refuse words that an option does not know, and name the nearest that it does."""
    from kernull.tables.kinds import did_you_mean

    for word in [asked] if isinstance(asked, str) else asked or []:
        if word not in known:
            near, words = did_you_mean(word, known), ", ".join(known)
            raise UsageError(f"--{option}: got {word!r}{near}; expected one of {words}.")


@dataclass(frozen=True)
class FileForm:
    """How files are written."""

    sep: Annotated[
        Text, Option(metavar="CHAR", help="What separates cells: ',' ';' tab. Found out.")
    ] = None
    decimal: Annotated[Text, Option(metavar="CHAR", help="Decimal mark: '.' or ','.")] = None
    encoding: Annotated[
        Text, Option(metavar="NAME", help="Of text files: utf-8, cp1252, ... Found out.")
    ] = None
    sheet: Annotated[Text, Option(metavar="NAME", help="Of Excel files; the first one.")] = None

    def text(self) -> TextFormat:
        """Form of text files for `kernull.tables`, where "tab" is a tab."""
        # Imported here: `kernull --help` should not pull in NumPy.
        from kernull.tables import TextFormat

        sep = {"tab": "\t", "\\t": "\t"}.get(self.sep or "", self.sep)
        try:
            return TextFormat(sep, self.decimal, self.encoding)
        except ValueError as error:
            raise UsageError(f"--{error}") from None


@dataclass(frozen=True)
class Gaps:
    """What may be lacking in new rows."""

    missing: Missing = None
    empty: Empty = None
    drop: Drop = None


@dataclass(frozen=True)
class RowsAsked(FileForm, Gaps):
    """How new rows are written, and what may be lacking in them."""

    missing_view: Annotated[
        Texts, Option(metavar="VIEW", help="A view to do without. Repeat it.")
    ] = None
    false_alarm_rate: Annotated[
        Real, Option(help="Share of normal rows that may be flagged: that of the fit.")
    ] = None

    def __post_init__(self) -> None:
        _check_share("--false-alarm-rate", self.false_alarm_rate)


@dataclass(frozen=True)
class Columns:
    """What the columns of a table to learn from are."""

    views: Annotated[
        Text,
        Option(
            metavar="FILE",
            help='TOML file with \\[views] and lines such as colour = \\["col_*"]; or a word: '
            "'features' for one view per column, 'auto' for columns whose names begin alike.",
        ),
    ] = None
    view: Annotated[
        Texts,
        Option(metavar="NAME=PATTERN", help="A view by name patterns: 'colour=col_*'. Repeat it."),
    ] = None
    kind: Annotated[
        Texts,
        Option(
            metavar="PATTERN=KIND",
            help="What columns are: number, category, date, identifier, left out. Repeat it.",
        ),
    ] = None
    drop: Drop = None
    encode: Annotated[
        Texts, Option(metavar="PATTERN", help="Columns to take as categories. Repeat it.")
    ] = None
    dates: Annotated[Text, Option(help="Dates: drop, or parts (hour of day, day of week).")] = None
    missing: Missing = None
    id: RowNames = None
    group: Annotated[
        Text, Option(metavar="COLUMN", help="Rows of one value are left out together.")
    ] = None
    task: Annotated[
        Text, Option(metavar="COLUMN", help="Rows of one value are judged by each other.")
    ] = None


@dataclass(frozen=True)
class Learning:
    """Parameters of the estimator, and how many rows it sees."""

    paper: Annotated[
        bool | None,
        Option(
            "--paper",
            help="The rule of the paper, arXiv:2008.08642, as `kernull.PAPER`; the other options "
            "change it.",
        ),
    ] = None
    p: Annotated[Real, Option(min=1.0, help="Norm of the weights: 1 sparse, inf uniform.")] = None
    delta: Annotated[Real, Option(help="Ridge relative to the number of rows.")] = None
    width: Annotated[
        list[float] | None, Option(help="Kernel width against the mean distance. Repeat it.")
    ] = None
    kernel: Annotated[
        Texts, Option(help="rbf, laplacian, linear, polynomial, cosine. Repeat it.")
    ] = None
    scaling: Annotated[Text, Option(help="standard, whiten, whiten-raw, quantile, none, auto.")] = (
        None
    )
    solver: Annotated[
        Text,
        Option(
            help="Of the weights: auto, newton, subspace, frank-wolfe, kloft, gradient, "
            "paper, paper-cvx, slim, cutting-plane."
        ),
    ] = None
    decision: Annotated[Text, Option(help="evidence (each kernel calibrated), or sum.")] = None
    false_alarm_rate: Annotated[
        Real, Option(help="Share of normal rows that may be flagged: 0.05.")
    ] = None
    calibration: Annotated[
        Text,
        Option(help="cross (all rows, each left out with its fold), or split (rows held out)."),
    ] = None
    contamination: Annotated[
        Real, Option(help="Share of the training rows that may not be normal; they hardly count.")
    ] = None
    sample: Annotated[
        int | None, Option(min=2, help="Learn from so many rows, drawn at random.")
    ] = None
    stretch: Annotated[
        int | None,
        Option(min=2, help="Rows follow each other in time: leave so many in a row out together."),
    ] = None
    storage: Annotated[Text, Option(help="Kernels: dense, tiled (on the fly), nystroem, auto.")] = (
        None
    )

    def __post_init__(self) -> None:
        from kernull.kernels import KERNELS
        from kernull.mkl.solvers import SOLVERS
        from kernull.views import SCALINGS

        _check_share("--false-alarm-rate", self.false_alarm_rate)
        _check_share("--contamination", self.contamination, 0.5)
        check_words("kernel", self.kernel, sorted(KERNELS))
        check_words("scaling", self.scaling, [*SCALINGS, "auto"])
        check_words("solver", self.solver, ["auto", *SOLVERS])
        check_words("decision", self.decision, ["evidence", "sum"])
        check_words("calibration", self.calibration, ["cross", "split"])
        check_words("storage", self.storage, ["auto", "dense", "tiled", "nystroem"])


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
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    by_name = [option.replace(kind=option.KEYWORD_ONLY) for option in options]
    vars(call)["__signature__"] = signature.replace(parameters=by_name)  # typer asks for it
    call.__annotations__ = {option.name: option.annotation for option in by_name}
    return call

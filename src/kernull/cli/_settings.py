"""Options of ``fit`` from the command line and TOML files."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from kernull import PAPER
from kernull.cli._console import DataError, UsageError
from kernull.cli._options import Columns, FileForm, Learning
from kernull.tables.kinds import did_you_mean, listed, match_columns

#: Options that a file may have, with their types; views and kinds are tables of their own.
_TYPES: dict[str, Any] = {
    **get_type_hints(Learning), **get_type_hints(FileForm),
    "dates": str | None, "missing": str | None, "label": str | None, "normal": str | None,
    "drop": list[str] | None, "encode": list[str] | None, "empty": list[str] | None,
    "id": str | None, "group": str | None, "task": str | None, "views": dict, "kinds": dict,
}  # fmt: skip
#: Words that stand for views.
WORDS = ("features", "auto")
#: Options of a fit that are no parameters of the estimator.
_OTHERS = ("paper", "sample", "stretch")
#: Options that the estimator takes, by the name of its parameter.
PARAMETERS = {field.name: field.name for field in fields(Learning) if field.name not in _OTHERS}
PARAMETERS |= {"kernel": "kernels", "width": "widths"}
#: Options by the parameters that they set, of the estimator and of its table.
_OPTION_OF = {parameter: option for option, parameter in PARAMETERS.items()}
_OPTION_OF |= {"kinds": "kind"} | {n: n for n in ("missing", "dates", "id", "group", "task")}


def by_option(error: ValueError) -> Exception:
    """What the library says of a parameter, as a mistake in the option that set it."""
    text = str(error)
    if "did you mean '" in text and "," in text.partition("did you mean '")[2].partition("'?")[0]:
        text = f"{text} Quote a name that has a comma: --view 'NAME=\"a, b\",c'."
    name, _, rest = text.partition(":")
    if name in _OPTION_OF:
        return UsageError(f"--{_OPTION_OF[name].replace('_', '-')}:{rest}")
    return UsageError(text) if text.startswith("view ") else DataError(text)


def new_judge(settings: dict[str, Any]) -> Any:
    """The judge that the options ask for."""
    from kernull import JointMultiKernelFisherNull, Judge, MultiKernelFisherNull, TableViews

    names = ("views", "kinds", "dates", "missing", "empty")
    table = TableViews(**{n: settings[n] for n in names if settings.get(n) is not None})
    parameters, task = estimator_parameters(settings), settings.get("task")
    family = MultiKernelFisherNull if task is None else JointMultiKernelFisherNull
    unknown = [n for n in parameters if n not in family().get_params()]
    if unknown:
        option = _OPTION_OF[unknown[0]].replace("_", "-")
        raise UsageError(f"--{option}: models of several tasks (--task) have no such option.")
    rate = parameters["false_alarm_rate"]
    columns = {name: settings.get(name) for name in ("id", "group", "task")}
    return Judge(family(**parameters), table, rate, **columns)


def estimator_parameters(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator, of all that was asked for."""
    found = {PARAMETERS[name]: value for name, value in given.items() if name in PARAMETERS}
    if "widths" in found:
        found["widths"] = tuple(found["widths"])
    paper = PAPER if given.get("paper") else {}
    return {"false_alarm_rate": 0.05, **paper, **found}


def read_settings(file: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Options where they were given (None and empty are not), and what the file says elsewhere.

    The file is TOML: options by name, with underscores, at its top or under ``[fit]``; tables
    ``[views]`` and ``[kinds]``.
    """
    said = {name: value for name, value in options.items() if value not in (None, [], {})}
    found = said if file is None else _with_file(file, said)
    for name, most in (("false_alarm_rate", 1.0), ("contamination", 0.5)):
        value = found.get(name, 0.1)
        if not 0 < value <= most or value == 1:
            hint = f"; {value:g}% is {value / 100:g}" if 1 <= value <= 100 * most else ""
            limit = "below 1" if most == 1 else f"at most {most:g}"
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: got {value:g}; expected a share above 0, {limit}{hint}.")
    _check_words(found)
    return found


def _check_words(given: dict[str, Any]) -> None:
    """Refuse words that an option does not know, and name the nearest that it does."""
    from kernull.kernels import KERNELS
    from kernull.mkl.solvers import SOLVERS
    from kernull.views import SCALINGS

    known = {
        "kernel": sorted(KERNELS), "scaling": [*SCALINGS, "auto"], "solver": ["auto", *SOLVERS],
        "decision": ["evidence", "sum"], "calibration": ["cross", "split"],
        "storage": ["auto", "dense", "tiled", "nystroem"],
    }  # fmt: skip
    for name in known.keys() & given.keys():
        for word in given[name] if name == "kernel" else [given[name]]:
            if word not in known[name]:
                near, words = did_you_mean(word, known[name]), ", ".join(known[name])
                raise UsageError(f"--{name}: got {word!r}{near}; expected one of {words}.")


def _with_file(file: str, said: dict[str, Any]) -> dict[str, Any]:
    flat = read_toml(file, "--config")
    section = flat.pop("fit", {})
    flat |= section if isinstance(section, dict) else {}
    found = {name: _checked(name, value, file) for name, value in flat.items()}
    kinds = dict.fromkeys(found.pop("encode", []), "category")
    kinds |= dict.fromkeys(found.pop("drop", []), "left out") | found.pop("kinds", {})
    merged = kinds | said.pop("kinds", {})
    return {**found, **said, "kinds": merged}


def _checked(name: str, value: Any, file: str) -> Any:
    place = f"--config: {file}"
    if name == "views":
        return value if value in WORDS else views_of(value, place)
    if name == "kinds":
        if isinstance(value, dict) and all(isinstance(kind, str) for kind in value.values()):
            return value
        raise DataError(f"{place}: kinds must be a table such as shift = 'category'.")
    kind, number = _TYPES.get(name), isinstance(value, int | float) and not isinstance(value, bool)
    if kind == (str | None) and (isinstance(value, str) or (name == "normal" and number)):
        return str(value)
    if kind == (float | None) and number:
        return float(value)
    if kind == (int | None) and isinstance(value, int) and number and value >= 2:
        return value
    if kind == (bool | None) and isinstance(value, bool):
        return value
    if kind in (list[str] | None, list[float] | None):
        items = value if isinstance(value, list) else [value]
        each: Any = int | float if kind == (list[float] | None) else str
        if items and all(isinstance(item, each) for item in items):
            return items
    if kind is None:
        raise UsageError(
            f"{place}: no option {name!r}; expected some of {', '.join(sorted(_TYPES))}."
        )
    raise UsageError(f"{place}: {name} = {value!r} is not of the right type.")


def matching(patterns: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Columns that match any of the patterns, in the order of the table; each must match one."""
    try:
        return match_columns(patterns, names, option)
    except ValueError as error:
        raise UsageError(str(error)) from None


def check_column(name: str | None, names: Sequence[str], where: str, option: str) -> None:
    """Refuse the name of a column that a table has not; None names none."""
    if name is not None and name not in names:
        raise UsageError(
            f"{option}: {where} has no column {name!r}{did_you_mean(name, names)}; it has "
            f"{listed(names)}."
        )


# -- views, kinds and settings -----------------------------------------------------------------


def read_views(file: str | None, options: Sequence[str]) -> dict[str, list[str]] | str | None:
    """Patterns of columns by view, from a TOML file and from ``name=pattern,pattern`` options.

    Returns None where neither is there, and the word that stands for the file.
    """
    if file in WORDS:
        if options:
            raise UsageError(f"--views {file} makes all views; it takes no --view with it.")
        return file
    views: dict[str, list[str]] = {}
    if file is not None:
        content = read_toml(file, "--views")
        views |= views_of(content.get("views", content), f"--views: {file}")
    for option in options:
        name, found, patterns = option.partition("=")
        # As CSV, so that a name may hold a comma: 'size="width, mm",height'.
        cells = next(csv.reader([patterns], skipinitialspace=True), [])
        items = [item.strip() for item in cells if item.strip()]
        if not found or not name.strip() or not items:
            raise UsageError(
                f"--view: got {option!r}; expected NAME=PATTERN, for example 'colour=col_*' or "
                "'size=width,height'."
            )
        views.setdefault(name.strip(), []).extend(items)
    return views or None


def read_columns(columns: Columns) -> dict[str, Any]:
    """Parameters of `TableViews` and of `Judge`; None, or nothing, where nothing was asked."""
    kinds = read_kinds(columns.kind or [], columns.drop or [], columns.encode or [])
    views = read_views(columns.views, columns.view or [])
    plain = ("dates", "missing", "id", "group", "task")
    return {"views": views, "kinds": kinds, **{name: getattr(columns, name) for name in plain}}


def read_kinds(
    options: Sequence[str], drop: Sequence[str], encode: Sequence[str]
) -> dict[str, str]:
    """Kinds of columns by pattern, from ``PATTERN=KIND`` options and the two short ones."""
    kinds: dict[str, str] = {}
    for option in options:
        pattern, found, kind = option.rpartition("=")
        if not found or not pattern or not kind:
            raise UsageError(
                f"--kind: got {option!r}; expected PATTERN=KIND, for example 'shift=category'."
            )
        kinds[pattern] = kind.strip()
    return kinds | dict.fromkeys(encode, "category") | dict.fromkeys(drop, "left out")


def read_toml(file: str, option: str) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{option}: {file}: no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{option}: {file}: is not a TOML file ({error}).") from None


def views_of(table: Any, place: str) -> dict[str, list[str]]:
    """Patterns of columns by view, from a table of a TOML file."""
    views: dict[str, list[str]] = {}
    for name, value in table.items() if isinstance(table, dict) else ():
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise DataError(
                f"{place}: the view {name!r} must be a column name, a pattern, or a list "
                f"of these; it is {value!r}."
            )
        views[name] = items
    if not views:
        raise DataError(f'{place}: names no view; expected [views] and colour = ["col_*"].')
    return views

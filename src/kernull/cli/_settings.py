"""Options of ``fit`` from the command line and TOML files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from kernull import PAPER
from kernull.cli._console import DataError, UsageError
from kernull.cli._options import WORDS, Columns, Learning, read_toml
from kernull.tables.kinds import did_you_mean, listed, match_columns

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


def new_judge(columns: Columns, method: Learning, empty: Sequence[str], config: Any) -> Any:
    """The judge that the options ask for, and the tables ``views`` and ``kinds`` of a file."""
    from kernull import JointMultiKernelFisherNull, Judge, MultiKernelFisherNull, TableViews

    tables, place = config or {}, "--config"
    views = read_views(columns.views, columns.view or [])
    if views is None and "views" in tables:
        views = views_of(tables["views"], place)
    kinds = tables.get("kinds", {})
    if not isinstance(kinds, dict) or not all(isinstance(kind, str) for kind in kinds.values()):
        raise DataError(f"{place}: kinds must be a table such as shift = 'category'.")
    kinds = _short_kinds(tables.get("drop", []), tables.get("encode", [])) | kinds
    kinds |= read_kinds(columns.kind or [], columns.drop or [], columns.encode or [])
    asked = {"dates": columns.dates, "missing": columns.missing, "empty": empty}
    asked = {name: value for name, value in asked.items() if value}
    parameters = estimator_parameters(method)
    family = MultiKernelFisherNull if columns.task is None else JointMultiKernelFisherNull
    for name in parameters.keys() - family().get_params().keys():
        option = _OPTION_OF[name].replace("_", "-")
        raise UsageError(f"--{option}: models of several tasks (--task) have no such option.")
    return Judge(
        family(**parameters), TableViews(views, kinds=kinds, **asked),
        parameters["false_alarm_rate"], columns.id, columns.group, columns.task,
    )  # fmt: skip


def estimator_parameters(method: Learning) -> dict[str, Any]:
    """Parameters of the estimator, of all that was asked for."""
    asked = {name: getattr(method, option) for option, name in PARAMETERS.items()}
    asked = {name: value for name, value in asked.items() if value not in (None, [])}
    if "widths" in asked:
        asked["widths"] = tuple(asked["widths"])
    return {"false_alarm_rate": 0.05, **(PAPER if method.paper else {}), **asked}


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
    return kinds | _short_kinds(drop, encode)


def _short_kinds(drop: Sequence[str], encode: Sequence[str]) -> dict[str, str]:
    return dict.fromkeys(encode, "category") | dict.fromkeys(drop, "left out")


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

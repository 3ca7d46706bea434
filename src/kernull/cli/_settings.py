"""Options of ``fit`` from the command line and from a TOML file, the former first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernull.cli._errors import DataError, UsageError
from kernull.cli._features import read_toml, views_of
from kernull.cli._tables import FileFormat

__all__ = ["Settings", "read_settings"]

_TEXT = ("dates", "missing", "label", "normal", "sep", "decimal", "encoding", "sheet", "scaling",
         "solver", "calibration", "decision", "storage")  # fmt: skip
_NUMBERS = ("p", "delta", "false_alarm_rate", "contamination")
_LISTS = ("kernel", "width", "drop", "encode", "empty")
#: Options that the estimator takes, by the name of its parameter.
_PARAMETERS = {"kernel": "kernels", "width": "widths"} | {
    name: name for name in ("scaling", "p", "delta", "solver", "calibration", "decision",
                               "false_alarm_rate", "contamination", "storage")
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What was asked for, whoever said it."""

    given: dict[str, Any]

    @property
    def views(self) -> dict[str, list[str]] | str | None:
        """Patterns of columns by view."""
        return self.given.get("views")

    @property
    def kinds(self) -> dict[str, str]:
        """Kinds by pattern of columns."""
        return self.given.get("kinds") or {}

    @property
    def form(self) -> FileFormat:
        """How files are written."""
        return FileFormat(*(self.given.get(n) for n in ("sep", "decimal", "encoding", "sheet")))

    def text(self, name: str) -> str | None:
        """One option that is text."""
        value = self.given.get(name)
        return None if value is None else str(value)

    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator."""
        found = {_PARAMETERS[n]: v for n, v in self.given.items() if n in _PARAMETERS}
        if "widths" in found:
            found["widths"] = tuple(found["widths"])
        return {"false_alarm_rate": 0.05} | found


def read_settings(file: str | None, options: dict[str, Any]) -> Settings:
    """Options where they were given, and what the file says elsewhere.

    Parameters
    ----------
    file : str, optional
        A TOML file: options by name, with underscores, at its top or under ``[fit]``; tables
        ``[views]`` and ``[kinds]``.
    options : dict
        What the command line says; None and empty are not said.
    """
    said = {name: value for name, value in options.items() if value not in (None, [], {})}
    if file is None:
        return Settings(said)
    content = read_toml(file, "--config")
    flat = {**{k: v for k, v in content.items() if k != "fit"}, **_table(content.get("fit", {}))}
    found: dict[str, Any] = {}
    for name, value in flat.items():
        found[name] = _checked(name, value, file)
    kinds = dict.fromkeys(found.pop("encode", []), "category")
    kinds |= dict.fromkeys(found.pop("drop", []), "left out") | found.pop("kinds", {})
    merged = kinds | said.pop("kinds", {})
    return Settings({**found, **said, **({"kinds": merged} if merged else {})})


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _checked(name: str, value: Any, file: str) -> Any:
    place = f"--config: {file}"
    if name == "views":
        return value if value == "features" else views_of(value, place)
    if name == "kinds":
        if isinstance(value, dict) and all(isinstance(kind, str) for kind in value.values()):
            return value
        raise DataError(f"{place}: kinds must be a table such as shift = 'category'.")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _TEXT and (isinstance(value, str) or (name == "normal" and number)):
        return str(value)
    if name in _NUMBERS and number:
        return float(value)
    if name == "sample" and isinstance(value, int) and number and value >= 2:
        return value
    if name in _LISTS:
        items = value if isinstance(value, list) else [value]
        kind: Any = int | float if name == "width" else str
        if items and all(isinstance(item, kind) for item in items):
            return items
    if name == "select" and isinstance(value, bool):
        return value
    known = {*_TEXT, *_NUMBERS, *_LISTS, "sample", "select", "views", "kinds"}
    if name not in known:
        raise UsageError(
            f"{place}: no option {name!r}; expected some of {', '.join(sorted(known))}."
        )
    raise UsageError(f"{place}: {name} = {value!r} is not of the right type.")

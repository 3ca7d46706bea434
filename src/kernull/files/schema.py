"""What a model file holds: each field's kind and shape, declared once and checked at load.

A section is an object by its name and its fields. Sizes are named: wherever ``n`` stands, it is the
same number throughout a model; a name that begins with ``_`` is a size within one section.
Fields that are None are left out, and those that a class has a default for may be lacking: later
versions can add some. A field is declared by what checks it: called with a value and the sizes, it
gives the value, or raises a `ModelFileError` that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from kernull.errors import ModelFileError
from kernull.files.values import Node

Sizes = dict[str, int]
#: The least number above zero, and the largest that is finite.
POSITIVE = float(np.finfo(float).smallest_subnormal)
LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class Arrays:
    """An array: kind of its values ("f" floats, "i" whole numbers, "b" flags), possible shapes.

    Values are finite unless ``finite`` is false, and never below ``low`` or above ``high``.
    """

    kind: str
    shapes: tuple[tuple[str | int, ...], ...]
    finite: bool = True
    low: float = -np.inf
    high: float = np.inf

    def __call__(self, value: Any, sizes: Sizes) -> Any:
        """The array; whole numbers as the machine has them."""
        if not isinstance(value, np.ndarray):
            raise ModelFileError("is no array")
        if value.dtype.kind not in {"i": "iu"}.get(self.kind, self.kind):
            raise ModelFileError(f"has values of type {value.dtype}")
        if not any(_fits(value.shape, shape, sizes) for shape in self.shapes):
            raise ModelFileError(f"has shape {value.shape}, which does not fit the rest")
        if self.finite and self.kind == "f" and not np.isfinite(value).all():
            raise ModelFileError("holds values that are no numbers")
        if self.low > -np.inf and not (value >= self.low).all():
            least = "above zero" if self.low == POSITIVE else f"{self.low:g} or more"
            raise ModelFileError(f"holds values that are not {least}")
        if self.high < np.inf and not (value <= self.high).all():
            raise ModelFileError(f"holds values above {self.high:g}")
        return value.astype(np.intp) if self.kind == "i" else value


def _fits(shape: tuple[int, ...], named: tuple[str | int, ...], sizes: Sizes) -> bool:
    """Whether a shape agrees with what is known of the sizes; notes what is new."""
    if len(shape) != len(named):
        return False
    found: Sizes = {}
    for size, name in zip(shape, named, strict=True):
        known = name if isinstance(name, int) else found.get(name, sizes.get(name))
        if known is not None and size != known:
            return False
        if isinstance(name, str):
            found[name] = size
    sizes.update(found)
    return True


@dataclass(frozen=True)
class Number:
    """A number between two others, finite unless they are not."""

    low: float = -LARGEST
    high: float = LARGEST

    def __call__(self, value: Any, sizes: Sizes) -> float:
        """The number as a float."""
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high:
            raise ModelFileError(f"is {str(value)[:40]}")
        return float(value)


@dataclass(frozen=True)
class Count:
    """A whole number, not negative."""

    size: str | None = None  #: The size that it must be, if it is one.

    def __call__(self, value: Any, sizes: Sizes) -> int:
        """The number as an int."""
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
            raise ModelFileError(f"is {str(value)[:40]}, which is no count")
        if self.size is not None and not _fits((int(value),), (self.size,), sizes):
            raise ModelFileError(f"is {value}, which does not fit the rest")
        return int(value)


def flag(value: Any, sizes: Sizes) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ModelFileError("is neither true nor false")
    return bool(value)


@dataclass(frozen=True)
class Text:
    """Text, one of some choices if there are any."""

    choices: tuple[str, ...] = ()

    def __call__(self, value: Any, sizes: Sizes) -> str:
        """The text."""
        if not isinstance(value, str) or (self.choices and value not in self.choices):
            raise ModelFileError(f"is {str(value)[:40]!r}")
        return value


@dataclass(frozen=True)
class Sections:
    """One section of some kinds, or several of them."""

    names: tuple[str, ...]
    several: bool = False


@dataclass(frozen=True)
class Section:
    """A class, its fields, and what must hold between them."""

    make: Any
    fields: Mapping[str, Any]
    #: What is wrong with an object that was read, or None.
    relation: Callable[[Any, Sizes], str | None] | None = None
    #: Attributes that fields are read from, where their names differ.
    attributes: Mapping[str, str] = field(default_factory=dict)
    #: Whether fields are attributes that ``fit`` sets, rather than arguments of ``make``.
    learned: bool = False

    @cached_property
    def optional(self) -> set[str]:
        """Fields that a file may lack: what is None is not written."""
        if self.learned:
            return set()
        taken = signature(self.make).parameters
        return {name for name in self.fields if taken[name].default is None}


def pack(value: Any, schema: Mapping[str, Section]) -> Any:
    """An object as a tree for `write_tree`."""
    if isinstance(value, tuple | list) and value and _section_of(value[0], schema) is not None:
        return [pack(item, schema) for item in value]
    name = _section_of(value, schema)
    if name is None:
        return value
    section, content = schema[name], {}
    for key, spec in section.fields.items():
        item = getattr(value, section.attributes.get(key, key))
        if item is not None:
            content[key] = spec.write(item) if hasattr(spec, "write") else pack(item, schema)
    return Node(name, content)


def _section_of(value: Any, schema: Mapping[str, Section]) -> str | None:
    return next((name for name, own in schema.items() if own.make is type(value)), None)


def unpack(node: Any, names: tuple[str, ...], schema: Mapping[str, Section], sizes: Sizes) -> Any:
    """The object that a node of one of these sections stands for, checked field by field."""
    if not isinstance(node, Node) or node.name not in names:
        found = node.name[:40] if isinstance(node, Node) else type(node).__name__
        raise ModelFileError(f"is {found!r}; expected {' or '.join(map(repr, names))}")
    section = schema[node.name]
    unknown = sorted(set(node.fields) - set(section.fields))
    if unknown:
        raise ModelFileError(f"{node.name} has a field {unknown[0][:40]!r} that is not known")
    # Sizes within the section are its own; those of the whole model are noted as they are met.
    own = {name: size for name, size in sizes.items() if not name.startswith("_")}
    content: dict[str, Any] = {}
    for key, spec in section.fields.items():
        value = node.fields.get(key)
        if value is None:
            if key not in section.optional:
                raise ModelFileError(f"{node.name} lacks {key}")
            continue
        try:
            content[key] = _read(value, spec, schema, own)
        except ModelFileError as error:
            raise ModelFileError(f"{node.name}.{key} {error}") from None
    sizes.update({name: size for name, size in own.items() if not name.startswith("_")})
    made = section.make(**({} if section.learned else content))
    if section.learned:
        vars(made).update(content)
    wrong = None if section.relation is None else section.relation(made, own)
    if wrong is not None:
        raise ModelFileError(f"{node.name}: {wrong}")
    return made


def _read(value: Any, spec: Any, schema: Mapping[str, Section], sizes: Sizes) -> Any:
    if not isinstance(spec, Sections):
        return spec(value, sizes)
    if not spec.several:
        return unpack(value, spec.names, schema, sizes)
    if not isinstance(value, list) or not value:
        raise ModelFileError("is no list of sections")
    return tuple(unpack(item, spec.names, schema, sizes) for item in value)

r"""What the fields of a fitted model may hold, declared where the fields are.

`kernull.files` writes and reads an object of any class that is marked `stored`, field by field, by
the types of the fields. Where a type says too little, ``Annotated`` adds to it::

    @stored
    @dataclass(frozen=True, eq=False)
    class Rule:
        weights: Annotated[Array, Shape("J"), Range(low=0.0)]
        ridge: Annotated[float, Range(low=POSITIVE)]
        kind: Annotated[str, OneOf("projection", "distance")] = "projection"
        rows: Annotated[Array | None, DERIVED] = None

Numbers are finite unless a `Range` allows more. What must hold between fields is `Checked`.
`kernull.load` calls ``restored()`` of the whole model to compute what is `DERIVED`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from sklearn.base import BaseEstimator

#: The least number above zero, and the largest that is finite.
POSITIVE = float(np.finfo(float).smallest_subnormal)
LARGEST_NUMBER = float(np.finfo(float).max)

#: Classes of which files may hold objects, by name.
STORED: dict[str, type] = {}

T = TypeVar("T", bound=type)


def stored(cls: T) -> T:
    """Let files hold objects of a class: a dataclass, a NamedTuple or an estimator.

    Of an estimator they hold its parameters, and the attributes that the class annotates.
    """
    STORED[cls.__name__] = cls
    return cls


class Checked:
    """A class with more to check than its fields one by one."""

    def contradiction(self) -> str | None:
        """What does not fit together, or None."""
        return None

    def sizes(self) -> dict[str, int]:
        """Sizes, by name, that no field has."""
        return {}


class Shape(tuple[str | int, ...]):
    """Shape of an array, or length of a tuple: numbers, or names of sizes.

    A size is the same wherever its name stands in a model. A name that begins with ``_`` is a size
    within one object; ``_`` by itself is any size. Several shapes are alternatives.

    Examples
    --------
    >>> Shape("n", 2)
    ('n', 2)
    """

    def __new__(cls, *sizes: str | int) -> Shape:
        """Take the sizes as arguments."""
        return super().__new__(cls, sizes)


@dataclass(frozen=True)
class Size:
    """The name of the size that a whole number is."""

    name: str


@dataclass(frozen=True)
class Range:
    """Least and largest value of a number, or of all numbers of an array; ``nan``: none too."""

    low: float = -LARGEST_NUMBER
    high: float = LARGEST_NUMBER
    nan: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a number, or all numbers of an array, are within."""
        inside = (value >= self.low) & (value <= self.high)
        return bool(np.all(inside | np.isnan(value) if self.nan else inside))


@dataclass(frozen=True)
class Apart:
    """Entries of a mapping are models by themselves, with these sizes in common."""

    common: tuple[str, ...] = ()


#: Any number, NaN too.
ANY = Range(-np.inf, np.inf, nan=True)


class OneOf(tuple[str, ...]):
    """The texts that a field may hold."""

    def __new__(cls, *texts: str) -> OneOf:
        """Take the texts as arguments."""
        return super().__new__(cls, texts)


class Derived:
    """The type of `DERIVED`."""


#: Marks a field that files leave out: ``restored()`` computes it.
DERIVED = Derived()

Sizes = dict[str, int]


class FieldError(ValueError):
    """A field that does not hold what it is declared to hold."""


@cache
def declared(cls: Any) -> dict[str, Field]:
    """Fields of a class of `STORED`, by name.

    Of a dataclass or a NamedTuple its fields; of an estimator the annotated attributes that are no
    parameters; of other classes the arguments of ``__init__``.
    """
    taken = signature(cls).parameters
    is_estimator = issubclass(cls, BaseEstimator)
    plain = is_estimator or is_dataclass(cls) or issubclass(cls, tuple)
    hints = get_type_hints(cls if plain else cls.__init__, include_extras=True)
    if is_estimator:
        learned = {k: t for k, t in hints.items() if k not in taken and k != "_"}
        return {k: Field(t) for k, t in learned.items() if get_origin(t) is not ClassVar}
    return {k: Field(hints.get(k, Any), one.default) for k, one in taken.items()}


class Field:
    """A declared type, taken apart once: checking thousands of values takes long enough."""

    def __init__(self, hint: Any, default: Any = Parameter.empty) -> None:
        base, *markers = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        options = get_args(base) if get_origin(base) in (Union, UnionType) else (base,)
        origins = [get_origin(option) or option for option in options]
        self.derived = DERIVED in markers
        self.default = default
        self.anything = any(origin in (Any, Hashable) for origin in origins)
        self.optional = NoneType in origins or self.anything or self.derived
        self.kinds = tuple(k for o in origins for k in ACCEPTED.get(o, (o,)) if isinstance(k, type))
        self.shapes = [m for m in markers if isinstance(m, Shape)]
        limits = [m for m in markers if isinstance(m, Range)]
        self.limits = limits[0] if limits else None if self.anything else Range()
        self.sizes = [m.name for m in markers if isinstance(m, Size)]
        self.texts = next((m for m in markers if isinstance(m, OneOf)), None)
        self.common = next((m.common for m in markers if isinstance(m, Apart)), None)
        self.dtype, self.items = "", []
        for option, origin in zip(options, origins, strict=True):
            if origin is np.ndarray and get_args(option):
                self.dtype = np.dtype(get_args(get_args(option)[1])[0]).kind
            elif origin in (tuple, list, Sequence, dict, Mapping):
                self.items = [Field(one) for one in get_args(option) if one is not Ellipsis]

    def is_default(self, value: Any) -> bool:
        """Whether a value need not be written: the class has it by default."""
        kinds = type(value), type(self.default)
        plain = value is None or isinstance(value, str | int | float | tuple)
        return plain and kinds[0] is kinds[1] and bool(value == self.default)

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise a `FieldError` where a value is not as declared; note the sizes that are new."""
        if self.derived or (value is None and self.optional):
            return
        is_flag = isinstance(value, bool | np.bool_)
        if not self.anything and (
            not isinstance(value, self.kinds) or (is_flag and bool not in self.kinds)
        ):
            raise FieldError(f"is {str(value)[:40]!r}, a {type(value).__name__}")
        if isinstance(value, np.ndarray):
            self._check_array(value, sizes)
        elif isinstance(value, str):
            if self.texts is not None and value not in self.texts:
                raise FieldError(f"is {value!r:.40}")
        elif isinstance(value, int | float | np.number):
            if self.limits is not None and not is_flag and not self.limits.holds(value):
                raise FieldError(f"is {value!r:.40}")
            for name in self.sizes:
                _fit((int(value),), [(name,)], sizes)
        elif STORED.get(type(value).__name__) is type(value):
            _check_object(value, sizes)
        elif isinstance(value, Mapping):
            self._check_mapping(value, sizes)
        elif isinstance(value, list | tuple):
            if self.shapes:
                _fit((len(value),), self.shapes, sizes)
            for item in value:
                (self.items[0] if self.items else ANYTHING).check(item, sizes)

    def _check_array(self, value: Any, sizes: Sizes) -> None:
        if self.shapes:
            _fit(value.shape, self.shapes, sizes)
        if self.dtype and value.dtype.kind != self.dtype:
            raise FieldError(f"has values of type {value.dtype}")
        if value.dtype.kind == "O":
            if not all(isinstance(item, str) for item in value.flat):
                raise FieldError("holds something other than text")
        elif self.limits is not None and not self.limits.holds(value):
            raise FieldError(f"holds values outside {self.limits.low:g} to {self.limits.high:g}")

    def _check_mapping(self, value: Mapping[Any, Any], sizes: Sizes) -> None:
        keys, items = self.items or (ANYTHING, ANYTHING)
        for key, item in value.items():
            keys.check(key, {})
            if self.common is None:
                items.check(item, sizes)
                continue
            local = {name: sizes[name] for name in self.common if name in sizes}
            items.check(item, local)
            sizes.update({name: local[name] for name in self.common if name in local})


#: Types of values that stand for a declared type.
ACCEPTED: dict[Any, tuple[type, ...]] = {
    float: (float, int, np.number), int: (int, np.integer), bool: (bool, np.bool_),
    tuple: (tuple,), list: (list,), Sequence: (list, tuple), dict: (dict,), Mapping: (Mapping,),
}  # fmt: skip
#: Where nothing is declared.
ANYTHING = Field(Any)


def check(value: Any, hint: Any = Any) -> None:
    """Raise a `FieldError` where a value, or a field anywhere in it, is not as it is declared."""
    Field(hint).check(value, {})


def _check_object(value: Any, sizes: Sizes) -> None:
    cls: Any = type(value)
    local = {name: size for name, size in sizes.items() if not name.startswith("_")}
    is_estimator = isinstance(value, BaseEstimator)
    unfitted = is_estimator and not vars(value).keys() & declared(cls).keys()
    for name, declaration in () if unfitted else declared(cls).items():
        try:
            declaration.check(getattr(value, name, None), local)
        except FieldError as error:
            raise FieldError(f"{cls.__name__}.{name} {error}") from None
    if is_estimator:
        ANYTHING.check(value.get_params(deep=False), {})
    for name, size in value.sizes().items() if isinstance(value, Checked) else ():
        _fit((size,), [(name,)], local)
    sizes.update({name: size for name, size in local.items() if not name.startswith("_")})
    wrong = value.contradiction() if isinstance(value, Checked) and not unfitted else None
    if wrong is not None:
        raise FieldError(f"{cls.__name__}: {wrong}")


def _fit(shape: tuple[int, ...], shapes: Sequence[Sequence[str | int]], sizes: Sizes) -> None:
    """Refuse a shape that agrees with none of those declared; note sizes that are new."""
    for named in shapes:
        new: Sizes = {}
        for size, name in zip(shape, named, strict=False):
            known = name if isinstance(name, int) else new.get(name, sizes.get(name, size))
            if known != size:
                break
            if isinstance(name, str) and name != "_":
                new[name] = size
        else:
            if len(shape) == len(named):
                sizes.update(new)
                return
    raise FieldError(f"has shape {shape}, which does not fit the rest")

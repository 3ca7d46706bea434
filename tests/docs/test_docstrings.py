"""Every public name is documented to the end: summary, parameters, no leftovers."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import is_dataclass
from importlib import import_module

import pytest

import kernull

validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed")

#: Packages whose public names are documented; the top level is the union of their best.
PACKAGES = ["kernull.report", "kernull.mkl", "kernull.splitters", "kernull.paper",
            "kernull.paper.metrics", "kernull.datasets", "kernull.explain"]  # fmt: skip
#: GL08 no docstring; SS01 no summary; PR01 undocumented and PR02 unknown parameters; PR10 a type
#: without the space before its colon. The order is free: parameters by keyword go by subject.
CODES = {"GL08", "SS01", "PR01", "PR02", "PR10"}


def public_objects() -> dict[str, object]:
    found: dict[str, object] = {}
    for name in kernull.__all__:
        found[f"kernull.{name}"] = getattr(kernull, name)
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            found[f"{package}.{name}"] = getattr(module, name)
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }


OBJECTS = public_objects()


def faults(name: str) -> list[tuple[str, str]]:
    return [(code, text) for code, text in validate.validate(name)["errors"] if code in CODES]


def is_record(value: type) -> bool:
    """A named tuple, or a dataclass that lists its attributes instead of its parameters."""
    doc = inspect.getdoc(value) or ""
    listed = "Attributes\n-" in doc and "Parameters\n-" not in doc
    return issubclass(value, tuple) or (is_dataclass(value) and listed)


@pytest.mark.parametrize("name", OBJECTS)
def test_docstring_is_complete(name):
    value = OBJECTS[name]
    problems = faults(name)
    if inspect.isclass(value) and is_record(value):
        # Records document what they hold, field by field.
        problems = [(code, text) for code, text in problems if code != "PR01"]
    assert problems == []


@pytest.mark.parametrize("name", [n for n, v in OBJECTS.items() if inspect.isclass(v)])
def test_methods_have_docstrings(name):
    for method, value in vars(OBJECTS[name]).items():
        if method.startswith("_") or not (inspect.isfunction(value) or isinstance(value, property)):
            continue
        assert inspect.getdoc(getattr(OBJECTS[name], method)), f"{name}.{method}"


DETECTORS = [n for n, value in OBJECTS.items() if hasattr(value, "p_values")]


@pytest.mark.parametrize("name", DETECTORS)
def test_fit_says_what_becomes_of_rows_that_are_not_normal(name):
    assert "-1" in inspect.getdoc(OBJECTS[name].fit)


@pytest.mark.parametrize("name", OBJECTS)
def test_docstrings_are_written_where_they_are_read(name):
    """Nothing fills them in: what `help` shows is in the source, letter by letter."""
    value = OBJECTS[name]
    doc = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert doc is None or inspect.cleandoc(doc) == _cleaned(value)


def _cleaned(value: object) -> str:
    node = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    return ast.get_docstring(node) or ""

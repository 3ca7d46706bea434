"""Every public name is documented to the end: summary, parameters, no leftovers."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

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


#: Share of functions with parameters that list them. Measured: 270 of 440.
DOCUMENTED = 0.6


def functions() -> list[tuple[str, str, ast.FunctionDef]]:
    """Room, class and node of public functions with parameters, in modules with public names.

    Properties and overloads are left out.
    """
    root, out = Path(kernull.__file__).parent, []
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if any(part.startswith("_") and part != "__init__.py" for part in place.parts):
            continue
        todo: list[tuple[str, ast.stmt]] = [("", n) for n in ast.parse(path.read_text()).body]
        while todo:
            owner, node = todo.pop()
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                todo += [(node.name, inner) for inner in node.body]
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
            given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            if {a.arg for a in given} - {"self", "cls"} and not re.search(
                r"property|overload|setter", marks
            ):
                out.append((place.parts[0], owner, node))
    return out


def has_parameters(node: ast.FunctionDef) -> bool:
    return "Parameters\n---" in (ast.get_docstring(node) or "")


def test_most_functions_list_their_parameters():
    """A method of a protocol is documented once in its room, and not again where it is written."""
    every = functions()
    protocol = {(room, node.name) for room, owner, node in every if owner and has_parameters(node)}
    counted = [
        has_parameters(node)
        for room, owner, node in every
        if has_parameters(node) or not (owner and (room, node.name) in protocol)
    ]
    assert sum(counted) / len(counted) >= DOCUMENTED, f"{sum(counted)} of {len(counted)}"

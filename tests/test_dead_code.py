"""Every function, class, method and constant of src is used in src, or is public."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import kernull
from tests.docs.pages import ROOT

HOUSE = Path(kernull.__file__).parent
REFERENCE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Decorators that leave a function to be used by its name; others may pass it on.
PLAIN = {"cache", "contextmanager", "cached_property", "property", "staticmethod", "classmethod",
         "dataclass", "overload"}  # fmt: skip

#: What nothing in src names, by module, and who uses it.
ALLOWED: dict[tuple[str, str], str] = {
    ("files/values.py", "Decoder"): "its methods are called by the kind of a value",
    ("datasets/_bundled.py", "MultiViewData.one_class"): "public: of what the loaders give",
    ("mkl/path.py", "PAPER_WIDTHS"): "public, with the other grids of the paper",
    ("tables/gaps.py", "GapFiller.expect_each"): "examples/demo.py",
    ("tables/table.py", "Table.numbers"): "public: of what read_table gives",
    ("tables/table.py", "Table.to_pandas"): "public: of what read_table gives",
}


class Module:
    """What a module defines, and what it reads from itself and from others."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(HOUSE).as_posix()
        self.name = ".".join(["kernull", *Path(self.path).with_suffix("").parts])
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        body = [
            node
            for node in self.tree.body
            if not {"__all__", "_HOMES", "_LAZY"} & {*assigned(node)}
        ]
        self.names, self.attributes, self.texts = uses(*body)
        imports = [node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom)]
        aliases = [alias for node in imports for alias in node.names]
        #: Names of other modules that this one reads.
        self.foreign = {a.name for a in aliases if a.asname or self.names[a.name]}
        bound = {alias.asname or alias.name for alias in aliases}
        for node in ast.walk(self.tree):  # and those that it reads as attributes of a module
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                self.foreign |= {node.attr} if node.value.id in bound else set()


def uses(*trees: ast.AST) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Names, attributes and words of texts (of one line or less) that pieces of code read."""
    names, attributes, texts = Counter[str](), Counter[str](), Counter[str]()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names[node.id] += 1
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            attributes[node.attr] += 1
        elif isinstance(node, ast.Constant) and re.fullmatch(r"[\w.]+", str(node.value)):
            texts.update(str(node.value).split("."))
    return names, attributes, texts


def assigned(node: ast.AST) -> list[str]:
    """Names that a statement of a module assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def is_passed_on(node: ast.AST) -> bool:
    last = [ast.unparse(d).partition("(")[0].split(".")[-1] for d in node.decorator_list]
    return not PLAIN.issuperset(last)


def overrides(module: str, owner: str, name: str) -> bool:
    """Whether a class of another library has the method too."""
    try:
        bases = getattr(import_module(module), owner).__mro__
    except ImportError:  # of an optional library
        return True
    return any(hasattr(base, name) for base in bases if "kernull" not in base.__module__)


def public() -> tuple[set[str], set[str]]:
    """Names of the reference and of `kernull.__all__`, and the attributes of their classes."""
    listed = set(re.findall(r"^   ([\w.]+)$", REFERENCE, re.MULTILINE)) | set(kernull.__all__)
    attributes: set[str] = set()
    for name in listed:
        module, _, last = f"kernull.{name}".rpartition(".")
        value = getattr(import_module(module), last)
        attributes |= set(dir(value)) if inspect.isclass(value) else set()
    return {name.rpartition(".")[2] for name in listed}, attributes


def unused() -> list[tuple[str, str]]:
    """Definitions that nothing in src reads, with their modules."""
    modules = [Module(path) for path in sorted(HOUSE.rglob("*.py"))]
    pages = (path.read_text(encoding="utf-8") for path in HOUSE.rglob("*.jinja"))
    texts = sum((m.texts for m in modules), Counter(re.findall(r"\w+", " ".join(pages))))
    attributes = sum((m.attributes for m in modules), Counter(texts))
    foreign = Counter(name for m in modules for name in m.foreign) + texts
    exported, members = public()
    out = []
    for m in modules:
        for node in m.tree.body:
            named = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not is_passed_on(node)
            for name in [node.name] if named else assigned(node):
                here = m.names[name] - (uses(node)[0][name] if named else 0)
                if not (name.startswith("__") or name in exported or here or foreign[name]):
                    out.append((m.path, name))
            if not isinstance(node, ast.ClassDef) or (m.path, node.name) in ALLOWED:
                continue
            for part in node.body:
                if not isinstance(part, FUNCTIONS) or part.name.startswith("__"):
                    continue
                read = attributes[part.name] - uses(part)[1][part.name]
                known = read or part.name in members or is_passed_on(part)
                if not (known or overrides(m.name, node.name, part.name)):
                    out.append((m.path, f"{node.name}.{part.name}"))
    return [entry for entry in out if entry not in ALLOWED]


def test_everything_is_used():
    assert unused() == []

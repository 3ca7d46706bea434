"""The house: no hidden state, two makers of thresholds, a fit that can be read."""

from __future__ import annotations

import ast
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import kernull
from tests.plain import named

HOUSE = Path(kernull.__file__).parent
ROWS = np.random.default_rng(0).normal(size=(60, 4))

#: scikit-learn's own: its metadata routing.
SCIKIT_LEARN = {"_sklearn_output_config", "_metadata_request"}


def fitted(name):
    """A fitted estimator of each kind."""
    if name == "JointMultiKernelFisherNull":
        groups = np.repeat(["a", "b"], 30)
        return kernull.JointMultiKernelFisherNull().fit(ROWS, groups=groups)
    if name == "Calibrated":
        return kernull.Calibrated(named("FisherNull")()).fit(ROWS)
    return named(name)().fit(ROWS)


@pytest.mark.parametrize(
    "name",
    [
        "MultiKernelFisherNull",
        "JointMultiKernelFisherNull",
        "FisherNull",
        "GaussianProcessOneClass",
        "KernelPCANovelty",
        "MultiKernelSVDD",
        "MultiKernelOneClassSVM",
        "Calibrated",
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_nothing_is_hidden_in_an_estimator(name):
    hidden = {key for key in vars(fitted(name)) if key.startswith("_")}
    assert hidden <= SCIKIT_LEARN


def modules():
    return {path.relative_to(HOUSE).as_posix(): path for path in HOUSE.rglob("*.py")}


#: Modules that ask what the threshold of a rate is and give it to no model: the report tabulates
#: rates, and a calibration tells whether a threshold, such as that of a file, is its own.
ASKING = {"report/_content.py", "detector/calibration.py"}


#: The threshold of a kernel model, and that of any other detector.
MAKERS = {"detector/model.py", "estimators/calibrated.py"}


def test_two_modules_make_thresholds():
    makers = set()
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and node.func.attr == "threshold":
                makers.add(name)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                assert node.attr != "threshold_" or name in MAKERS, name
    assert makers - ASKING == MAKERS


def entered(call):
    """Code of the named functions of kernull that a call enters, by file."""
    call()  # imports, and caches of other libraries
    found = {}

    def note(frame, event, arg):
        code = frame.f_code
        inside = code.co_filename.startswith(str(HOUSE)) and not code.co_name.startswith("<")
        if event == "call" and inside:
            name = Path(code.co_filename).relative_to(HOUSE).as_posix()
            found.setdefault(name, set()).add(code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


#: Functions and files that a fit enters at most, functions of functions and of threads counted: the
#: sum of a plain kernel, and README's model.
LIMITS = [
    ({"decision": "sum", "normalize": "none", "scaling": ("standard", "whiten")}, 178, 28),
    ({"views": {"left": [0, 1, 2, 3], "right": [4, 5, 6, 7]}}, 208, 33),
    (kernull.PAPER | {"views": "features"}, 179, 29),
]


@pytest.mark.parametrize(("options", "functions", "files"), LIMITS)
def test_a_fit_can_be_read(options, functions, files):
    """A fit enters so many functions in so many files at most, each of which fits a screen."""
    X = np.random.default_rng(0).normal(size=(200, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kernull.MultiKernelFisherNull(**options)
        found = entered(lambda: model.fit(X))
    names = sorted(code.co_qualname for codes in found.values() for code in codes)
    assert len(names) <= functions, names
    assert len(found) <= files, sorted(found)
    for name, codes in found.items():
        tree = ast.parse(modules()[name].read_text())
        starts = {code.co_firstlineno for code in codes}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                has_text = ast.get_docstring(node) is not None
                text = node.body[0].end_lineno - node.body[0].lineno + 1 if has_text else 0
                length = node.end_lineno - node.lineno + 1 - text
                assert first not in starts or length <= 60, (name, node.name, length)


#: The same of judging new rows.
JUDGING = [(options, 47, 14) for options, *_ in LIMITS]


@pytest.mark.parametrize(("options", "functions", "files"), JUDGING)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_judging_new_rows_can_be_read(options, functions, files):
    X, new = np.split(np.random.default_rng(0).normal(size=(250, 8)), [200])
    model = kernull.MultiKernelFisherNull(**options).fit(X)
    found = entered(lambda: model.predict(new))
    names = sorted(code.co_qualname for codes in found.values() for code in codes)
    assert len(names) <= functions, names
    assert len(found) <= files, sorted(found)


def imports(path):
    """Modules of kernull that a module imports, functions' imports included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def code_lines(path):
    """Number of lines of a module outside of docstrings."""
    text = path.read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = [
        node.body[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node) is not None
    ]
    return len(text.splitlines()) - sum(doc.end_lineno - doc.lineno + 1 for doc in docs)


def test_the_detector_is_small():
    """Without docstrings: what parameters are is no reason to write less of it."""
    lines = sum(map(code_lines, (HOUSE / "detector").glob("*.py")))
    assert lines <= 3021


def test_private_modules_stay_in_their_package():
    private = {
        "kernull." + name.removesuffix(".py").replace("/", ".")
        for name in modules()
        if "/_" in name and not name.endswith("__.py")
    }
    for name, path in modules().items():
        own = "kernull." + name.split("/")[0] + "."
        across = {other for other in imports(path) if other in private and own not in other + "."}
        assert not across, (name, across)


#: Lazy imports of a package's own modules by name.
BY_NAME = {"__init__.py", "mkl/solvers/base.py", "tables/__init__.py"}


def test_no_import_by_string():
    """What is imported by its name as text is another library, or the package's own."""
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module"
            if called and name not in BY_NAME:
                assert "kernull" not in ast.unparse(node.args[0]), name
        assert "ignore[attr-defined]" not in path.read_text(), name


#: Modules that fill in docstrings.
FILLED_IN: set[str] = set()
#: Attributes that arrays, tables, estimators, kernels, balls and solvers from outside may lack.
FROM_OUTSIDE = {
    "__getitem__",
    "__module__",
    "__name__",
    "__qualname__",
    "__sklearn_tags__",
    "columns",
    "dask",
    "decision_function",
    "diagonal",
    "dtype",
    "dtypes",
    "extrapolates",
    "feature_names_in_",
    "fit",
    "index",
    "is_unique",
    "item",
    "kind",
    "map_partitions",
    "ndim",
    "p",
    "peek",
    "score_samples",
    "set_axis",
    "shape",
    "solve",
    "steps",
    "time_zone",
    "tol",
    "tz",
}
#: Lines of src at most, without docstrings: lists of parameters are no code.
LINES = 19_077


# -- Names: one thing, one name; one name, one thing. --

#: Functions of a module that all modules of their kind have: a solver's, and what packages answer
#: Python with.
PROTOCOLS = {"solve", "__getattr__", "__dir__"}


def definitions() -> Iterator[tuple[str, str]]:
    """Functions and classes at the top of modules; private ones are their module's own."""
    for name, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            named = isinstance(node, (ast.ClassDef, ast.FunctionDef))
            if named and (not node.name.startswith("_") or node.name.startswith("__")):
                yield node.name, name


def constants() -> Iterator[tuple[str, str]]:
    """Names in capitals at the top of modules, with their modules; not of type variables."""
    for name, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            for target in targets:
                for each in getattr(target, "elts", [target]):
                    if isinstance(each, ast.Name) and each.id.isupper() and each.id != "T":
                        yield each.id, name


def repeated(pairs: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that several modules have."""
    where = defaultdict(list)
    for name, module in pairs:
        where[name].append(module)
    return {name: places for name, places in where.items() if len(places) > 1}


def test_no_two_functions_or_classes_of_one_name():
    again = repeated(definitions())
    assert {name: again[name] for name in again.keys() - PROTOCOLS} == {}


def test_no_constant_of_several_values():
    again = repeated(constants())
    assert {name: again[name] for name in again} == {}


# -- Capabilities are declared. --


def probes() -> set[tuple[str, str]]:
    """Attributes that hasattr and getattr ask for by name, with their modules."""
    found = set()
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", "")
            if called in ("hasattr", "getattr") and isinstance(node.args[1], ast.Constant):
                found.add((node.args[1].value, name))
    return found


def test_own_objects_are_not_probed():
    """What is asked whether it has an attribute comes from outside, and so does the attribute."""
    free = FROM_OUTSIDE
    assert {(name, where) for name, where in probes() if name not in free} == set()


def test_no_docstring_is_filled_in():
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            assert not (stored and node.attr == "__doc__") or name in FILLED_IN, name


# -- Size. --


def test_the_house_is_small():
    assert sum(map(code_lines, modules().values())) <= LINES
    lines = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert max(lines.values()) <= 700, max(lines, key=lines.__getitem__)

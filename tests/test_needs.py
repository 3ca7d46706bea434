"""The border between a bare machine and one that has everything."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.needs import MODULES, NEEDS, ROOT

HEAVY = {"torch", "triton"}
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")])
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


def imported_at_the_top(tree: ast.Module) -> set[str]:
    """Packages that an import of the module needs; blocks under ``if TYPE_CHECKING`` do not run."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def test_only_the_listed_modules_need_torch_to_be_imported():
    needing = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if imported_at_the_top(ast.parse(path.read_text(encoding="utf-8"))) & HEAVY
    }
    assert needing == set(MODULES)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_that_needs_torch_is_marked_whole(path: Path):
    """Or else stage one of CI would skip it, and stage two would not select it."""
    top = ast.parse(path.read_text(encoding="utf-8")).body
    calls = [ast.unparse(node) for node in top if isinstance(node, ast.Assign | ast.Expr)]
    skips = any("importorskip('torch'" in call for call in calls)
    marked = any(call.startswith("pytestmark") and "mark.torch" in call for call in calls)
    assert skips == marked


def test_needs_say_what_to_do():
    for name, need in NEEDS.items():
        assert any(word in need.reason for word in ("install", "set ", "needs")), name


@pytest.fixture
def session(pytester, monkeypatch):
    """A folder of its own under the conftest.py of the root."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    return pytester


def test_a_skip_for_a_need_without_its_marker_fails(session):
    session.makepyfile(
        """
        import pytest

        def test_unmarked():
            pytest.skip("torch is not installed")

        def test_another_reason():
            pytest.skip("needs a folder that nobody can write to")

        @pytest.mark.cuda
        def test_marked():
            pytest.skip("no CUDA device")
        """
    )
    result = session.runpytest_subprocess()
    result.assert_outcomes(failed=1, skipped=2)
    result.stdout.fnmatch_lines(["*mark the test: pytest.mark.torch*"])


def test_a_missing_need_skips_and_where_required_stops(session, monkeypatch):
    monkeypatch.delenv("KERNULL_DATA", raising=False)
    session.makepyfile("import pytest\n@pytest.mark.data\ndef test_one():\n    raise ValueError")
    session.runpytest_subprocess().assert_outcomes(skipped=1)
    stopped = session.runpytest_subprocess("--require=data")
    assert stopped.ret == pytest.ExitCode.USAGE_ERROR
    stopped.stderr.fnmatch_lines(["*--require=data: KERNULL_DATA is not set*"])
    monkeypatch.setenv("KERNULL_DATA", str(session.path))
    session.runpytest_subprocess("--require=data").assert_outcomes(failed=1)


def test_a_requirement_that_nobody_knows(session):
    stopped = session.runpytest_subprocess("--require=telescope")
    assert stopped.ret == pytest.ExitCode.USAGE_ERROR
    stopped.stderr.fnmatch_lines(["*got 'telescope', expected any of torch*"])

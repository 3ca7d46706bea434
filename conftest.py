"""Markers for what a bare machine does not have (``tests/needs.py``), for tests and doctests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import FIXTURES, MODULES, NEEDS, is_met

ROOT = Path(__file__).parent

pytest_plugins = ["pytester"]  # tests/test_needs.py tries the hooks below


def pytest_addoption(parser):
    parser.addoption(
        "--require",
        default="",
        metavar="NEEDS",
        help="markers, separated by commas, whose tests fail instead of skipping",
    )


def pytest_configure(config):
    for name, need in NEEDS.items():
        config.addinivalue_line("markers", f"{name}: skips where {need.reason}")
        if name != "cuda":  # would import torch
            is_met(name)  # now, before tests change the environment
    required = [name for name in config.getoption("--require").split(",") if name]
    for name in required:
        if name not in NEEDS:
            raise pytest.UsageError(f"--require: got {name!r}, expected any of {', '.join(NEEDS)}")
        if not is_met(name):
            raise pytest.UsageError(f"--require={name}: {NEEDS[name].reason}")


def needs_of(item):
    """Names of the needs that a test has by its markers."""
    return [mark.name for mark in item.iter_markers() if mark.name in NEEDS]


def module_of(path):
    """The need of a module of src, or None."""
    return MODULES.get(path.relative_to(ROOT).as_posix()) if path.is_relative_to(ROOT) else None


class Unavailable(pytest.File):
    """A module whose doctests cannot be collected, since it cannot be imported here."""

    def collect(self):
        pytest.skip(NEEDS[module_of(self.path)].reason, allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collectors = yield
    need = module_of(file_path)
    if collectors and need and not is_met(need):
        return [Unavailable.from_parent(parent, path=file_path)]
    return collectors


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    for item in items:
        names = {FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES}
        if need := module_of(item.path):
            names.add(need)
        for name in sorted(names):
            item.add_marker(name)


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item):
    for name in needs_of(item):
        if not is_met(name):
            pytest.skip(NEEDS[name].reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A skip for something that has a marker, without the marker, would run nowhere in CI."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and not needs_of(item):
        reason = report.longrepr[2]
        words = ("torch", "cuda", "gpu", "kernull_data", "kernull_weights", "chromium", "axe-core")
        if any(word in reason.lower() for word in words):
            report.outcome = "failed"
            report.longrepr = f"{reason}\nmark the test: pytest.mark.{'|'.join(NEEDS)}"
    return report

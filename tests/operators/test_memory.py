"""Memory is planned before anything is allocated."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from kernull import Storage
from kernull.errors import MemoryLimitError
from kernull.operators import check_memory, memory, parse_memory_limit
from kernull.operators.memory import available_memory, format_bytes
from kernull.views.kernel_set import Recipe
from tests.plain import plain_fisher


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2GB", 2 * 10**9),
        ("1.5 MB", 1_500_000),
        ("2GiB", 2 * 2**30),
        ("512 kib", 512 * 1024),
        ("3T", 3 * 10**12),
        ("100", 100),
        (".5GB", 5 * 10**8),
        (1e9, 10**9),
        (np.int64(7), 7),
    ],
)
def test_parse(text, count):
    assert parse_memory_limit(text) == count


@pytest.mark.parametrize(
    "bad", ["", "GB", "two GB", "1.2.3GB", "-1GB", "0GB", "1iB", 0, -5, True, [1], np.nan, np.inf]
)
def test_parse_bad(bad):
    with pytest.raises(ValueError, match=r"^memory_limit: got"):
        parse_memory_limit(bad)


def test_none_is_half_of_what_is_available():
    assert 0 < parse_memory_limit(None) <= available_memory() * 0.75


class TestWhatIsFree:
    @pytest.fixture(autouse=True)
    def one_gigabyte_free(self, monkeypatch, tmp_path):
        """A machine with a gigabyte free, and no control group yet."""
        free = SimpleNamespace(available=10**9)
        monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: free)
        monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)

    def test_without_a_control_group_as_on_macos_and_windows(self):
        assert available_memory() == 10**9

    @pytest.mark.parametrize(
        ("limit", "used", "free"),
        [("max", 5, 10**9), (3 * 10**8, 10**8, 2 * 10**8), (10**10, 0, 10**9), (10, 20, 0)],
    )
    def test_the_lower_of_machine_and_control_group(self, tmp_path, limit, used, free):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text(f"{used}\n")
        assert available_memory() == free


def test_format():
    assert [format_bytes(x) for x in (12, 1500, 2.5e6, 12.8e9, 3e12)] == [
        "12 B",
        "1.5 kB",
        "2.5 MB",
        "12.8 GB",
        "3 TB",
    ]


def test_the_plan_counts_kernels_and_working_matrices():
    need = 5 * 100 * 100 * 8 + 3 * 100 * 100 * 8
    check_memory(5, 100, 8, need)
    with pytest.raises(MemoryLimitError, match=r"5 dense kernels of 100 x 100 need 640 kB.*limit"):
        check_memory(5, 100, 8, need - 1)


def test_an_estimator_refuses_before_it_allocates(monkeypatch):
    """A million rows by a stub of the kernels: refused at once, with nothing of that size made."""
    stub = SimpleNamespace(J=10, n=1_000_000, kernel_names=tuple("abcdefghij"))

    def stack(dtype):
        raise AssertionError("allocated before it was planned")

    stub.stack = stack
    monkeypatch.setattr(Recipe, "fit", lambda *args, **kwargs: stub)
    tracemalloc.start()
    try:
        with pytest.raises(MemoryLimitError, match=r"need 104 TB, the memory limit is 8 GB"):
            plain_fisher(storage=Storage("dense", memory_limit="8GB")).fit(np.eye(5, 2))
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_a_limit_given_by_the_user_holds(rng):
    X = rng.normal(size=(60, 3))
    with pytest.raises(MemoryLimitError, match="memory_limit"):
        plain_fisher(storage=Storage("dense", memory_limit="100kB")).fit(X)
    need64 = 4 * 60 * 60 * 8
    with pytest.raises(MemoryLimitError):
        plain_fisher(storage=Storage("dense", memory_limit=need64 - 1)).fit(X)
    plain_fisher(storage=Storage("dense", memory_limit=need64)).fit(X)
    half = Storage("dense", memory_limit=need64 - 1, dtype="float32")
    plain_fisher(storage=half).fit(X)

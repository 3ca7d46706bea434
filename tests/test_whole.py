"""Files that are there whole or not at all, with the permissions of any other file."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from kernull._runtime import atomic_write, write_whole

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


@posix
def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path, umask):
    write_whole(b"x", tmp_path / "ours")
    (tmp_path / "plain").write_bytes(b"x")
    assert mode(tmp_path / "ours") == mode(tmp_path / "plain") == 0o640


@posix
@pytest.mark.parametrize("before", [0o600, 0o444, 0o666])
def test_a_replaced_file_keeps_its_permissions(tmp_path, umask, before):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(before)
    with atomic_write(tmp_path / "file") as part:
        assert mode(part) == 0o600  # nobody reads what is not finished
        part.write_bytes(b"new")
    assert mode(tmp_path / "file") == before
    assert (tmp_path / "file").read_bytes() == b"new"


def test_the_umask_of_the_process_is_never_set(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail(f"umask set to {mask:o}"))
    write_whole(b"x", tmp_path / "file")
    write_whole(b"y", tmp_path / "file")


@pytest.mark.parametrize("name", ["m" * 255, "é" * 127, "日" * 85])
def test_names_may_be_as_long_as_the_system_allows(tmp_path, name):
    write_whole(b"x", tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    def fail(part: Path) -> None:
        part.write_bytes(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "file") as part:
        fail(part)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_signal_just_when_the_temporary_file_is_there_leaves_none(tmp_path, monkeypatch):
    def interrupted(handle, close=os.close):
        close(handle)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "a.csv"):
        pytest.fail("the file was given")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []

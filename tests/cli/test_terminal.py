"""The command line in a real terminal: progress shows, and Ctrl-C leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import COLUMNS, environment

pexpect = pytest.importorskip("pexpect", reason="a real terminal needs pexpect")


@pytest.fixture(scope="module")
def long_table(tables) -> Path:
    """A table that takes a few seconds to score."""
    path = tables / "long.csv"
    write_many(path, 120_000)
    return path


def write_many(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    block = rng.normal(size=(10_000, len(COLUMNS)))
    text = "\n".join(",".join(f"{value:.5f}" for value in row) for row in block) + "\n"
    with path.open("w") as file:
        file.write(",".join(COLUMNS) + "\n")
        for _ in range(rows // len(block)):
            file.write(text)


def heed_signals() -> None:
    """Let a child end by signals that nohup, and a shell's background jobs, are made to ignore."""
    for name in ("SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def start(*args: str, cwd: Path):
    return pexpect.spawn(
        sys.executable,
        ["-m", "kernull.cli", *args],
        cwd=str(cwd),
        env={**environment(), "TERM": "xterm-256color"},
        dimensions=(30, 100),
        timeout=90,
        encoding="utf-8",
        preexec_fn=heed_signals,
    )


def partial_files(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def test_progress_shows_and_goes(tables, long_table):
    child = start("score", "model.kernull", "long.csv", "-o", "long-out.csv", cwd=tables)
    child.expect("Scoring")
    child.expect(r"\d+%")
    child.expect("rows flagged")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    with (tables / "long-out.csv").open() as file:
        assert sum(1 for _ in file) == 120_001
    assert not partial_files(tables)


def test_quiet_shows_nothing(tables):
    child = start("score", "model.kernull", "new.csv", "-o", "q.csv", "--quiet", cwd=tables)
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus, child.before.strip()) == (0, "")


def test_ctrl_c_leaves_no_partial_file(tables, long_table):
    before = sorted(os.listdir(tables))
    child = start("score", "model.kernull", "long.csv", "-o", "stopped.csv", cwd=tables)
    child.expect(r"[\d,]+ rows")  # in the middle of the work
    assert partial_files(tables)  # there is something to clean up
    child.sendintr()
    child.expect("stopped; no file was left half-written")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "Traceback" not in child.before
    assert sorted(os.listdir(tables)) == before


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_terminated_process_cleans_up_too(tables, long_table, name, code):
    before = sorted(os.listdir(tables))
    child = subprocess.Popen(
        [sys.executable, "-m", "kernull.cli", "score", "model.kernull", "long.csv", "-o", "t.csv"],
        cwd=tables, env=environment(), stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not partial_files(tables) and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(getattr(signal, name))
    _, said = child.communicate(timeout=60)
    assert child.returncode == code
    assert "Traceback" not in said
    assert sorted(os.listdir(tables)) == before


@pytest.mark.parametrize(
    "how", [["-m", "kernull.cli"], ["-c", "from kernull.cli import main; main()"]]
)
def test_ctrl_c_while_python_imports_shows_no_traceback(tmp_path, how):
    """As if it came just when typer is imported."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    known = environment()
    paths = os.pathsep.join([str(tmp_path), known["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, *how, "--help"], env={**known, "PYTHONPATH": paths},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "command", [["info", "model.kernull"], ["explain", "model.kernull", "new.csv"]]
)
def test_a_reader_that_has_seen_enough_is_no_error(tables, command):
    reader, writer = os.pipe()
    os.close(reader)
    child = subprocess.Popen(
        [sys.executable, "-m", "kernull.cli", *command],
        cwd=tables, env=environment(), stdout=writer, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writer)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, said) == (0, "")


@pytest.mark.slow
def test_a_million_rows_in_under_a_gigabyte(tables):
    """Read, scored and written in chunks: memory does not grow with the table."""
    write_many(tables / "million.csv", 1_000_000)
    code = (
        "import resource, sys; from kernull.cli._app import app\n"
        "try: app(sys.argv[1:], prog_name='kernull')\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "score", "model.kernull", "million.csv",
         "-o", "million-out.csv"],
        cwd=tables, env=environment(), capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    (tables / "million.csv").unlink()
    assert done.returncode == 0, done.stderr
    with (tables / "million-out.csv").open() as file:
        assert sum(1 for _ in file) == 1_000_001
    (tables / "million-out.csv").unlink()
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout.split()[-1]) * unit < 10**9

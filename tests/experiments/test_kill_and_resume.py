"""Killed at random moments and resumed, a run ends with the same tables; nothing is done twice."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills a process group by POSIX")


def start(out, jobs, repeats):
    command = [sys.executable, "-m", "experiments", "E2", "--quick"]
    command += ["--repeats", str(repeats), "--jobs", str(jobs), "--out", str(out)]
    return subprocess.Popen(
        command,
        start_new_session=True,  # so that a kill reaches the workers too, and nobody else
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finish(out, jobs, repeats):
    process = start(out, jobs, repeats)
    text = process.communicate(timeout=600)[0].decode()
    assert process.returncode == 0, text


def stored(out):
    """Finished cells and when each was written."""
    cells = Path(out) / "E2-quick" / "cells"
    return {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}


def tables(out):
    """Everything a reader sees, but for the line with the date."""
    folder = Path(out) / "E2-quick"
    page = re.sub(r"(?m)^`python .*$", "", (folder / "page.md").read_text())
    return (folder / "results.csv").read_bytes(), page, (folder / "error.png").read_bytes()


def kill_once(out, jobs, repeats, rng):
    """Start, wait until one more cell is stored, and kill a random moment later."""
    before = stored(out)
    process = start(out, jobs, repeats)
    deadline = time.monotonic() + 300
    while len(stored(out)) == len(before) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(rng.uniform(0.0, 0.3))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    after = stored(out)
    assert {name: after[name] for name in before} == before  # none was done twice
    return after


@pytest.mark.parametrize(
    ("kills", "jobs", "repeats"), [(2, 1, 1), pytest.param(10, 2, 6, marks=pytest.mark.slow)]
)
def test_killed_runs_end_with_the_same_tables(tmp_path, kills, jobs, repeats):
    rng = random.Random(7)
    finish(tmp_path / "calm", 1, repeats)
    killed = tmp_path / "killed"
    for _ in range(kills):
        found = kill_once(killed, jobs, repeats, rng)
    assert found  # the kills did not come before everything
    finish(killed, jobs, repeats)
    assert {name: stored(killed)[name] for name in found} == found
    assert tables(killed) == tables(tmp_path / "calm")

"""Small tables and a model for the tests of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

COLUMNS = ["col_r", "col_g", "col_b", "width", "height"]


def write_csv(path: Path, names: list[str], rows) -> Path:
    lines = [",".join(names), *(",".join(str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def make_rows(n: int, seed: int, shift: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 5))
    rows[:, :3] += shift  # what is odd is odd in its colours
    return rows.round(6)


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> Path:
    """Folder with train.csv, new.csv (30 normal rows, then 10 odd ones) and a fitted model."""
    folder = tmp_path_factory.mktemp("tables")
    write_csv(folder / "train.csv", COLUMNS, make_rows(80, 0))
    new = np.vstack([make_rows(30, 1), make_rows(10, 2, shift=6.0)])
    write_csv(folder / "new.csv", COLUMNS, new)
    labelled = [[*row, "good" if i < 30 else "bad"] for i, row in enumerate(new.tolist())]
    write_csv(folder / "labelled.csv", [*COLUMNS, "class"], labelled)
    result = kernull(
        "fit", "train.csv", "-o", "model.kernull", "--view", "colour=col_*",
        "--view", "size=width,height", cwd=folder,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return folder


def environment() -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    paths = [source, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
    }


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def kernull(*args: str, cwd: Path, stdin: bytes | None = None) -> Done:
    """Run the command line in this process, in a folder; processes of their own are slow."""
    from kernull.cli._app import app

    before = Path.cwd()
    os.chdir(cwd)
    try:
        done = CliRunner(env={"COLUMNS": "100"}).invoke(
            app, list(args), input=stdin or b"", prog_name="kernull"
        )
    finally:
        os.chdir(before)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def kernull_process(*args: str, cwd: Path, stdin: bytes = b"") -> Done:
    """Run the command line in a process of its own, as a user would."""
    done = subprocess.run(
        [sys.executable, "-m", "kernull.cli", *args],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

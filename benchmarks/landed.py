"""The decision of version 0.2 before cross-fitting, to run benchmarks of old and new together.

    python -m benchmarks.landed                 # make the worktree and its environment, once
    python -m benchmarks.landed -m benchmarks.alarms --seeds 5
    python -m benchmarks.landed my_script.py

The commit is checked out into ``out/landed/tree`` (a git worktree) and gets an environment,
``out/landed/env``. Its dependencies are those of the environment that runs this, so that old and
new meet the same NumPy and SciPy. The arguments are run by that environment's Python in the
worktree. `python` gives its path to benchmarks that run both sides themselves.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: The last commit whose default decision leaves rows out by closed forms.
COMMIT = "cc04241eb6ca4f43aa27861cec4e597e7358c5d5"
HOME = ROOT / "out" / "landed"
TREE, ENVIRONMENT = HOME / "tree", HOME / "env"


def python() -> Path:
    """Path of a Python that imports ``kernull`` and ``benchmarks`` of `COMMIT`."""
    executable = ENVIRONMENT / "bin" / "python"
    if not (TREE / "src").exists():
        HOME.mkdir(parents=True, exist_ok=True)
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(TREE), COMMIT)
    # `experiments` imports a module that the commit does not have.
    shutil.copy(ROOT / "src/kernull/_runtime.py", TREE / "src/kernull/_runtime.py")
    if not executable.exists():
        venv.create(ENVIRONMENT, symlinks=True)
        ours = Path(sysconfig.get_path("purelib"))
        theirs = next(ENVIRONMENT.glob("lib/python*/site-packages"))
        # A .pth file adds folders in order: the worktree first, then the packages of this
        # environment. Its own .pth files (an editable kernull) are not followed from there.
        (theirs / "landed.pth").write_text(f"{TREE / 'src'}\n{TREE}\n{ours}\n")
    return executable


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


def main() -> int:
    executable = python()
    if len(sys.argv) == 1:
        where = subprocess.run(
            [executable, "-c", "import kernull; print(kernull.__version__, kernull.__file__)"],
            cwd=TREE, check=True, capture_output=True, text=True,
        )  # fmt: skip
        print(f"{executable}: kernull {where.stdout.strip()}")
        return 0
    return subprocess.run([executable, *sys.argv[1:]], cwd=TREE).returncode


if __name__ == "__main__":
    raise SystemExit(main())

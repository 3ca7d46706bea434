"""Eight threads that load, fit, score and explain at once, for a minute.

    python -m benchmarks.threads              # a minute
    python -m benchmarks.threads --seconds 10

Afterwards everything must be as in one thread: the results, the warning filters that kernull could
have set, the umask, the number of BLAS threads, and no file left over.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine
from threadpoolctl import threadpool_info, threadpool_limits

import kernull

#: Modules whose own filters may stay: scikit-learn and pandas set them while they check arrays,
#: which is not safe in threads before Python 3.14. (Categories, by name.)
OTHERS = ("ComplexWarning", "DeprecationWarning")


class Work:
    """What the threads do, and what it gives in one thread."""

    def __init__(self, folder: Path) -> None:
        X, y = load_wine(return_X_y=True)
        self.X, self.normal, self.folder = X, X[y == 0], folder
        self.views = {"taste": list(range(6)), "look": list(range(6, 13))}
        # Nothing here warns: in threads, what is done about warnings is the process's.
        self.plain = {"views": self.views, "scaling": "standard"}
        self.model = kernull.MultiKernelFisherNull(**self.plain).fit(self.normal)
        self.path = folder / "model.kernull"
        kernull.save(self.model, self.path)
        self.actions: dict[str, Callable[[], Any]] = {
            "load": lambda: kernull.load(self.path).score_samples(self.X),
            "fit": self._fit,
            "tiled": self._tiled,
            "score": lambda: self.model.score_samples(self.X),
            "explain": lambda: self.model.explain(self.X[:20]).surprise,
            "save": self._save,
        }
        self.expected = {name: action() for name, action in self.actions.items()}

    def _fit(self) -> Any:
        model = kernull.MultiKernelFisherNull(**self.plain).fit(self.normal)
        return np.append(model.weights_, model.threshold_)

    def _tiled(self) -> Any:
        model = kernull.MultiKernelFisherNull(**self.plain, storage="tiled")
        return model.fit(self.normal).score_samples(self.X)

    def _save(self) -> Any:
        path = self.folder / f"{threading.get_ident()}.kernull"
        kernull.save(self.model, path)
        mode = path.stat().st_mode & 0o777
        path.unlink()
        return np.array([mode])

    def agrees(self, name: str, value: Any) -> bool:
        """Up to rounding, which other numbers of BLAS threads may change."""
        return bool(np.allclose(value, self.expected[name], rtol=1e-6, atol=1e-9, equal_nan=True))


def state() -> dict[str, Any]:
    """What belongs to the process and must stay."""
    mask = os.umask(0)
    os.umask(mask)
    return {
        "umask": mask,
        "blas": sorted(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"),
        "filters": {f for f in warnings.filters if f[2].__name__ not in OTHERS},
        "showwarning": warnings.showwarning,
    }


def run(seconds: float, threads: int = 8) -> tuple[collections.Counter[str], list[str]]:
    """Count what was done, and list what went wrong."""
    done: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    interval = sys.getswitchinterval()
    with tempfile.TemporaryDirectory() as holder:
        work = Work(Path(holder))
        before, files, end = state(), sorted(os.listdir(holder)), time.monotonic() + seconds

        def loop(seed: int) -> None:
            rng = np.random.default_rng(seed)
            names = list(work.actions)
            while time.monotonic() < end and len(wrong) < 10:
                name = names[int(rng.integers(len(names)))]
                try:
                    if not work.agrees(name, work.actions[name]()):
                        wrong.append(f"{name}: another result than in one thread")
                except Exception as error:
                    wrong.append(f"{name}: {type(error).__name__}: {error}")
                done[name] += 1

        sys.setswitchinterval(1e-5)
        try:
            pool = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
            for thread in pool:
                thread.start()
            for thread in pool:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        for name, value in state().items():
            if value != before[name]:
                wrong.append(f"{name}: {before[name]} before, {value} after")
        if sorted(os.listdir(holder)) != files:
            wrong.append(f"files left: {set(os.listdir(holder)) - set(files)}")
    return done, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    warnings.showwarning = lambda *_, **__: None  # a filter would hide one that is left behind
    # With one BLAS thread there would be nothing to restore. In a thread that ends: threadpoolctl
    # ignores others while it lives.
    setter = threading.Thread(target=lambda: threadpool_limits(2, user_api="blas"))
    setter.start()
    setter.join()
    done, wrong = run(options.seconds, options.threads)
    print(f"{options.threads} threads, {options.seconds:g} s: {dict(done)}")
    for line in wrong:
        print(f"FINDING {line}")
    print(f"== {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

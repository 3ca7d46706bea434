"""Scale on the CPU: a pass against scikit-learn, a fit against its passes, Dask against threads.

    python -m benchmarks.scale [exponentials] [pass] [fit] [dask] [--rows 20000] [--clock wall|cpu]

Every line is a ratio of two times taken one after the other in this run, alternating. On a
machine that others use too, ``--clock cpu`` counts this process's own seconds on all its threads.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.peers.registry import PLAIN
from kernull import MultiKernelFisherNull, Solver
from kernull.operators import TiledStack
from kernull.operators.tiled import blocks_of
from kernull.views import KernelSet

J, D = 4, 20
VIEWS = {f"view {v}": np.arange(D * v, D * v + D) for v in range(J)}
#: One kernel per view; the default has two.
MODEL = {**PLAIN, "views": VIEWS, "solver": Solver(tol=1e-4)}


def some_rows(n: int) -> Any:
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((n, 6))
    X = np.hstack([np.tanh(latent @ rng.standard_normal((6, D))) for _ in range(J)])
    return X + 0.3 * rng.standard_normal(X.shape)


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
CLOCK = "wall"


def seconds(run: Any) -> float:
    clock = CLOCKS[CLOCK]
    start = clock()
    run()
    return clock() - start


def best_of(repeat: int, **runs: Any) -> dict[str, float]:
    """Best time of each, taken in turns so that a busy machine is busy for all."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeat):
        for name, run in runs.items():
            times[name].append(seconds(run))
    return {name: min(values) for name, values in times.items()}


def exponentials() -> None:
    """Nanoseconds an exponential of a tile that fits the cache, on one core."""
    for dtype in (np.float64, np.float32):
        E = -20 * np.random.default_rng(0).random((256, 512)).astype(dtype)
        out = np.empty_like(E)
        runs: dict[str, Any] = {"numpy": lambda E=E, out=out: np.exp(E, out=out)}
        try:
            import torch

            torch.set_num_threads(1)
            a, b = torch.from_numpy(E), torch.from_numpy(out)
            runs["torch"] = lambda a=a, b=b: torch.exp(a, out=b)
        except ImportError:
            pass
        try:
            import numexpr

            numexpr.set_num_threads(1)
            runs["numexpr"] = lambda E=E, out=out: numexpr.evaluate("exp(E)", {"E": E}, out=out)
        except ImportError:
            pass
        try:
            import numba

            @numba.njit(fastmath=True)
            def compiled(E, out):  # type: ignore[no-untyped-def]
                for i in range(E.shape[0]):
                    for k in range(E.shape[1]):
                        out[i, k] = np.exp(E[i, k])

            runs["numba"] = lambda E=E, out=out, f=compiled: f(E, out)
        except ImportError:
            pass
        for name, t in best_of(50, **runs).items():
            print(f"exp {np.dtype(dtype).name} {name:8s} {t / E.size * 1e9:6.2f} ns")


def one_pass(n: int) -> None:
    kernel_set = KernelSet.fit(some_rows(n), VIEWS)
    threads = effective_n_jobs(-1)

    def sklearn_tiles() -> None:
        """The same tiles (those on and above the diagonal) by rbf_kernel, on the same cores."""
        size = TiledStack(kernel_set)._tiles.size
        blocks = blocks_of(n, size)
        todo = [(a, b) for i, a in enumerate(blocks) for b in blocks[i:]]

        def work(share: Any) -> None:
            for a, b in share:
                for view in kernel_set.views:
                    gamma = 0.5 / view.kernels[0].width ** 2
                    rbf_kernel(view.train[a], view.train[b], gamma=gamma)

        with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, [todo[w::threads] for w in range(threads)]))

    for dtype in (np.float64, np.float32):
        stack = TiledStack(kernel_set, dtype=dtype)
        V = np.ones((n, 1))
        t = best_of(3, sklearn=sklearn_tiles, ours=lambda s=stack, V=V: s.products(V))
        print(
            f"pass n={n} J={J} {np.dtype(dtype).name}: {t['ours']:.2f} s with products, rbf_kernel "
            f"alone {t['sklearn']:.2f} s, ratio {t['ours'] / t['sklearn']:.2f} (asked: 0.5)"
        )


def fit(n: int) -> None:
    X = some_rows(n)
    model = MultiKernelFisherNull(storage="tiled", **MODEL)
    stack = TiledStack(KernelSet.fit(X, VIEWS, widths=model.widths, scaling=model.scaling))
    t = best_of(2, one_pass=lambda: stack.products(np.ones((n, 1))), fit=lambda: model.fit(X))
    passes = model.n_iter_
    print(
        f"fit n={n} J={J} delta=0.01 gap {model.gap_:.1e}: {t['fit']:.1f} s, {passes} passes of "
        f"{t['one_pass']:.2f} s, ratio {t['fit'] / passes / t['one_pass']:.2f} (asked: 1.3)"
    )


def dask(n: int) -> None:
    from distributed import Client, LocalCluster

    X = some_rows(n)
    here = MultiKernelFisherNull(storage="tiled", **MODEL)
    there = MultiKernelFisherNull(storage="dask", **MODEL)
    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        there.fit(X[:600], client=client)  # the workers import what they need
        t = best_of(2, here=lambda: here.fit(X), there=lambda: there.fit(X, client=client))
    apart = np.abs(here.coef_ - there.coef_).max() / np.abs(here.coef_).max()
    print(
        f"dask n={n}: {t['there']:.1f} s against {t['here']:.1f} s on two threads, ratio "
        f"{t['there'] / t['here']:.2f} (asked: 1.5); coefficients apart by {apart:.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["exponentials", "pass", "fit", "dask"])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    args = parser.parse_args()
    global CLOCK
    CLOCK = args.clock
    for name in args.what:
        if name == "exponentials":
            exponentials()
        else:
            {"pass": one_pass, "fit": fit, "dask": dask}[name](args.rows)


if __name__ == "__main__":
    main()

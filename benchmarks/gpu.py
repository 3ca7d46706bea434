"""One GPU: times beside their floors, after checks against dense float64.

    python -m benchmarks.gpu [--only check,10k,100k,300k,1m,nystroem,default,rows,auc,tune]

Prints one table, ends with a sentence for docs/results/scale.md and, where the variable OUT names
a folder, writes the table to OUT/gpu.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch

    from kernull.mkl.balls import LpBall
    from kernull.mkl.problems import FisherProblem
    from kernull.mkl.solvers import solve
    from kernull.operators import Budget, DenseStack, LowRankStack
    from kernull.operators.torch import TorchTiledStack, fit_on_device, to_host
except ImportError as error:  # a machine without one of the dependencies
    sys.exit(f"benchmarks.gpu cannot run here: {error}")

J, D = 10, 100
ROWS: list[dict[str, Any]] = []


def rows_like_the_papers(
    n: int, seed: int = 0, device: str = "cuda", *, mixed_up: bool = False
) -> Any:
    """J views of D features: noisy smooth images of ten common latent variables.

    The images are the same for every n and seed. ``mixed_up`` rows have
    every other view from another, wider draw.
    """
    common = torch.Generator(device=device).manual_seed(0)
    mixes = torch.randn(J, 10, D, generator=common, device=device) / 10**0.5
    g = torch.Generator(device=device).manual_seed(seed)
    z = torch.randn(n, 10, generator=g, device=device)
    others = torch.randn(n, 10, generator=g, device=device) * 1.5 if mixed_up else z
    views = []
    for v in range(J):
        noise = torch.randn(n, D, generator=g, device=device)
        views.append(torch.tanh((others if v % 2 else z) @ mixes[v]) + 0.5 * noise)
    return torch.cat(views, dim=1)


VIEWS = {f"view {v}": np.arange(v * D, v * D + D) for v in range(J)}


def seconds(run: Any, repeat: int = 3) -> tuple[float, Any]:
    """Median wall time of a call that ends in host results, after one call to warm up."""
    out, times = run(), []
    for _ in range(repeat):
        torch.cuda.synchronize()
        start = time.perf_counter()
        out = run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), out


def ceilings() -> dict[str, float]:
    """Measured rates of this card: copy, float16 and float32 matrix products."""
    source = torch.randn(2**29, device="cuda")
    copy, _ = seconds(source.clone, 5)
    rates = {"copy_TB_s": 2 * source.numel() * 4 / copy / 1e12}
    for dtype in (torch.float16, torch.float32):
        a = torch.randn(8192, 8192, device="cuda").to(dtype)
        matmul, _ = seconds(lambda a=a: a @ a, 5)
        rates[f"{str(dtype)[6:]}_TFLOP_s"] = 2 * 8192**3 / matmul / 1e12
    # One exponential a clock and special-function lane: 16 lanes a multiprocessor.
    card = torch.cuda.get_device_properties(0)
    rates["exp_T_s"] = 16 * card.multi_processor_count * 1.98e9 / 1e12
    return rates


def report(name: str, **values: Any) -> None:
    ROWS.append({"name": name, **values})
    text = "  ".join(
        f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()
    )
    print(f"{name:34s} {text}", flush=True)


def pass_floor(entries: float, rates: dict[str, float]) -> float:
    """Seconds below which no pass over so many kernel values can come: three float16 products."""
    return max(
        entries * 2 * D * 3 / (rates["float16_TFLOP_s"] * 1e12), entries / (rates["exp_T_s"] * 1e12)
    )


def stack_of(X: Any, widths: Any = (0.5,), dtype: Any = None) -> TorchTiledStack:
    """Kernels fitted where the rows are, none of them formed."""
    kernel_set = fit_on_device(X, VIEWS, widths=widths, dtype=dtype)
    rows = kernel_set.views[0].train
    return TorchTiledStack(kernel_set, rows.device, rows.dtype)


def fit(stack: Any, delta: float = 1e-2, tol: float = 1e-6, landmarks: int = 0) -> Any:
    problem, budget = FisherProblem(stack, delta * stack.n), Budget(preconditioner_rows=landmarks)
    return solve(problem, LpBall(2), "subspace", tol=tol, budget=budget)


def check(_: dict[str, float]) -> None:
    for n in (1000, 3001):
        X = rows_like_the_papers(n, seed=n)
        tiled = stack_of(X, (0.5, 1.0))
        exact = stack_of(X.double(), (0.5, 1.0)).dense()
        for k in (1, 3):
            V = torch.randn(n, k, device="cuda")
            truth = exact.products(V)
            for fused in (True, False):
                stack = stack_of(X, (0.5, 1.0))
                stack.fused = fused
                out = stack.products(V)
                error = np.linalg.norm(out - truth) / np.linalg.norm(truth)
                report("check products", n=n, k=k, fused=fused, error=float(error))
                assert error < 3e-6, error
            part = tiled[: n // 3]
            error = np.linalg.norm(part.products(V) - truth[:, : n // 3]) / np.linalg.norm(truth)
            assert error < 3e-6, error
    a, b = fit(tiled), fit(DenseStack.of(to_host(tiled.kernel_set)))
    report(
        "check fit against the host",
        value=abs(a.value / b.value - 1),
        weights=float(np.abs(a.weights - b.weights).max()),
        gap=a.gap,
    )


def ten_thousand(rates: dict[str, float]) -> None:
    n = 10_000
    X = rows_like_the_papers(n)
    for dtype in (torch.float32, torch.float64):
        name = str(dtype)[6:]
        tiled = stack_of(X, dtype=dtype)
        stack = tiled.dense()
        solving, result = seconds(lambda stack=stack: fit(stack))
        one_pass, _ = seconds(lambda stack=stack: stack.products(np.ones(n)), 5)
        size = stack.kernels.numel() * stack.kernels.element_size()
        floor = size / (rates["copy_TB_s"] * 1e12)
        report(
            f"n=10,000 dense {name}: solve",
            s=solving,
            passes=result.n_iter,
            gap=result.gap,
            pass_s=one_pass,
            floor_s=floor * result.n_iter,
            ratio=solving / (floor * result.n_iter),
        )
        del stack

        def build_and_fit(dtype: Any = dtype) -> Any:
            return fit(stack_of(X, dtype=dtype).dense())

        total, _ = seconds(build_and_fit)
        report(f"n=10,000 dense {name}: build+solve", s=total)
    total, result = seconds(lambda: fit(stack_of(X)))
    report("n=10,000 tiled float32: all", s=total, passes=result.n_iter, gap=result.gap)


def matrix_free(n: int, rates: dict[str, float], deltas: tuple[float, ...]) -> None:
    warm = stack_of(rows_like_the_papers(20_000))
    fit(warm, landmarks=1000)  # compiles
    X = rows_like_the_papers(n)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    floor = pass_floor(J * n * n / 2, rates)
    for delta in deltas:
        torch.cuda.synchronize()
        start = time.perf_counter()
        stack = stack_of(X)
        torch.cuda.synchronize()
        fitted = time.perf_counter()
        result = fit(stack, delta, landmarks=1000)  # what a million rows have by default
        solved = time.perf_counter()
        stack.products(np.ones(n))
        one_pass = time.perf_counter() - solved
        report(
            f"n={n:,} tiled delta={delta:g}",
            s=solved - start,
            scale_and_width_s=fitted - start,
            passes=result.n_iter,
            gap=result.gap,
            pass_s=one_pass,
            pass_floor_s=floor,
            pass_ratio=one_pass / floor,
            peak_GB=torch.cuda.max_memory_allocated() / 1e9,
        )
        del stack


def a_million_by_landmarks(rates: dict[str, float]) -> None:
    n, landmarks = 1_000_000, 5_000
    X = rows_like_the_papers(n)
    torch.cuda.synchronize()
    start = time.perf_counter()
    stack = stack_of(X)
    index = np.sort(np.random.default_rng(0).choice(n, landmarks, replace=False))
    low = LowRankStack(stack, index)
    built = time.perf_counter() - start
    result = fit(low)
    total = time.perf_counter() - start
    floor = pass_floor(2 * J * float(n) * landmarks, rates)
    one_pass, _ = seconds(lambda: low.products(np.ones(n)), 1)
    report(
        "n=1,000,000 Nystroem 5,000",
        s=total,
        build_s=built,
        passes=result.n_iter,
        gap=result.gap,
        pass_s=one_pass,
        pass_floor_s=floor,
        ratio=total / (floor * result.n_iter),
        peak_GB=torch.cuda.max_memory_allocated() / 1e9,
    )


def default_estimator(_: dict[str, float]) -> None:
    """MultiKernelFisherNull() on 100,000 x 30 tensors; scores of 10,000 rows in both types."""
    from kernull import MultiKernelFisherNull, Solver, Storage

    draw = np.random.default_rng(0)
    mix = draw.standard_normal((10, 30))

    def rows(n: int) -> Any:
        table = draw.standard_normal((n, 10)) @ mix + 0.5 * draw.standard_normal((n, 30))
        return torch.as_tensor(table, device="cuda")

    X, new = rows(100_000), rows(10_000)
    small = X[:3000].cpu().numpy()
    options = {"storage": "tiled", "solver": Solver(tol=1e-9)}
    here = MultiKernelFisherNull(**options).fit(small).score_samples(new.cpu().numpy())
    there = MultiKernelFisherNull(**options).fit(X[:3000]).score_samples(new).cpu().numpy()
    report("default, n=3,000: scores apart from the host's", most=float(np.abs(there - here).max()))
    for decision in ("evidence", "sum"):
        for dtype in ("float64", "float32"):
            model = MultiKernelFisherNull(decision=decision, storage=Storage(dtype=dtype))
            fitting, _ = seconds(lambda model=model: model.fit(X), 3)
            scoring, _ = seconds(lambda model=model: model.score_samples(new), 5)
            report(
                f"n=100,000 x 30, {decision}, {dtype}",
                fit_s=fitting,
                passes=model.n_iter_,
                gap=model.gap_,
                score_10k_s=scoring,
            )


def every_row(_: dict[str, float]) -> None:
    """MultiKernelFisherNull() on 1,000,000 x 100 tensors, and scores of 10,000 rows.

    Weights come from 4,000 rows; they and distances are computed on the GPU, scalings on the host.
    """
    from kernull import MultiKernelFisherNull

    draw = torch.Generator(device="cuda").manual_seed(0)
    mix = torch.randn(10, 100, generator=draw, device="cuda", dtype=torch.float64)

    def rows(n: int) -> Any:
        latent, noise = (
            torch.randn(n, d, generator=draw, device="cuda", dtype=torch.float64) for d in (10, 100)
        )
        return latent @ mix + 0.5 * noise

    X, new = rows(1_000_000), rows(10_000)
    start = time.perf_counter()
    model = MultiKernelFisherNull().fit(X)
    fitted = time.perf_counter()
    flagged = float((model.predict(new) == -1).double().mean())
    done = time.perf_counter()
    report(
        "n=1,000,000 x 100, all rows in the distances",
        fit_s=fitted - start,
        score_10k_s=done - fitted,
        flagged=flagged,
    )


def sentence() -> str:
    """What docs/results/scale.md says of a million rows."""
    found = [row for row in ROWS if row["name"] == "n=1,000,000 tiled delta=0.01"]
    if not found:
        return ""
    row = found[0]
    return (
        f"One million rows in {J} views of {D} columns, exact and certified to a gap of "
        f"{row['gap']:.0e}: {row['s']:.0f} s and {row['peak_GB']:.1f} GB on one "
        f"{torch.cuda.get_device_name().removeprefix('NVIDIA ')}, {row['passes']} passes of "
        f"{row['pass_s']:.1f} s, each {row['pass_ratio']:.1f} times its floor."
    )


def auc(_: dict[str, float]) -> None:
    from sklearn.metrics import roc_auc_score

    X = rows_like_the_papers(5000, seed=1)
    both = torch.cat([rows_like_the_papers(2000, 2), rows_like_the_papers(2000, 3, mixed_up=True)])
    truth = np.repeat([1, 0], 2000)
    values = {}
    for dtype in (torch.float32, torch.float64):
        stack = stack_of(X, dtype=dtype)
        result = fit(stack, 1e-3)
        left = to_host(stack.kernel_set).with_rows(both.double().cpu().numpy())
        cross = TorchTiledStack(stack.kernel_set, "cuda", dtype, left=left)
        values[dtype] = roc_auc_score(truth, result.weights @ cross.products(result.coef))
    a, b = values.values()
    report(
        "AUC float32, float64 (points)", float32=100 * a, float64=100 * b, apart=100 * abs(a - b)
    )


def tune(rates: dict[str, float]) -> None:
    """Launch parameters of the fused kernel."""
    from kernull.operators import triton

    n = 65_536
    X = rows_like_the_papers(n)
    floor = pass_floor(J * n * n / 2, rates)
    usual = dict(triton.LAUNCH)
    for rows, warps, stages in ((64, 4, 2), (64, 4, 3), (128, 8, 2), (128, 4, 2), (32, 4, 2)):
        triton.LAUNCH.update(BM=rows, num_warps=warps, num_stages=stages)
        try:
            stack = stack_of(X)
            V = torch.ones(n, 1, device="cuda")
            t, _ = seconds(lambda stack=stack, V=V: stack._products(V), 2)
            report("tune", rows=rows, warps=warps, stages=stages, s=t, ratio=t / floor)
        except Exception as error:
            report("tune", rows=rows, warps=warps, stages=stages, failed=str(error)[:80])
    triton.LAUNCH.update(usual)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="check,10k,100k,300k,1m,nystroem,default,rows,auc")
    wanted = parser.parse_args().only.split(",")
    if not torch.cuda.is_available():
        sys.exit("benchmarks.gpu needs a CUDA device; torch sees none.")
    rates = ceilings()
    report(torch.cuda.get_device_name(), torch=torch.__version__, date=time.strftime("%Y-%m-%d"))
    report("measured ceilings", **rates)
    steps = {
        "check": check,
        "tune": tune,
        "10k": ten_thousand,
        "100k": lambda r: matrix_free(100_000, r, (1e-2, 1e-3)),
        "300k": lambda r: matrix_free(300_000, r, (1e-2,)),
        "1m": lambda r: matrix_free(1_000_000, r, (1e-2,)),
        "nystroem": a_million_by_landmarks,
        "default": default_estimator,
        "rows": every_row,
        "auc": auc,
    }
    for name, step in steps.items():
        if name in wanted:
            step(rates)
            torch.cuda.empty_cache()
            if os.environ.get("OUT"):
                Path(os.environ["OUT"], "gpu.json").write_text(json.dumps(ROWS, indent=1))
    print(sentence())


if __name__ == "__main__":
    main()

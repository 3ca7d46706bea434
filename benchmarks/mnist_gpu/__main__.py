"""``python -m benchmarks.mnist_gpu``: arguments, features, then tasks by a crew of processes."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mnist_gpu import __doc__ as about

try:
    import torch

    from benchmarks.mnist_gpu.crew import agenda, run_crew
    from benchmarks.mnist_gpu.features import NETWORKS, QUARTERS, SCALINGS, SMALL, extract
    from benchmarks.mnist_gpu.output import averages, say, write_csv
    from benchmarks.mnist_gpu.protocol import generator
    from experiments.datasets import load_mnist
except ImportError as error:  # a machine without one of the dependencies
    sys.exit(f"benchmarks.mnist_gpu cannot run here: {error}")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mnist_gpu", description=about.splitlines()[0]
    )
    parser.add_argument("--data", default=os.environ.get("KERNULL_DATA"))
    parser.add_argument("--weights", default=os.environ.get("KERNULL_WEIGHTS"))
    parser.add_argument("--networks", default="", help="comma-separated; all present by default")
    parser.add_argument("--out", default=os.environ.get("OUT", "out/mnist_gpu"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--digits", default="0,1,2,3,4,5,6,7,8,9")
    parser.add_argument("--per-digit", type=int, help="training images a digit (default: all)")
    parser.add_argument("--test", type=int, help="first test images only (default: all)")
    parser.add_argument("--regions", action="store_true", help="also quarters of each image")
    parser.add_argument("--limit", type=float, default=540, help="seconds after which to stop")
    parser.add_argument("--features-only", action="store_true", help="extract, then stop")
    parser.add_argument("--scalings", default=",".join(SCALINGS))
    parser.add_argument(
        "--skip", default="", help="of kpca, gp, mahalanobis, lof, forest, svm: left out"
    )
    parser.add_argument("--scratch", default="/dev/shm/kernull-mnist", help="for the features")
    return parser.parse_args()


def main() -> None:
    """Features, then digits by a few processes."""
    options = arguments()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    out, scratch = Path(options.out), Path(options.scratch)
    for folder in (out, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    mnist = load_mnist(home=options.data)
    weights = Path(options.weights)
    names = [n for n in options.networks.split(",") if n] or [
        name for name in NETWORKS if (weights / f"{name}.onnx").is_file()
    ]
    n_train = len(mnist.train_labels)
    images = np.concatenate([mnist.train_images, mnist.test_images[: options.test]])
    labels = np.concatenate([mnist.train_labels, mnist.test_labels[: options.test]])
    wanted = np.arange(len(images))
    if options.per_digit is not None:  # only what some digit's pool holds
        pools = [
            generator("E8", "train", d).permutation(np.flatnonzero(mnist.train_labels == d))
            for d in range(10)
        ]
        pools = [pool[: options.per_digit] for pool in pools]
        wanted = np.concatenate([*pools, np.arange(n_train, len(images))])
    say(f"device {options.device}; networks {', '.join(names)}; {len(wanted)} images")
    views = list(names)
    if options.regions:
        views += [f"{name}@{q}" for name in names if name in SMALL for q in QUARTERS]
    extract(views, images, wanted, weights, scratch, options.device, options.batch)
    if options.features_only:
        return
    if options.device == "cuda":
        torch.cuda.empty_cache()
    skip = set(options.skip.split(","))
    todo = agenda(
        [int(d) for d in options.digits.split(",")],
        options.scalings.split(","),
        regions=options.regions,
        machines="svm" not in skip,
    )
    workers = min(options.workers, len(todo))
    job = {
        "threads": max(1, (os.cpu_count() or 1) // workers),
        "folder": scratch,
        "networks": views,
        "labels": labels,
        "n_train": n_train,
        "per_digit": options.per_digit,
        "device": options.device,
        "skip": skip,
    }
    rows: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    for task, found, learned, seconds, problem, _ in run_crew(job, todo, workers, options.limit):
        named = task.scaling + task.tag
        rows += found
        kept |= {f"{task.digit}, {named}, {width:g}": w for width, w in learned.items()}
        write_csv(out / "results.csv", rows)
        np.savez_compressed(out / "weights.npz", networks=np.array(views), **kept)
        (out / "log.txt").write_text("\n".join(averages(rows)) + "\n")
        say(f"digit {task.digit}, {named}: {seconds:.1f} s {problem}")
    print("\n".join(averages(rows)), flush=True)


if __name__ == "__main__":
    main()

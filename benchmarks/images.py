"""The image path: seconds for a hundred images with four small networks, and what the cache saves.

    python -m benchmarks.images                       # needs KERNULL_WEIGHTS
    python -m benchmarks.images scaling [--cache DIR] # also KERNULL_DATA, for Flowers17; minutes

A folder of 70 drawings, all alike, is learned; of 30 new ones, ten of another kind, each gets a
score, a verdict and reasons. Asked for: under a minute on two cores. The second command asks
which scaling suits deep features when there are more of them than images, and whether the
thresholds then hold.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kernull import ImageViews, MultiKernelFisherNull
from kernull.metrics import auc
from kernull.views.images import BackboneFeatures
from kernull.views.images.cache import FeatureCache

NETWORKS = ["alexnet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0"]


def draw(rng, odd, height=240, width=320):
    """A disc, or for odd ones a square, of some colour on a noisy ground."""
    y, x = np.mgrid[0:height, 0:width]
    cy, cx = rng.uniform(0.35, 0.65, 2) * (height, width)
    radius = rng.uniform(0.2, 0.3) * height
    distance = np.maximum(abs(y - cy), abs(x - cx)) if odd else np.hypot(y - cy, x - cx)
    image = rng.normal(120, 15, (height, width, 3))
    image[distance < radius] = rng.uniform(0, 255, 3)
    return np.clip(image, 0, 255).astype(np.uint8)


def hundred_images(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    for part, count, odd in (("known", 70, False), ("new/a", 20, False), ("new/odd", 10, True)):
        (folder / part).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(draw(rng, odd)).save(folder / part / f"{i:02d}.jpg")
    images = ImageViews(NETWORKS, cache=folder / "cache")
    labels = np.repeat([1, -1], [20, 10])
    print(f"100 JPEG files of 320 x 240, networks {', '.join(NETWORKS)}")
    for title in ("computed", "from the cache"):
        start = time.perf_counter()
        model = MultiKernelFisherNull(views=images.views_, scaling="none")
        model.fit(images.transform(folder / "known"))
        new = images.transform(folder / "new")
        scores, why = model.score_samples(new), model.explain(new)
        seconds = time.perf_counter() - start
        print(
            f"  {title:>15}: fit, score and explain {seconds:6.2f} s, AUC {auc(labels, scores):.3f}"
        )
    print("  " + why.words(29).replace("\n", "\n  "))
    for name in NETWORKS:
        start = time.perf_counter()
        BackboneFeatures(name).transform(folder / "known")
        print(f"  {name:>20}: {(time.perf_counter() - start) / 70 * 1e3:6.1f} ms an image")


def many_rows(folder, rows=70_000, features=1280, batch=256):
    cache = FeatureCache(folder, "benchmark")
    digests = [i.to_bytes(20, "big") for i in range(rows)]
    values = np.random.default_rng(0).normal(size=(batch, features)).astype(np.float32)
    start = time.perf_counter()
    for k in range(0, rows, batch):
        part = digests[k : k + batch]
        cache.put(part, values[: len(part)])
    written = time.perf_counter() - start
    start = time.perf_counter()
    found = cache.get(digests, features)
    read = time.perf_counter() - start
    size = cache.path.stat().st_size / 2**20
    print(f"Cache, {len(found)} rows of {features} features, {size:.0f} MiB in one file")
    print(f"  written in batches of {batch}: {written:.1f} s; read: {read:.1f} s")


def scaling(cache, n_train=60):
    from experiments.datasets import load_flowers17_images

    flowers = list(load_flowers17_images())
    labels = np.array([flower.label for flower in flowers])
    images = ImageViews(NETWORKS, cache=cache)
    X = images.transform([flower.image for flower in flowers])
    print(f"Flowers17, {n_train} training images a flower, the others new; asked false alarms 5%")
    for kind in ("none", "standard", "whiten"):
        for width in (0.5, 1.0):
            for calibration in ("loo", "split"):
                results = []
                for flower in range(17):
                    own = np.flatnonzero(labels == flower)
                    own = np.random.default_rng(flower).permutation(own)
                    new = np.concatenate([own[n_train:], np.flatnonzero(labels != flower)])
                    model = MultiKernelFisherNull(
                        views=images.views_,
                        scaling=kind,
                        widths=width,
                        calibration=calibration,
                        calibration_fraction=20,
                    ).fit(X[own[:n_train]])
                    scores = model.score_samples(X[new])
                    truth = np.where(labels[new] == flower, 1, -1)
                    alarms = (scores[truth == 1] < model.threshold_).mean()
                    results.append((auc(truth, scores), alarms))
                area, alarms = np.mean(results, axis=0)
                print(
                    f"  {kind:>8}, width {width}, {calibration:>5}: "
                    f"AUC {100 * area:.1f}, false alarms {100 * alarms:.0f}%"
                )


def main() -> None:
    if not os.environ.get("KERNULL_WEIGHTS"):
        sys.exit("set KERNULL_WEIGHTS to the folder of the networks")
    with tempfile.TemporaryDirectory() as folder:
        if "scaling" in sys.argv:
            given = sys.argv[-1] if "--cache" in sys.argv else None
            scaling(given or folder)
            return
        hundred_images(Path(folder) / "images")
        many_rows(Path(folder) / "rows")


if __name__ == "__main__":
    main()

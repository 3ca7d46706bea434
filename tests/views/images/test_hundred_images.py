"""The whole image path on a hundred images with four small networks: files in, reasons out."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import make_pipeline

from benchmarks.images import NETWORKS, draw
from kernull import ImageViews, MultiKernelFisherNull
from kernull.metrics import auc
from kernull.views.images import image_paths


def test_a_hundred_images_from_files_to_reasons(real_weights, tmp_path, counted):
    missing = [name for name in NETWORKS if not (real_weights / f"{name}.onnx").is_file()]
    if missing:
        pytest.skip(f"KERNULL_WEIGHTS has no {missing}")
    rng = np.random.default_rng(0)
    for part, count, odd in (("known", 70, False), ("new/a", 20, False), ("new/odd", 10, True)):
        (tmp_path / part).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(draw(rng, odd)).save(tmp_path / part / f"{i:02d}.jpg")
    images = ImageViews(NETWORKS, weights=real_weights, cache=tmp_path / "cache")
    model = make_pipeline(images, MultiKernelFisherNull(views=images.views_, scaling="none"))
    model.fit(tmp_path / "known")
    assert sum(counted) == 4 * 70
    scores = model.score_samples(tmp_path / "new")
    assert sum(counted) == 4 * 100
    labels = np.array([-1 if "odd" in path.parts else 1 for path in image_paths(tmp_path / "new")])
    assert auc(labels, scores) > 0.95
    np.testing.assert_array_equal(
        model.predict(tmp_path / "new") == 1, scores >= model[-1].threshold_
    )
    why = model[-1].explain(images.transform(tmp_path / "new"))
    assert why.view_names == tuple(NETWORKS)
    np.testing.assert_allclose(why.scores, scores)
    assert sum(counted) == 4 * 100  # everything after the first time came from the cache

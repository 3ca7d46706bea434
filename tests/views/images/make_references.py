"""Write references.json: features by plain onnxruntime and Pillow, without kernull.

    python tests/views/images/make_references.py

The preprocessing is written out here a second time, from the description of the files.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from PIL import Image

IMAGENET = (np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]))


def imagenet(pixels):
    return (pixels / 255.0 - IMAGENET[0]) / IMAGENET[1]


def caffe(pixels):
    return pixels[:, :, ::-1] - np.array([103.939, 116.779, 123.68])


NETWORKS = {
    "alexnet": (224, imagenet),
    "vgg16": (224, imagenet),
    "squeezenet1_1": (227, caffe),
    "mobilenet_v2": (224, imagenet),
    "efficientnet_lite0": (224, lambda pixels: (pixels - 127.0) / 128.0),
    "inception_v3": (299, lambda pixels: (pixels - 127.5) / 127.5),
}


def fixed_image():
    """A colourful pattern in whole numbers, 240 x 320: the same on every machine."""
    y, x = np.mgrid[0:240, 0:320]
    red = (x * x // 97 + y) % 256
    green = 255 - (abs(x - 160) + abs(y - 120)) * 255 // 280
    blue = np.where((x // 40 + y // 30) % 2 == 0, 210, y * 255 // 240)
    return np.stack([red, green, blue], axis=-1).astype(np.uint8)


def reference(path, size, prepare):
    small = Image.fromarray(fixed_image()).resize((size, size), Image.Resampling.BILINEAR)
    x = prepare(np.asarray(small).astype(np.float64)).transpose(2, 0, 1)[None].astype(np.float32)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    features = session.run(None, {session.get_inputs()[0].name: x})[0][0].astype(np.float64)
    chosen = np.linspace(0, len(features) - 1, 16).astype(int)
    return {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "n_features": len(features),
        "norm": float(np.linalg.norm(features)),
        "columns": chosen.tolist(),
        "features": features[chosen].tolist(),
    }


def main() -> None:
    folder = os.environ.get("KERNULL_WEIGHTS") or sys.exit("set KERNULL_WEIGHTS")
    out = {
        name: reference(Path(folder) / f"{name}.onnx", *how)
        for name, how in NETWORKS.items()
        if (Path(folder) / f"{name}.onnx").is_file()
    }
    target = Path(__file__).with_name("references.json")
    target.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Features of the images by each network, and how a digit's methods see them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.mnist_gpu.onnx_torch import TorchNetwork
from benchmarks.mnist_gpu.output import say

IM = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
#: Side of the input, mean and scale of each channel (of 0..255), in the network's order.
NETWORKS: dict[str, tuple[int, Any, Any]] = {
    "alexnet": (224, *IM),
    "squeezenet1_1": (227, [103.939, 116.779, 123.68], 1.0),
    "mobilenet_v2": (224, *IM),
    "efficientnet_lite0": (224, 127.0, 128.0),
    "vgg16": (224, *IM),
    "inception_v3": (299, 127.5, 127.5),
}
SCALINGS = ("whiten-raw", "standard", "whiten")
#: Quarters of the 28 x 28 image, 14 pixels a side: rows and columns of their corners.
QUARTERS = {"nw": (2, 2), "ne": (2, 12), "sw": (12, 2), "se": (12, 12)}
SMALL = ("alexnet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0")


@torch.inference_mode()
def features(network: str, path: Path, images: Any, device: str, batch: int) -> Any:
    """Signed roots of pooled features (n, d) of grey images, of unit length, float32."""
    side, mean, scale = NETWORKS[network]
    net = TorchNetwork(path, device=device)
    shift = torch.tensor(mean, device=device).reshape(1, -1, 1, 1)
    unit = torch.tensor(scale, device=device).reshape(1, -1, 1, 1)
    out = []
    for first in range(0, len(images), batch):
        x = torch.as_tensor(images[first : first + batch], device=device)[:, None].float()
        # Axis by axis with rounding to whole grey levels, as Pillow resizes.
        for size in ((x.shape[2], side), (side, side)):
            x = functional.interpolate(x, size, mode="bilinear", align_corners=False)
            x = (x + 0.5).floor_()
        # Grey, so that the order of the channels concerns the mean alone (given in that order).
        x = (x.expand(-1, 3, -1, -1) - shift) / unit
        found = net(x)[0].float()
        out.append(functional.normalize(found.sign() * found.abs().sqrt()).cpu())
    return torch.cat(out).numpy()


def shrunk_covariance(Z: Any) -> Any:
    """Ledoit-Wolf covariance of centred rows."""
    n, d = Z.shape
    S = Z.T @ Z / n
    level = S.trace() / d
    distance = (S * S).sum() / d - level**2
    noise = (Z.square().sum(1).square().sum() / n - (S * S).sum()) / (d * n)
    shrinkage = float((torch.minimum(noise, distance) / distance).clamp(0.0, 1.0))
    S.mul_(1 - shrinkage).diagonal().add_(shrinkage * level)
    return S


def scale_view(X: Any, train: Any, rest: Any, scaling: str) -> tuple[Any, Any]:
    """Scaled rows of one view, training and others, in float64 on X's device."""
    A, B = X[train].double(), X[rest].double()
    mean, std = A.mean(0), A.std(0, correction=0)
    std[std <= 1e-12] = 1.0
    if scaling == "whiten-raw":
        std = torch.ones_like(std)
    A, B = (A - mean) / std, (B - mean) / std
    if scaling != "standard":
        values, vectors = torch.linalg.eigh(shrunk_covariance(A))
        # Distances do not see the last rotation back, so it is left out.
        turn = vectors / values.sqrt()
        A, B = A @ turn, B @ turn
    return A, B


def squared_distances(A: Any, B: Any) -> Any:
    """|a - b|^2 between rows."""
    return (A.square().sum(1)[:, None] + B.square().sum(1) - 2 * A @ B.T).clamp_(min=0.0)


def extract(
    views: list[str],
    images: Any,
    wanted: Any,
    weights: Path,
    scratch: Path,
    device: str,
    batch: int,
) -> None:
    """Files of the views' features in the scratch folder; those that are there are kept."""
    for view in views:
        name, _, quarter = view.partition("@")
        file = scratch / f"{view}.npy"
        if not file.is_file():
            top, left = QUARTERS.get(quarter, (0, 0))
            size = 14 if quarter else 28
            found = features(
                name,
                weights / f"{name}.onnx",
                images[wanted, top : top + size, left : left + size],
                device,
                batch,
            )
            table = np.zeros((len(images), found.shape[1]), dtype=np.float32)
            table[wanted] = found
            np.save(scratch / f"{view}.tmp.npy", table)
            os.replace(scratch / f"{view}.tmp.npy", file)
        say(f"features of {view}")

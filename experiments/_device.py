"""The same kernels and models as in `_models`, with all matrices on a torch device.

For experiments of thousands of models at sizes where a pass over the kernels costs more than the
reduced problems: set ``KERNULL_DEVICE=cuda``. Reduced problems stay on the host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments._models import Split, kernels_by_width, one_hot_scores
from kernull._typing import Array
from kernull.balls import LpBall
from kernull.errors import MissingDependencyError
from kernull.stacks import KernelSet
from kernull.views import join_views, resolve_views

__all__ = ["asked_device", "kernels_on", "one_kernel_scores"]


def asked_device() -> str | None:
    """The device named by ``KERNULL_DEVICE``; None is NumPy."""
    return os.environ.get("KERNULL_DEVICE") or None


def kernels_on(
    device: str | None,
    widths: Sequence[float],
    views: Mapping[str, Any],
    split: Split,
    dtype: str = "float64",
) -> Iterator[tuple[float, Any, Any]]:
    """`kernels_by_width` as stacks on a device (None: NumPy)."""
    if device is None:
        yield from kernels_by_width(widths, views, split, dtype)
        return
    torch, tiled = _torch()
    table, columns = join_views(views)
    rows = table[np.concatenate([split.validation, split.test])]
    resolved = resolve_views(columns, table.shape[1])
    for width in sorted(widths, reverse=True):
        bank = KernelSet.fit(table[split.train], resolved, widths=width)
        kernels = [view.kernels for view in bank.views]

        def tensors(parts: Sequence[Array]) -> list[Any]:
            return [torch.as_tensor(part).to(device, getattr(torch, dtype)) for part in parts]

        train = tensors([view.train for view in bank.views])
        left = tensors([view.transform(rows) for view in bank.views])
        stack = tiled.TorchTiledStack(train, kernels).dense()
        yield width, stack, tiled.TorchTiledStack(train, kernels, left=left).dense()


def one_kernel_scores(
    stack: Any, cross: Any, deltas: tuple[float, ...], tol: float
) -> tuple[Array, Array]:
    """`one_hot_scores` on either kind of stack."""
    if hasattr(stack, "combine"):
        return one_hot_scores(stack, cross, deltas, tol)
    torch, _ = _torch()
    kernels, n, ball = stack.kernels, stack.n, LpBall(1.0)
    eye = torch.eye(n, dtype=torch.float64, device=kernels.device)
    ones = torch.ones((n, 1), dtype=torch.float64, device=kernels.device)
    scores, chosen = [], []
    for delta in deltas:

        def solve(K: Any, ridge: float = delta * n) -> tuple[Any, Array]:
            a = torch.cholesky_solve(ones, torch.linalg.cholesky(K.double() + ridge * eye))[:, 0]
            u = (kernels @ a.to(kernels.dtype)).double() @ a
            return a, np.asarray(u.cpu())

        _, u = solve(kernels.mean(dim=0))  # uniform weights of the simplex
        seen: dict[int, tuple[float, Any]] = {}
        j = int(np.argmax(ball.oracle(u)))
        while j not in seen:
            a, u = solve(kernels[j])
            seen[j] = float(a.sum()), a
            j = int(np.argmax(ball.oracle(u)))
        best = min(seen, key=lambda k: seen[k][0])
        chosen.append(best)
        image = cross.kernels[best] @ seen[best][1].to(kernels.dtype)
        scores.append(np.asarray(image.double().cpu()))
    return np.array(scores), np.array(chosen)


def _torch() -> tuple[Any, Any]:
    try:
        import torch

        from kernull.stacks import torch_tiled
    except ImportError:
        raise MissingDependencyError(
            "KERNULL_DEVICE is set, which needs torch: pip install torch, or unset it."
        ) from None
    return torch, torch_tiled

"""The same kernels and models as in `_models`, with all matrices on a torch device.

For experiments of thousands of models at sizes where a pass over the kernels costs more than the
reduced problems: set ``KERNULL_DEVICE=cuda``. Reduced problems stay on the host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments import _models
from experiments._models import Member, OneKernel, Split, kernels_by_width, one_kernel_scores
from kernull._typing import Array
from kernull.errors import MissingDependencyError
from kernull.problems import Evaluation
from kernull.stacks import KernelSet
from kernull.views import join_views, resolve_views

__all__ = ["asked_device", "kernels_on", "printed_at_p_1"]


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


class _DeviceProblem:
    """The Fisher problem on a dense stack of a device, as far as Algorithm 1 needs it."""

    def __init__(self, stack: Any, ridge: float) -> None:
        torch, _ = _torch()
        self.torch, self.kernels, self.ridge = torch, stack.kernels, ridge
        self.J, self.n_evaluations = len(stack.kernels), 0
        options = {"dtype": torch.float64, "device": self.kernels.device}
        self.shift = ridge * torch.eye(stack.n, **options)
        self.ones = torch.ones((stack.n, 1), **options)

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and coefficients at b."""
        torch, K = self.torch, self.kernels
        used = np.flatnonzero(weights)
        b = torch.as_tensor(weights[used], dtype=K.dtype, device=K.device)
        A = torch.tensordot(b, K[torch.as_tensor(used, device=K.device)], 1).double() + self.shift
        a = torch.cholesky_solve(self.ones, torch.linalg.cholesky(A))[:, 0]
        u = np.asarray(((K @ a.to(K.dtype)).double() @ a).cpu())
        coef = np.asarray(a.cpu())
        self.n_evaluations += 1
        linear, quadratic = float(coef.sum()), self.ridge * float(coef @ coef)
        return Evaluation(
            weights, linear, u, coef, lambda support: linear * linear / (quadratic + support)
        )


def printed_at_p_1(stack: Any, cross: Any, deltas: tuple[float, ...]) -> dict[str, OneKernel]:
    """`_models.printed_at_p_1` on either kind of stack."""
    if hasattr(stack, "combine"):
        return _models.printed_at_p_1(stack, cross, deltas)
    torch, _ = _torch()

    def image(member: Member) -> Array:
        found = cross.kernels[member.kernel] @ torch.as_tensor(member.coef).to(cross.kernels)
        return np.asarray(found.double().cpu())

    return one_kernel_scores((_DeviceProblem(stack, d * stack.n) for d in deltas), image)


def _torch() -> tuple[Any, Any]:
    try:
        import torch

        from kernull.stacks import torch_tiled
    except ImportError:
        raise MissingDependencyError(
            "KERNULL_DEVICE is set, which needs torch: pip install torch, or unset it."
        ) from None
    return torch, torch_tiled

"""Stacks on torch, CPU or CUDA: tiled (nothing n x n is stored) and dense.

The device is that of the rows. Products come back as NumPy arrays in float64: the solvers work on
n x m blocks that cost nothing next to a pass. On CUDA in float32, rbf products with a few vectors
run in one fused kernel (`kernull.stacks.triton_rbf`); everything else is plain torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from kernull._typing import Array
from kernull.errors import MissingCapabilityError
from kernull.kernels import FittedKernel
from kernull.stacks.kernel_set import KernelSet

try:
    from kernull.stacks import triton_rbf
except ImportError:  # no Triton (a CPU build of torch): the plain path serves
    triton_rbf = None  # type: ignore[assignment]

__all__ = ["TorchDenseStack", "TorchTiledStack"]

#: Bytes of a band of kernel values in the plain path, by device.
BAND_BYTES = {"cuda": 2**29, "cpu": 2**24}

Rows = Sequence[Any]
"""One tensor of scaled rows per view."""


class _TorchStack:
    """What both stacks share: shapes, and NumPy at the border."""

    scale: Array
    device: Any
    dtype: Any

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """Number of training rows."""
        return self.shape[1]

    @property
    def J(self) -> int:
        """Number of kernels."""
        return len(self.scale)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name, where = type(self).__name__, self.device
        return f"{name}(J={self.J}, shape={self.shape}, dtype={self.dtype}, device={where})"

    def products(self, V: Any) -> Array:
        """K_j V for every j: (n,) -> (J, m), (n, k) -> (J, m, k)."""
        V = self._tensor(V)
        out = self._numpy(self._products(V.reshape(self.n, -1)))
        out *= self.scale[:, None, None]
        return out.reshape(self.J, len(self), *V.shape[1:])

    def products_each(self, V: Any) -> Array:
        """K_j V_j for every j: (J, n) -> (J, m), (J, n, k) -> (J, m, k)."""
        V = self._tensor(V)
        out = self._numpy(self._products(V.reshape(self.J, self.n, -1)))
        out *= self.scale[:, None, None]
        return out.reshape(self.J, len(self), *V.shape[2:])

    def combined_products(self, weights: Array, V: Any) -> Array:
        """Sum of b_j K_j V in one pass: (n,) -> (m,), (n, k) -> (m, k)."""
        V = self._tensor(V)
        scaled = np.asarray(weights) * self.scale
        return self._numpy(self._combined(scaled, V.reshape(self.n, -1))).reshape(
            len(self), *V.shape[1:]
        )

    def _products(self, V: Any) -> Any:
        raise NotImplementedError

    def _combined(self, weights: Array, V: Any) -> Any:
        raise NotImplementedError

    def _tensor(self, V: Any) -> Any:
        return torch.as_tensor(V).to(device=self.device, dtype=self.dtype)

    def _numpy(self, values: Any) -> Array:
        return np.asarray(values.double().cpu().numpy())


class TorchTiledStack(_TorchStack):
    r"""J kernels between rows on a torch device, none of them ever formed.

    Parameters
    ----------
    rows : sequence of tensor of shape (n, d_v)
        Scaled training rows, one tensor a view, all on one device and of one type.
    kernels : sequence of sequence of FittedKernel
        The kernels of each view.
    left : sequence of tensor of shape (m, d_v), optional
        The rows on the left; ``rows`` by default.
    scale : array of shape (J,), optional
        One factor per kernel; 1 by default.
    fused : bool, optional
        Use the fused kernel for rbf products; by default wherever it can run.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> bank = KernelSet.fit(X, {"all": np.arange(3)})
    >>> stack = TorchTiledStack.from_kernel_set(bank)
    >>> bool(np.allclose(stack.products(np.ones(50)), bank.stack().products(np.ones(50))))
    True
    """

    def __init__(
        self,
        rows: Rows,
        kernels: Sequence[Sequence[FittedKernel]],
        *,
        left: Rows | None = None,
        scale: Array | None = None,
        fused: bool | None = None,
    ) -> None:
        self.rows_ = tuple(rows)
        self.left_ = None if left is None else tuple(left)
        self.kernels = tuple(tuple(ks) for ks in kernels)
        for kernel in (k for ks in self.kernels for k in ks):
            if kernel.function is not None:
                raise MissingCapabilityError(
                    f"kernels: the callable {kernel.function!r} cannot run on torch; use the "
                    "kernels known by name, or storage='tiled' with NumPy input."
                )
        count = sum(map(len, self.kernels))
        self.scale = np.ones(count) if scale is None else np.asarray(scale, dtype=float)
        self.device, self.dtype = self.rows_[0].device, self.rows_[0].dtype
        can_fuse = self.device.type == "cuda" and self.dtype == torch.float32
        self.fused = (can_fuse and triton_rbf is not None) if fused is None else fused
        self._packed: dict[tuple[int, bool], Any] = {}

    @classmethod
    def from_kernel_set(
        cls,
        bank: KernelSet,
        device: Any = "cpu",
        dtype: Any = None,
        left: KernelSet | None = None,
        **options: Any,
    ) -> TorchTiledStack:
        """The stack of a set's training rows on a device."""
        dtype = torch.float64 if dtype is None else dtype

        def tensors(source: KernelSet) -> list[Any]:
            return [torch.as_tensor(v.train).to(device, dtype) for v in source.views]

        kernels = [view.kernels for view in bank.views]
        return cls(tensors(bank), kernels, left=None if left is None else tensors(left), **options)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return len(self._lefts[0]), len(self.rows_[0])

    @property
    def _lefts(self) -> Rows:
        return self.rows_ if self.left_ is None else self.left_

    def __getitem__(self, index: Any) -> TorchTiledStack:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        i, j = (np.arange(s)[x].ravel() for s, x in zip(self.shape, (rows, columns), strict=True))
        same = self.left_ is None and np.array_equal(i, j)
        return TorchTiledStack(
            [part[torch.as_tensor(j, device=self.device)] for part in self.rows_],
            self.kernels,
            left=None
            if same
            else [part[torch.as_tensor(i, device=self.device)] for part in self._lefts],
            scale=self.scale,
            fused=self.fused,
        )

    def select(self, kernels: Any) -> TorchTiledStack:
        """The stack of some of the kernels."""
        mask = np.zeros(self.J, dtype=bool)
        mask[kernels] = True
        picked, rows, lefts, j = [], [], [], 0
        for v, ks in enumerate(self.kernels):
            kept = [k for k, keep in zip(ks, mask[j : j + len(ks)], strict=True) if keep]
            j += len(ks)
            if kept:
                picked.append(kept)
                rows.append(self.rows_[v])
                lefts.append(self._lefts[v])
        left = None if self.left_ is None else lefts
        return TorchTiledStack(rows, picked, left=left, scale=self.scale[mask], fused=self.fused)

    def dense(self) -> TorchDenseStack:
        """The same stack with its kernels stored on the device."""
        out = torch.empty((self.J, *self.shape), dtype=self.dtype, device=self.device)
        for j, band, K in self._bands():
            out[j, band] = K
        return TorchDenseStack(out, self.scale)

    def diagonal(self) -> Array:
        """k_j(x_i, x_i) of the rows on the left, of shape (J, m)."""
        return self._diagonal_of(self._lefts)

    def right_diagonal(self) -> Array:
        """k_j(x_i, x_i) of the training rows, of shape (J, n)."""
        return self._diagonal_of(self.rows_)

    def _diagonal_of(self, rows: Rows) -> Array:
        values = [
            np.ones(len(part)) if k.metric is not None else k.diagonal(self._numpy(part))
            for part, ks in zip(rows, self.kernels, strict=True)
            for k in ks
        ]
        return np.stack(values) * self.scale[:, None]

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        picked = self[np.atleast_1d(np.arange(len(self))[index])]
        # A slice of all rows may come back square; its values are the same.
        return picked.dense().rows(slice(None))

    # -- passes ------------------------------------------------------------------------------

    def _products(self, V: Any) -> Any:
        """V of shape (n, k), or one such a kernel: (J, n, k)."""
        shape = (self.J, len(self), V.shape[-1])
        out = torch.zeros(shape, dtype=torch.float64, device=self.device)
        j = 0
        for v, ks in enumerate(self.kernels):
            mine = slice(j, j + len(ks))
            j += len(ks)
            if self._can_fuse(ks, V.shape[-1]):
                self._fused(v, ks, V if V.ndim == 2 else V[mine], out[mine])
                continue
            for i, band, K in self._view_bands(v):
                out[mine][i, band] = (K @ (V if V.ndim == 2 else V[mine][i])).double()
        return out

    def _combined(self, weights: Array, V: Any) -> Any:
        out = torch.zeros((len(self), V.shape[1]), dtype=torch.float64, device=self.device)
        for band in self._band_slices():
            total = None
            for j, K in self._band_kernels(band):
                total = K.mul_(weights[j]) if total is None else total.add_(K, alpha=weights[j])
            out[band] = (total @ V).double()
        return out

    def _can_fuse(self, kernels: Sequence[FittedKernel], k: int) -> bool:
        few = k * len(kernels) <= triton_rbf.MAX_VECTORS if self.fused else False
        return few and all(kernel.kind == "rbf" for kernel in kernels)

    def _fused(self, v: int, kernels: Sequence[FittedKernel], V: Any, out: Any) -> None:
        right = self._pack(v, kernels, left=False)
        left = right if self.left_ is None else self._pack(v, kernels, left=True, unit=right.unit)
        symmetric = self.left_ is None
        inverse = [_inverse_square(kernel) for kernel in kernels]
        if V.ndim == 2:
            out.copy_(triton_rbf.rbf_products(left, right, inverse, V, symmetric=symmetric))
            return
        for i, c in enumerate(inverse):
            out[i] = triton_rbf.rbf_products(left, right, [c], V[i], symmetric=symmetric)[0]

    def _pack(
        self, v: int, kernels: Sequence[FittedKernel], left: bool, unit: float | None = None
    ) -> Any:
        if (v, left) not in self._packed:
            part = (self._lefts if left else self.rows_)[v]
            self._packed[v, left] = triton_rbf.Packed.of(_centred(part, kernels[0]), unit)
        return self._packed[v, left]

    # -- plain torch -------------------------------------------------------------------------

    def _band_slices(self) -> Iterator[slice]:
        room = BAND_BYTES.get(self.device.type, BAND_BYTES["cpu"])
        step = max(1, room // (self.n * self.rows_[0].element_size()))
        return (slice(i, i + step) for i in range(0, len(self), step))

    def _bands(self) -> Iterator[tuple[int, slice, Any]]:
        j = 0
        for v, ks in enumerate(self.kernels):
            for i, band, K in self._view_bands(v):
                yield j + i, band, K
            j += len(ks)

    def _band_kernels(self, band: slice) -> Iterator[tuple[int, Any]]:
        j = 0
        for v, ks in enumerate(self.kernels):
            for i, K in _evaluate(ks, self._lefts[v][band], self.rows_[v]):
                yield j + i, K
            j += len(ks)

    def _view_bands(self, v: int) -> Iterator[tuple[int, slice, Any]]:
        for band in self._band_slices():
            for i, K in _evaluate(self.kernels[v], self._lefts[v][band], self.rows_[v]):
                yield i, band, K


class TorchDenseStack(_TorchStack):
    """J kernel matrices stored in one tensor of shape (J, m, n) on its device."""

    def __init__(self, kernels: Any, scale: Array | None = None) -> None:
        self.kernels = kernels
        self.scale = np.ones(len(kernels)) if scale is None else np.asarray(scale, dtype=float)
        self.device, self.dtype = kernels.device, kernels.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return int(self.kernels.shape[1]), int(self.kernels.shape[2])

    def __getitem__(self, index: Any) -> TorchDenseStack:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        i, j = (
            torch.as_tensor(np.arange(s)[x].ravel(), device=self.device)
            for s, x in zip(self.shape, (rows, columns), strict=True)
        )
        return TorchDenseStack(self.kernels[:, i][:, :, j], self.scale)

    def select(self, kernels: Any) -> TorchDenseStack:
        """The stack of some of the kernels."""
        mask = np.zeros(self.J, dtype=bool)
        mask[kernels] = True
        return TorchDenseStack(self.kernels[torch.as_tensor(mask)], self.scale[mask])

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n); for square stacks."""
        return self._numpy(self.kernels.diagonal(dim1=1, dim2=2)) * self.scale[:, None]

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        return self._numpy(self.kernels[:, index]) * self.scale[:, None, None]

    def _products(self, V: Any) -> Any:
        return torch.matmul(self.kernels, V)

    def _combined(self, weights: Array, V: Any) -> Any:
        images = torch.matmul(self.kernels, V).double()
        return torch.einsum("j,jmk->mk", torch.as_tensor(weights, device=self.device), images)


def _inverse_square(kernel: FittedKernel) -> float:
    assert kernel.width is not None
    return float(kernel.width**-2.0)


def _centred(rows: Any, kernel: FittedKernel) -> Any:
    if kernel.centre is None:
        return rows
    return rows - torch.as_tensor(kernel.centre, device=rows.device).to(rows.dtype)


def _evaluate(kernels: Sequence[FittedKernel], x: Any, y: Any) -> Iterator[tuple[int, Any]]:
    """Yield (i, K_i) between rows x and y of one view, each a tensor of its own."""
    exponents = None
    for i, kernel in enumerate(kernels):
        if kernel.kind == "rbf":
            if exponents is None:
                a, b = _centred(x, kernel), _centred(y, kernel)
                exponents = torch.addmm(-0.5 * b.square().sum(1), a, b.T)
                exponents -= 0.5 * a.square().sum(1)[:, None]
                exponents.clamp_(max=0.0)
            yield i, (exponents * _inverse_square(kernel)).exp_()
        else:
            yield i, _other(kernel, x, y)


def _other(kernel: FittedKernel, x: Any, y: Any) -> Any:
    if kernel.kind == "laplacian":
        assert kernel.width is not None
        return torch.cdist(x, y, p=1.0).div_(-kernel.width).exp_()
    if kernel.kind == "linear":
        return x @ y.T
    if kernel.kind == "polynomial":
        p = kernel.params
        return (p["gamma"] * (x @ y.T) + p["coef0"]) ** p["degree"]
    unit = torch.nn.functional.normalize
    return unit(x, eps=0.0).nan_to_num_() @ unit(y, eps=0.0).nan_to_num_().T

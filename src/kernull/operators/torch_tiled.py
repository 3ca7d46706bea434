"""Stacks on torch, CPU or CUDA: kernels that are stored, and tiled ones, of which nothing is.

The device is that of the rows. Products come back as NumPy arrays in float64: the solvers work on
n x m blocks that cost nothing next to a pass. On CUDA in float32, rbf products with a few vectors
run in one fused kernel (`kernull.operators.triton_rbf`); everything else is plain torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from kernull._typing import Array, Indices
from kernull.errors import MissingCapabilityError
from kernull.kernels import Cosine, DistanceKernel, Kernel, Laplacian, Linear, Polynomial, Rbf
from kernull.operators.base import SweptStack
from kernull.operators.torch_packed import Packed, unit_of
from kernull.views.kernel_set import KernelSet

try:
    from kernull.operators import triton_rbf
except ImportError:  # no Triton (a CPU build of torch): the plain path serves
    triton_rbf = None  # type: ignore[assignment]

__all__ = ["TorchDenseStack", "TorchTiledStack"]

#: Bytes of a band of kernel values in the plain path, by device.
BAND_BYTES = {"cuda": 2**29, "cpu": 2**24}
#: Rows from which the solver has a preconditioner, its landmarks, and numbers that it may keep.
MANY_ROWS, LANDMARKS, LANDMARK_NUMBERS = 50_000, 1000, 2 * 10**9
#: Added to the small matrix, relative to its trace: what rounding may take from it.
JITTER = {torch.float64: 1e-13, torch.float32: 1e-9}

Rows = Sequence[Any]
"""One tensor of scaled rows per view."""


class TorchStack(SweptStack):
    """What stacks on torch share: NumPy at the border."""

    device: Any
    dtype: Any

    def __repr__(self) -> str:
        name, where = type(self).__name__, self.device
        return f"{name}(J={self.J}, shape={self.shape}, dtype={self.dtype}, device={where})"

    def _sweep(self, V: Any, weights: Array | None = None) -> Array:
        V = self._tensor(V)
        return self._numpy(self._products(V) if weights is None else self._combined(weights, V))

    def _products(self, V: Any) -> Any:
        raise NotImplementedError

    def _combined(self, weights: Array, V: Any) -> Any:
        raise NotImplementedError

    def _tensor(self, V: Any) -> Any:
        return torch.as_tensor(V).to(self.device).to(self.dtype)  # converted on the device

    def _numpy(self, values: Any) -> Array:
        return np.asarray(values.double().cpu().numpy())


class TorchDenseStack(TorchStack):
    """J kernel matrices stored in one tensor of shape (J, m, n) on its device."""

    def __init__(self, kernels: Any, scale: Array | None = None) -> None:
        self.kernels = kernels
        self.scale = np.ones(len(kernels)) if scale is None else np.asarray(scale, dtype=float)
        self.device, self.dtype = kernels.device, kernels.dtype
        self.shape = (int(kernels.shape[1]), int(kernels.shape[2]))

    def __getitem__(self, index: Any) -> TorchDenseStack:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        i, j = (torch.as_tensor(part, device=self.device) for part in self._positions(index))
        return TorchDenseStack(self.kernels[:, i][:, :, j], self.scale)

    def select(self, kernels: Any) -> TorchDenseStack:
        """The stack of some of the kernels."""
        mask = self._mask(kernels)
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


class TorchTiledStack(TorchStack):
    r"""J kernels between rows on a torch device, none of them ever formed.

    ``rows`` are scaled training rows, one tensor (n, d_v) per view, all on one device and of one
    type; ``kernels`` those of each view; ``left`` the rows on the left, if others.
    """

    def __init__(
        self,
        rows: Rows,
        kernels: Sequence[Sequence[Kernel]],
        *,
        left: Rows | None = None,
        scale: Array | None = None,
    ) -> None:
        self.rows_ = tuple(rows)
        self.left_ = None if left is None else tuple(left)
        self.kernels = tuple(tuple(ks) for ks in kernels)
        for kernel in (k for ks in self.kernels for k in ks):
            if not isinstance(kernel, Rbf) and type(kernel) not in ON_DEVICE:
                raise MissingCapabilityError(
                    f"kernels: {kernel!r} cannot run on torch; use the "
                    "kernels known by name, or storage='tiled' with NumPy input."
                )
        count = sum(map(len, self.kernels))
        self.scale = np.ones(count) if scale is None else np.asarray(scale, dtype=float)
        self.device, self.dtype = self.rows_[0].device, self.rows_[0].dtype
        self.shape = (len(self._lefts[0]), len(self.rows_[0]))
        #: Whether the fused kernel serves for rbf products, as it does wherever it can run.
        self.fused = self.device.type == "cuda" and self.dtype == torch.float32
        self.fused = self.fused and triton_rbf is not None
        self._packed: dict[int, tuple[Any, Any]] = {}
        self._centres: dict[int, Any] = {}

    @classmethod
    def from_kernel_set(
        cls,
        bank: KernelSet,
        device: Any = "cpu",
        dtype: Any = torch.float64,
        left: KernelSet | None = None,
    ) -> TorchTiledStack:
        """The stack of a set's training rows on a device."""

        def tensors(source: KernelSet) -> list[Any]:  # converted there
            return [torch.as_tensor(view.train).to(device).to(dtype) for view in source.views]

        kernels = [view.kernels for view in bank.views]
        return cls(tensors(bank), kernels, left=None if left is None else tensors(left))

    @property
    def preconditioner_rows(self) -> int:
        """Landmarks that the solver's preconditioner should have: 0 where passes are short."""
        if self.left_ is not None or self.n < MANY_ROWS:
            return 0
        return min(LANDMARKS, LANDMARK_NUMBERS // self.n)

    @property
    def _lefts(self) -> Rows:
        return self.rows_ if self.left_ is None else self.left_

    def __getitem__(self, index: Any) -> TorchTiledStack:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        rows, columns = self._positions(index)
        same = self.left_ is None and np.array_equal(rows, columns)
        i, j = (torch.as_tensor(places, device=self.device) for places in (rows, columns))
        right = [part[j] for part in self.rows_]
        left = None if same else [part[i] for part in self._lefts]
        return TorchTiledStack(right, self.kernels, left=left, scale=self.scale)

    def select(self, kernels: Any) -> TorchTiledStack:
        """The stack of some of the kernels."""
        mask = self._mask(kernels)
        picked, rows, lefts, j = [], [], [], 0
        for v, ks in enumerate(self.kernels):
            kept = [k for k, keep in zip(ks, mask[j : j + len(ks)], strict=True) if keep]
            j += len(ks)
            if kept:
                picked.append(kept)
                rows.append(self.rows_[v])
                lefts.append(self._lefts[v])
        left = None if self.left_ is None else lefts
        return TorchTiledStack(rows, picked, left=left, scale=self.scale[mask])

    def dense(self) -> TorchDenseStack:
        """The same stack with its kernels stored on the device."""
        out = torch.empty((self.J, *self.shape), dtype=self.dtype, device=self.device)
        j = 0
        for v, ks in enumerate(self.kernels):
            right = self._right(v)
            for band in self._band_slices():
                for i, K in self._values(v, band, right):
                    out[j + i, band] = K
            j += len(ks)
        return TorchDenseStack(out, self.scale)

    def diagonal(self) -> Array:
        """k_j(x_i, x_i) of the rows on the left, of shape (J, m)."""
        values = [
            np.ones(len(part)) if isinstance(k, DistanceKernel) else k.diagonal(self._numpy(part))
            for part, ks in zip(self._lefts, self.kernels, strict=True)
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
            self._plain(v, V if V.ndim == 2 else V[mine], out[mine])
        return out

    def _combined(self, weights: Array, V: Any) -> Any:
        out = torch.zeros((len(self), V.shape[1]), dtype=torch.float64, device=self.device)
        symmetric = self.left_ is None
        for band, K in self.combined_bands(weights, half=symmetric):
            out[band] += (K @ V[: K.shape[1]]).double()
            if symmetric and band.start:
                out[: band.start] += (K[:, : band.start].T @ V[band]).double()
        return out

    def combined_bands(self, weights: Array, *, half: bool = False) -> Iterator[tuple[slice, Any]]:
        """The sum of b_j K_j, without the factors of the kernels, in bands of rows.

        ``half`` of a symmetric stack: of each band, the columns up to its own last row.
        """
        rights = [self._right(v) for v in range(len(self.kernels))]
        for band in self._band_slices():
            total, j = None, 0
            for v, ks in enumerate(self.kernels):
                for i, K in self._values(v, band, rights[v], band.stop if half else None):
                    b = weights[j + i]
                    total = K.mul_(b) if total is None else total.add_(K, alpha=b)
                j += len(ks)
            yield band, total

    def coarse(self) -> TorchTiledStack | None:
        """Nearly the same stack, for a first solution: in float32, where that is fused; or None."""
        rbf = all(isinstance(kernel, Rbf) for ks in self.kernels for kernel in ks)
        if self.left_ is not None or self.dtype != torch.float64 or not rbf:
            return None
        if triton_rbf is None or self.device.type != "cuda":
            return None
        # Rows far from the origin are centred before they lose digits.
        rows = [(part - self._centre(v)).float() for v, part in enumerate(self.rows_)]
        kernels = [[Rbf(k.width, k.factor) for k in ks] for ks in self.kernels]
        return TorchTiledStack(rows, kernels, scale=self.scale)

    def landmark_inverse(
        self, index: Indices, ridge: float, row_scale: Array | None = None
    ) -> TorchLandmarks:
        """A function that nearly applies the inverse of rho I + K_b; see `TorchLandmarks`."""
        at = torch.as_tensor(index, device=self.device)
        few = [part[at] for part in self.rows_]
        columns = TorchTiledStack(few, self.kernels, left=self.rows_, scale=self.scale)
        return TorchLandmarks(columns, index, ridge, row_scale)

    def _can_fuse(self, kernels: Sequence[Kernel], k: int) -> bool:
        few = k * len(kernels) <= triton_rbf.MAX_VECTORS if self.fused else False
        return few and all(isinstance(kernel, Rbf) for kernel in kernels)

    def _fused(self, v: int, kernels: Sequence[Kernel], V: Any, out: Any) -> None:
        left, right = self._pack(v, kernels)
        symmetric = self.left_ is None
        inverse = [_inverse_square(kernel) for kernel in kernels]
        if V.ndim == 2:
            out.copy_(triton_rbf.rbf_products(left, right, inverse, V, symmetric=symmetric))
            return
        for i, c in enumerate(inverse):
            out[i] = triton_rbf.rbf_products(left, right, [c], V[i], symmetric=symmetric)[0]

    def _pack(self, v: int, kernels: Sequence[Kernel]) -> tuple[Any, Any]:
        """Rows on the left and on the right of one view, as the fused kernel takes them."""
        if v not in self._packed:
            right, pack = self.rows_[v] - self._centre(v), Packed.of
            if self.left_ is None:
                self._packed[v] = (pack(right),) * 2
            else:
                # What is farther from every row than fifteen widths has kernel values of nought.
                far = float(right.abs().max()) + 15.0 * max(k.width or 0.0 for k in kernels)
                left = (self.left_[v] - self._centre(v)).clamp(-far, far)
                unit = unit_of(left, right)
                self._packed[v] = pack(left, unit), pack(right, unit)
        return self._packed[v]

    # -- plain torch -------------------------------------------------------------------------

    def _plain(self, v: int, V: Any, out: Any) -> None:
        """Products of one view's kernels, band by band: half of the values where symmetric."""
        symmetric, right = self.left_ is None, self._right(v)
        for band in self._band_slices():
            end = band.stop if symmetric else None
            for i, K in self._values(v, band, right, end):
                own = V if V.ndim == 2 else V[i]
                out[i, band] += (K @ own[:end]).double()
                if symmetric and band.start:
                    out[i, : band.start] += (K[:, : band.start].T @ own[band]).double()

    def _band_slices(self) -> Iterator[slice]:
        room = BAND_BYTES.get(self.device.type, BAND_BYTES["cpu"])
        step = max(1, room // (self.n * self.rows_[0].element_size()))
        return (slice(i, i + step) for i in range(0, len(self), step))

    def _values(
        self, v: int, band: slice, right: Any, end: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Kernels of one view between a band of rows and the first ones; ``right`` is `_right`."""
        left, rows = self._lefts[v][band], self.rows_[v][:end]
        known = right if right is None else right[:end]
        return _evaluate(self.kernels[v], left, rows, self._centre(v), known)

    def _right(self, v: int) -> Any:
        """The training rows of a view as rbf kernels take them, once for all bands; or None."""
        if not any(isinstance(kernel, Rbf) for kernel in self.kernels[v]):
            return None
        b = self.rows_[v] - self._centre(v)
        return torch.cat([b, torch.ones_like(b[:, :1]), _half_norms(b)], dim=1)

    def _centre(self, v: int) -> Any:
        """Where rbf kernels of one view see its rows from, so that distances keep their digits."""
        if v not in self._centres:
            found = (
                k.centre for k in self.kernels[v] if isinstance(k, Rbf) and k.centre is not None
            )
            self._centres[v] = torch.as_tensor(next(found, 0.0)).to(self.device, self.dtype)
        return self._centres[v]


def _inverse_square(kernel: Any) -> float:
    return float(kernel.width**-2.0)


def _evaluate(
    kernels: Sequence[Kernel], x: Any, y: Any, centre: Any, right: Any
) -> Iterator[tuple[int, Any]]:
    """Yield (i, K_i) between rows x and y of one view, each a tensor of its own."""
    rbf = [i for i, kernel in enumerate(kernels) if isinstance(kernel, Rbf)]
    # One kernel alone has its width in the rows already: one sweep over the values less.
    factors = {i: _inverse_square(kernels[i]) for i in rbf}
    unit = factors[rbf[0]] if len(rbf) == 1 else 1.0
    exponents = None
    for i, kernel in enumerate(kernels):
        if i not in factors:
            yield i, ON_DEVICE[type(kernel)](kernel, x, y)
            continue
        if exponents is None:  # -|a - b|^2 / 2 times a unit, by one product with `right`
            a = x - centre
            a = torch.cat([a, _half_norms(a), torch.ones_like(a[:, :1])], dim=1).mul_(unit)
            exponents = a @ right.T
        last = i == rbf[-1]
        K = exponents if last else exponents.clone()
        yield i, (K if factors[i] == unit else K.mul_(factors[i] / unit)).exp_()


def _half_norms(rows: Any) -> Any:
    """-|x|^2 / 2 of each row, of shape (n, 1)."""
    return -0.5 * rows.square().sum(1, keepdim=True)


def _laplacian(kernel: Any, x: Any, y: Any) -> Any:
    return torch.cdist(x, y, p=1.0).div_(-kernel.width).exp_()


def _linear(kernel: Any, x: Any, y: Any) -> Any:
    return x @ y.T


def _polynomial(kernel: Any, x: Any, y: Any) -> Any:
    return (kernel.gamma * (x @ y.T) + kernel.coef0) ** kernel.degree


def _cosine(kernel: Any, x: Any, y: Any) -> Any:
    unit = torch.nn.functional.normalize
    return unit(x, eps=0.0).nan_to_num_() @ unit(y, eps=0.0).nan_to_num_().T


#: How kernels other than rbf are evaluated here, by class.
ON_DEVICE: dict[type[Kernel], Any] = {
    Laplacian: _laplacian, Linear: _linear, Polynomial: _polynomial, Cosine: _cosine,
}  # fmt: skip


class TorchLandmarks:
    """A function of weights b and a residual r that nearly solves (rho I + K_b) x = r.

    ``columns`` is the stack (n, l) between all rows and the landmarks, which are those at
    ``index``; ``row_scale`` are roots of the weights of rows.
    """

    def __init__(
        self, columns: Any, index: Indices, ridge: float, row_scale: Array | None = None
    ) -> None:
        self.columns, self.ridge = columns, ridge
        self.index = torch.as_tensor(index, device=columns.device)
        self.row_scale = None
        if row_scale is not None:
            self.row_scale = torch.as_tensor(row_scale).to(columns.device, columns.dtype)
        self._C: Any = None

    def __call__(self, weights: Array, residual: Array) -> Array:
        """A direction that nearly solves (rho I + K_b) x = residual."""
        C, factor = self._factorise(weights)
        r = torch.as_tensor(residual).to(C.device, C.dtype)
        y = torch.cholesky_solve((C.T @ r).double()[:, None], factor)[:, 0]
        return np.asarray((r - C @ y.to(C.dtype)).double().cpu().numpy())

    def _factorise(self, weights: Array) -> tuple[Any, Any]:
        """C, of shape (n, l), and the lower factor of rho W + C'C."""
        stack, scaled = self.columns, np.asarray(weights) * self.columns.scale
        n, m = stack.shape
        if self._C is None:
            self._C = torch.empty((n, m), dtype=stack.dtype, device=stack.device)
        C, core = self._C, torch.zeros((m, m), dtype=torch.float64, device=stack.device)
        for band, K in stack.combined_bands(scaled):
            if self.row_scale is not None:
                K = K * self.row_scale[band, None] * self.row_scale[self.index]
            C[band] = K
            core += (K.T @ K).double()
        core += self.ridge * C[self.index].double()
        jitter = JITTER[stack.dtype] * core.diagonal().sum()
        while True:
            core.diagonal().add_(jitter)
            factor, failed = torch.linalg.cholesky_ex(core)
            if not failed or not torch.isfinite(core).all():
                return C, factor
            jitter = 100 * jitter

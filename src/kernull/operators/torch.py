"""Stacks on torch, CPU or CUDA: stored kernels, tiled ones, and kernel sets fitted on a device.

The device is that of the rows. Products come back as NumPy arrays in float64: the solvers work on
n x m blocks that cost nothing next to a pass. On CUDA in float32, rbf products with a few vectors
run in one fused kernel (`kernull.operators.triton`), which takes rows `Packed` in two float16
parts; everything else is plain torch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from kernull._typing import Array, Indices, Mask
from kernull.errors import MissingCapabilityError
from kernull.kernels import (
    AUTO_RANGE,
    EXACT_ROWS,
    NEIGHBOUR_ROWS,
    Cosine,
    Custom,
    DistanceKernel,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Rbf,
    spread_sample,
)
from kernull.operators.base import SweptStack
from kernull.operators.nystroem import LandmarkFactors
from kernull.operators.tiled import CrossKernels
from kernull.views import Standard, Unscaled, fit_scaling, knows_unseen, read_scalings
from kernull.views.kernel_set import (
    KernelSet,
    ScaledView,
    check_size,
    joined,
    names_by_view,
    parse_widths,
)
from kernull.views.scaling import LARGEST

#: Whether the fused kernel can be compiled: builds of torch for the CPU bring no Triton.
HAS_TRITON = find_spec("triton") is not None
#: Vectors times widths up to which the fused kernel is the faster way.
MAX_FUSED_VECTORS = 64
#: Bytes of a band of kernel values in the plain path, by device.
BAND_BYTES = {"cuda": 2**29, "cpu": 2**24}
#: Rows from which the solver has a preconditioner, its landmarks, and numbers that it may keep.
MANY_ROWS, LANDMARKS, LANDMARK_NUMBERS = 50_000, 1000, 2 * 10**9
#: Added to the small matrix, relative to its trace: what rounding may take from it.
JITTER = {torch.float64: 1e-13, torch.float32: 1e-9}

#: Scalings that are fitted on the device, where no column is constant; others on the host.
SCALINGS_ON_DEVICE = (Standard, Unscaled)
#: Rows that neighbours are looked for among at a time.
BLOCK_ROWS = 2**16
#: Rows are padded to a multiple of this.
WHOLE_ROWS = 128
#: Features beyond which a tile's exponents are summed chunk by chunk.
MAX_FEATURES_AT_ONCE = 128
_CHUNK = 64
#: Largest feature after division by the unit: float16 ends at 65504 and is coarse below 2^-14.
_LARGEST = 2.0**15

Rows = Sequence[Any]
"""One tensor of scaled rows per view."""


def preconditioner_rows(n: int) -> int:
    """Landmarks that a solver's preconditioner should have: 0 where passes are short."""
    return 0 if n < MANY_ROWS else min(LANDMARKS, LANDMARK_NUMBERS // n)


def torch_dtype(dtype: Any) -> Any:
    """The type of tensors for a type of NumPy's."""
    return torch.float32 if np.dtype(dtype) == np.float32 else torch.float64


class TorchStack(SweptStack):
    """What stacks on torch share: NumPy at the border."""

    device: Any
    dtype: Any

    def __repr__(self) -> str:
        name, where = type(self).__name__, self.device
        return f"{name}(J={self.J}, shape={self.shape}, dtype={self.dtype}, device={where})"

    @property
    def eps(self) -> float:
        """Relative rounding of a kernel value."""
        return float(torch.finfo(self.dtype).eps)

    def _sweep(self, V: Any) -> Array:
        return self._numpy(self._products(self._tensor(V)))

    @abstractmethod
    def _products(self, V: Any) -> Any:
        """K_j V without factors, a tensor (J, m, k); V of shape (n, k), or (J, n, k)."""

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
        """The stack of the kernels that an index or a mask picks."""
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
        self.fused = self.fused and HAS_TRITON
        self._packed: dict[int, tuple[Any, Any]] = {}
        self._centres: dict[int, Any] = {}

    @classmethod
    def from_kernel_set(
        cls,
        kernel_set: KernelSet,
        device: Any = "cpu",
        dtype: Any = torch.float64,
        left: KernelSet | None = None,
    ) -> TorchTiledStack:
        """The stack of a set's training rows on a device."""

        def tensors(source: KernelSet) -> list[Any]:  # converted there
            return [torch.as_tensor(view.train).to(device).to(dtype) for view in source.views]

        kernels = [view.kernels for view in kernel_set.views]
        return cls(tensors(kernel_set), kernels, left=None if left is None else tensors(left))

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
        """The stack of the kernels that an index or a mask picks."""
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
            of_view = slice(j, j + len(ks))
            j += len(ks)
            vectors = V if V.ndim == 2 else V[of_view]
            if self._can_fuse(ks, V.shape[-1]):
                self._fused(v, ks, vectors, out[of_view])
            else:
                self._plain(v, vectors, out[of_view])
        return out

    def combined_bands(self, weights: Array) -> Iterator[tuple[slice, Any]]:
        """The sum of b_j K_j, without the factors of the kernels, in bands of rows."""
        rights = [self._right(v) for v in range(len(self.kernels))]
        for band in self._band_slices():
            total, j = None, 0
            for v, ks in enumerate(self.kernels):
                for i, K in self._values(v, band, rights[v]):
                    b = weights[j + i]
                    total = K.mul_(b) if total is None else total.add_(K, alpha=b)
                j += len(ks)
            yield band, total

    def coarse(self) -> TorchTiledStack | None:
        """Nearly the same stack, for a first solution: in float32, where that is fused; or None."""
        rbf = all(isinstance(kernel, Rbf) for ks in self.kernels for kernel in ks)
        if self.left_ is not None or self.dtype != torch.float64 or not rbf:
            return None
        if self.device.type != "cuda" or not HAS_TRITON:
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
        few = self.fused and k * len(kernels) <= MAX_FUSED_VECTORS
        return few and all(isinstance(kernel, Rbf) for kernel in kernels)

    def _fused(self, v: int, kernels: Sequence[Kernel], V: Any, out: Any) -> None:
        from kernull.operators.triton import rbf_products

        left, right = self._pack(v, kernels)
        symmetric = self.left_ is None
        inverse = [_inverse_square(kernel) for kernel in kernels]
        if V.ndim == 2:
            out.copy_(rbf_products(left, right, inverse, V, symmetric=symmetric))
            return
        for i, c in enumerate(inverse):
            out[i] = rbf_products(left, right, [c], V[i], symmetric=symmetric)[0]

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
                vectors = V if V.ndim == 2 else V[i]
                out[i, band] += (K @ vectors[:end]).double()
                if symmetric and band.start:
                    out[i, : band.start] += (K[:, : band.start].T @ vectors[band]).double()

    def _band_slices(self) -> Iterator[slice]:
        room = BAND_BYTES.get(self.device.type, BAND_BYTES["cpu"])
        step = max(1, room // (self.n * self.rows_[0].element_size()))
        return (slice(i, i + step) for i in range(0, len(self), step))

    def _values(
        self, v: int, band: slice, right: Any, end: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Kernels of one view between a band of rows and the first ones; ``right`` is `_right`."""
        left, rows = self._lefts[v][band], self.rows_[v][:end]
        right = right if right is None else right[:end]
        return _evaluate(self.kernels[v], left, rows, self._centre(v), right)

    def _right(self, v: int) -> Any:
        """The training rows of a view as rbf kernels take them, once for all bands; or None."""
        if not any(isinstance(kernel, Rbf) for kernel in self.kernels[v]):
            return None
        b = self.rows_[v] - self._centre(v)
        return torch.cat([b, torch.ones_like(b[:, :1]), _half_norms(b)], dim=1)

    def _centre(self, v: int) -> Any:
        """Where rbf kernels of one view see its rows from, so that distances keep their digits."""
        if v not in self._centres:
            centres = (
                k.centre for k in self.kernels[v] if isinstance(k, Rbf) and k.centre is not None
            )
            self._centres[v] = torch.as_tensor(next(centres, 0.0)).to(self.device, self.dtype)
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


class DeviceFactors(LandmarkFactors):
    """`LandmarkFactors` on the device of a `TorchTiledStack`."""

    def _factorise(self) -> Any:
        W = self.landmarks.dense().kernels.double()
        diagonal = W.diagonal(dim1=1, dim2=2)
        diagonal.add_(self.jitter * diagonal.mean(dim=1, keepdim=True))
        return torch.linalg.cholesky(W)

    def solve(self, V: Array) -> Array:
        """W_j^-1 V_j for every j: (J, l) -> (J, l), (J, l, k) -> (J, l, k)."""
        flat = torch.as_tensor(np.ascontiguousarray(V).reshape(*V.shape[:2], -1))
        out = torch.cholesky_solve(flat.to(self.lower.device), self.lower)
        return np.asarray(out.cpu().numpy()).reshape(V.shape)


class DeviceCross(CrossKernels):
    """`CrossKernels` whose products come from a device, in ``dtype``; the rest from the host."""

    def __init__(
        self, kernel_set: KernelSet, X: Array, scale: Array | None, device: Any, dtype: Any
    ) -> None:
        super().__init__(kernel_set, X, scale)
        self.device, self.dtype = device, dtype

    @cached_property
    def _stack(self) -> TorchTiledStack:
        left, dtype = self.kernel_set.with_rows(self.X), torch_dtype(self.dtype)
        return TorchTiledStack.from_kernel_set(self.kernel_set, self.device, dtype, left)

    def _sweep(self, V: Array) -> Array:
        if any(isinstance(k, Custom) for v in self.kernel_set.views for k in v.kernels):
            return super()._sweep(V)
        return self._stack._sweep(V)

    def select(self, mask: Mask) -> DeviceCross:
        """The stack of the kernels that a mask picks."""
        kernel_set, scale = self.kernel_set.select(mask), self.scale[mask]
        return DeviceCross(kernel_set, self.X, scale, self.device, self.dtype)


# -- Rows as the fused kernel takes them: float32 in two float16 parts, in whole blocks. --


@dataclass(frozen=True)
class Pieces:
    """How the features of a row are cut into blocks that the matrix units take.

    ``sizes`` are blocks of three products; of what is left over, all three products make one
    block of size ``rest``. ``chunks`` counts equal blocks of rows too long to be kept.
    """

    sizes: tuple[int, int, int] = (0, 0, 0)
    rest: int = 0
    left_over: int = 0
    chunks: int = 0

    @classmethod
    def of(cls, d: int) -> Pieces:
        """The cut with the fewest products."""
        if d > MAX_FEATURES_AT_ONCE:
            return cls((_CHUNK, 0, 0), chunks=-(-d // _CHUNK))
        whole, over = d - d % 16, d % 16
        if whole == 0 or over > 10:  # three products of 16 are no longer than one of 3 x 11
            whole, over = -(-d // 16) * 16, 0
        sizes = [size for size in (128, 64, 32, 16) if whole & size]
        sizes += [0] * (3 - len(sizes))
        rest = 0 if over == 0 else 16 if over <= 5 else 32
        return cls((sizes[0], sizes[1], sizes[2]), rest, over)

    @property
    def width(self) -> int:
        """Numbers stored for each row."""
        return 2 * _CHUNK * self.chunks if self.chunks else 2 * (sum(self.sizes) + self.rest)


@dataclass(frozen=True)
class Packed:
    """Rows of one view, split in two float16 parts, padded to whole tiles."""

    parts: Any  # (rows padded, width): of each piece h and l; of the rest (h, l, h) and (l, h, h)
    norms: Any  # |x|^2/2 in units, float64; infinite in the padding, so its kernel values vanish
    n: int
    unit: float  # what features were divided by, so that float16 holds them
    largest: float  # of the norms
    pieces: Pieces

    @classmethod
    def of(cls, rows: Any, unit: float | None = None) -> Packed:
        """Pack the centred rows of a view; ``unit`` is that of the rows they will meet."""
        n, d = rows.shape
        pieces = Pieces.of(d)
        if unit is None:
            unit = unit_of(rows)
        padded = -(-n // WHOLE_ROWS) * WHOLE_ROWS
        x = (rows / unit).to(torch.float32)
        high = x.half()
        low = (x - high.float()).half()
        parts = torch.zeros((padded, pieces.width), dtype=torch.float16, device=rows.device)
        start = at = 0
        for size in (_CHUNK,) * pieces.chunks or pieces.sizes:
            end = min(start + size, d)
            parts[:n, at : at + end - start] = high[:, start:end]
            parts[:n, at + size : at + size + end - start] = low[:, start:end]
            start, at = end, at + 2 * size
        if pieces.rest:
            h, m, over = high[:, start:], low[:, start:], pieces.left_over
            parts[:n, at : at + 3 * over] = torch.cat([h, m, h], dim=1)
            parts[:n, at + pieces.rest :][:, : 3 * over] = torch.cat([m, h, h], dim=1)
        norms = torch.full((padded,), torch.inf, dtype=torch.float64, device=rows.device)
        norms[:n] = 0.5 * x.double().square().sum(1)
        return cls(parts, norms, n, unit, float(norms[:n].max()), pieces)


def unit_of(*rows: Any) -> float:
    """What features are divided by, so that float16 holds those of all these rows."""
    return max(max(float(part.abs().max()) for part in rows), 1e-30) / _LARGEST


# -- Kernel sets fitted on a device: scaling, widths and rows never leave it. --


@dataclass(frozen=True)
class TorchKernelSet:
    """Rbf kernels on scaled views of rows that live on a device.

    The same scaling, widths and subsample as `KernelSet.fit`, computed where the rows are; of
    whitened views and normal scores, the scaling alone comes from the host.
    """

    names: tuple[str, ...]
    columns: tuple[Indices, ...]
    scalers: tuple[Any, ...]
    rows: tuple[Any, ...]
    kernels: tuple[tuple[Rbf, ...], ...]
    at_host: tuple[Array | None, ...]
    """The rows of views that the host scaled; None of others."""

    @classmethod
    def fit(
        cls,
        X: Any,
        views: Mapping[str, Indices],
        *,
        widths: Any = 1.0,
        scaling: Any = "standard",
        drop_constant: bool = True,
        dtype: Any = None,
    ) -> TorchKernelSet:
        """Fit scaling and widths of every view; columns of constant views join another."""
        factors = parse_widths(widths)
        parts: list[Any] = []
        # Up to the rounding of their values.
        spread = (X.amax(dim=0) - X.amin(dim=0)).double()
        constant = spread <= 10 * np.finfo(float).eps * X.abs().amax(dim=0).double()
        constant = constant.cpu().numpy()
        read = views
        if drop_constant:
            read = joined(views, constant, [v for v in views if knows_unseen(scaling, v)])
        for name, columns in read.items():
            part = X[:, torch.as_tensor(columns, device=X.device)]
            if not part.is_floating_point() or part.dtype.itemsize < 4:
                part = part.to(dtype or torch.float64)
            if dtype is not None and dtype.itemsize > part.dtype.itemsize:
                part = part.to(dtype)  # scaled in the better of the two types
            largest = float(part.abs().max())
            if largest > LARGEST or 0.0 < largest < 1.0 / LARGEST:
                check_size(name, part.double().cpu().numpy(), columns)
            scalings = read_scalings(scaling, name)
            for scaler, scaled, at_host in _scaled(name, part, scalings, constant[columns].any()):
                rows = scaled.to(dtype or scaled.dtype)
                parts.append((name, columns, scaler, rows, _fitted(scaled, factors), at_host))
        return cls(*zip(*parts, strict=True))

    def stack(self) -> TorchTiledStack:
        """The tiled stack of the training rows."""
        return TorchTiledStack(self.rows, self.kernels)

    def to_kernel_set(self) -> KernelSet:
        """The same set with its rows on the host, for scoring there and for files."""
        at_host = (
            rows.double().cpu().numpy() if host_rows is None else host_rows
            for rows, host_rows in zip(self.rows, self.at_host, strict=True)
        )
        parts = zip(self.names, self.columns, self.scalers, at_host, self.kernels, strict=True)
        views = tuple(ScaledView(*part) for part in parts)
        return KernelSet(views, names_by_view(views))


def _scaled(
    view: str, part: Any, scalings: tuple[Any, ...], has_constant: Any
) -> Iterator[tuple[Any, Any, Array | None]]:
    """Each scaling of a view, its rows on the device, and at the host where they were scaled."""
    if has_constant or not all(type(scaling) in SCALINGS_ON_DEVICE for scaling in scalings):
        at_host = part.double().cpu().numpy()
        for scaling in scalings:
            scaler, scaled = fit_scaling(scaling, at_host, None, view)
            yield scaler, torch.as_tensor(scaled, device=part.device), scaled
        return
    for scaling in scalings:
        if isinstance(scaling, Unscaled):
            yield Unscaled(), part, None
            continue
        mean, scale = _mean_and_scale(part)
        scaler = Standard()
        scaler.mean_, scaler.scale_ = mean.cpu().numpy(), scale.cpu().numpy()
        scaler.constant_ = np.zeros(part.shape[1], dtype=bool)
        yield scaler, (part - mean.to(part.dtype)) / scale.to(part.dtype), None


def _fitted(rows: Any, factors: tuple[float | str, ...]) -> tuple[Rbf, ...]:
    """Kernels with the widths that `Rbf.fit` would give them on the host."""
    mean = _mean_distance(rows) or 1.0
    centre = rows.mean(dim=0, dtype=torch.float64).cpu().numpy()
    numbers = [
        float(np.clip(_neighbour_distance(rows) / mean, *AUTO_RANGE)) if isinstance(f, str) else f
        for f in factors
    ]
    return tuple(Rbf(width=f * mean, factor=f, centre=centre) for f in numbers)


def _mean_and_scale(part: Any) -> tuple[Any, Any]:
    """Mean and population deviation of each column in float64."""
    mean = part.mean(dim=0, dtype=torch.float64)
    step = max(1, 2**26 // part.shape[1])
    squares = sum(
        ((part[i : i + step].double() - mean) ** 2).sum(dim=0) for i in range(0, len(part), step)
    )
    scale = (squares / len(part)).sqrt()
    scale[scale == 0.0] = 1.0  # of values too small to be squared
    return mean, scale


def _picked(rows: Any, most: int) -> Any:
    """The rows that the host would draw where there are more than ``most``."""
    if len(rows) <= most:
        return rows
    wide = rows.double()
    size = (wide - wide.mean(dim=0)).norm(dim=1).cpu().numpy()
    pick = spread_sample(size, most)
    return rows[torch.as_tensor(pick, device=rows.device)]


def _mean_distance(rows: Any) -> float:
    """That of `kernull.kernels.mean_distance`."""
    picked = _picked(rows, EXACT_ROWS).double()
    picked = picked - picked.mean(dim=0)
    distances = torch.cdist(picked, picked).fill_diagonal_(0.0)  # rounding leaves about 1e-8 there
    return float(distances.sum()) / (len(picked) * (len(picked) - 1))


def _neighbour_distance(rows: Any) -> float:
    """That of `kernull.kernels.neighbour_distance`."""
    mean = rows.mean(dim=0, dtype=torch.float64)
    blocks = [slice(i, i + BLOCK_ROWS) for i in range(0, len(rows), BLOCK_ROWS)]
    squares = torch.cat([(rows[i].double() - mean).square().sum(1) for i in blocks])
    floor = 1e-14 * squares.max()  # copies come out at the rounding of |x|^2 + |y|^2 - 2x'y
    picked = _picked(rows, NEIGHBOUR_ROWS).double() - mean
    norms = picked.square().sum(1, keepdim=True)
    nearest = torch.full_like(norms[:, 0], torch.inf)
    for i in blocks:
        apart = torch.addmm(squares[i], picked, (rows[i].double() - mean).T, alpha=-2.0)
        apart.add_(norms)
        apart.masked_fill_(apart <= floor, torch.inf)
        nearest = torch.minimum(nearest, apart.amin(dim=1))
    if not bool(torch.isfinite(nearest).all()):  # all rows are copies of one
        return 0.0
    return float(np.median(nearest.sqrt().cpu().numpy()))

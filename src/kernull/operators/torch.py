"""Rbf kernels on torch, CPU or CUDA: stored or tiled, and kernel sets fitted on a device.

Other kernels are evaluated on the host. The device is that of the rows. Products come back as NumPy
arrays in float64: the solvers work on n x m blocks that cost nothing next to a pass. On CUDA in
float32, products with a few vectors run in one fused kernel (`kernull.operators.triton`), which
takes rows `Packed` in two float16 parts; everything else is plain torch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from kernull._typing import Array, Indices
from kernull.errors import MissingCapabilityError
from kernull.kernels import (
    AUTO_RANGE,
    EXACT_ROWS,
    NEIGHBOUR_ROWS,
    Rbf,
    spread_sample,
)
from kernull.operators.base import SweptStack
from kernull.operators.landmarks import LandmarkFactors
from kernull.operators.tiled import TiledStack, is_rbf
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
PRECONDITIONED_ROWS, LANDMARKS, LANDMARK_NUMBERS = 50_000, 1000, 2 * 10**9
#: Added to the small matrix, relative to its trace: what rounding may take from it.
CORE_JITTER = {torch.float64: 1e-13, torch.float32: 1e-9}
#: Rows that neighbours are looked for among at a time.
NEIGHBOUR_BLOCK = 2**16
#: Rows are padded to a multiple of this.
WHOLE_ROWS = 128
#: Features beyond which a tile's exponents are summed chunk by chunk.
MAX_FEATURES_AT_ONCE = 128
_CHUNK = 64
#: Largest feature after division by the unit: float16 ends at 65504 and is coarse below 2^-14.
_LARGEST = 2.0**15


def device_preconditioner_rows(n: int) -> int:
    """Landmarks that a solver's preconditioner should have: 0 where passes are short."""
    return 0 if n < PRECONDITIONED_ROWS else min(LANDMARKS, LANDMARK_NUMBERS // n)


def _torch_dtype(dtype: Any) -> Any:
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

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n); for square stacks."""
        return self._numpy(self.kernels.diagonal(dim1=1, dim2=2)) * self.scale[:, None]

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        return self._numpy(self.kernels[:, index]) * self.scale[:, None, None]

    def _products(self, V: Any) -> Any:
        return torch.matmul(self.kernels, V)


class TorchTiledStack(TorchStack, TiledStack):
    """J kernels between rows on a torch device, none of them ever formed.

    Parameters
    ----------
    kernel_set, left, scale
        As in `TiledStack`; rows may be tensors, and go to the device where they are not.
    device : torch.device or str
    dtype : dtype
        Type of kernel values, NumPy's or torch's.
    """

    def __init__(
        self,
        kernel_set: KernelSet,
        device: Any = "cpu",
        dtype: Any = torch.float64,
        *,
        left: KernelSet | None = None,
        scale: Array | None = None,
    ) -> None:
        self.dtype = dtype if isinstance(dtype, torch.dtype) else _torch_dtype(dtype)
        self.options = {"device": device, "dtype": self.dtype}
        if not is_rbf(kernel_set):
            raise MissingCapabilityError(
                f"kernels: {kernel_set!r} has kernels other than rbf, which do not run on torch; "
                "use storage='tiled' with NumPy input."
            )
        self.kernel_set = _placed(kernel_set, device, self.dtype)
        self.left = None if left is None else _placed(left, device, self.dtype)
        self.scale = np.ones(kernel_set.J) if scale is None else np.asarray(scale, dtype=float)
        self.device = self.kernel_set.views[0].train.device
        self.shape = ((left or kernel_set).n, kernel_set.n)
        #: Whether the fused kernel serves for rbf products, as it does wherever it can run.
        self.fused = self.device.type == "cuda" and self.dtype == torch.float32 and HAS_TRITON
        self._packed: dict[int, tuple[Any, Any]] = {}
        self._centres: dict[int, Any] = {}

    def landmark_factors(self) -> DeviceFactors:
        """Factors of the kernels, which are those between landmarks."""
        return DeviceFactors(self)

    def _lefts(self, v: int) -> Any:
        return (self.left or self.kernel_set).views[v].train

    def _inverse_squares(self, v: int) -> list[float]:
        kernels: tuple[Any, ...] = self.kernel_set.views[v].kernels
        return [float(kernel.width**-2.0) for kernel in kernels]

    @property
    def _views(self) -> Iterator[tuple[int, slice, list[float]]]:
        """Number of each view, places of its kernels among the J, and their 1 / width^2."""
        j = 0
        for v in range(len(self.kernel_set.views)):
            inverse_squares = self._inverse_squares(v)
            yield v, slice(j, j + len(inverse_squares)), inverse_squares
            j += len(inverse_squares)

    def dense(self) -> TorchDenseStack:
        """The same stack with its kernels stored on the device."""
        out = torch.empty((self.J, *self.shape), dtype=self.dtype, device=self.device)
        for v, places, inverse_squares in self._views:
            right = self._right(v)
            for band in self._bands():
                for i, K in self._values(v, inverse_squares, band, right):
                    out[places.start + i, band] = K
        return TorchDenseStack(out, self.scale)

    def diagonal(self) -> Array:
        """k_j(x, x) = 1 times the factors, of shape (J, m)."""
        return np.repeat(self.scale[:, None], len(self), axis=1)

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        picked = self[np.atleast_1d(np.arange(len(self))[index])]
        # A slice of all rows may come back square; its values are the same.
        return picked.dense().rows(slice(None))

    def _products(self, V: Any) -> Any:
        """V of shape (n, k), or one such a kernel: (J, n, k)."""
        shape = (self.J, len(self), V.shape[-1])
        out = torch.zeros(shape, dtype=torch.float64, device=self.device)
        for v, places, inverse_squares in self._views:
            work = self._plain
            if self.fused and V.shape[-1] * len(inverse_squares) <= MAX_FUSED_VECTORS:
                work = self._by_triton
            work(v, inverse_squares, V if V.ndim == 2 else V[places], out[places])
        return out

    def _combined_bands(self, weights: Array) -> Iterator[tuple[slice, Any]]:
        """The sum of b_j K_j, without the factors of the kernels, in bands of rows."""
        rights = [self._right(v) for v, _, _ in self._views]
        for band in self._bands():
            total = None
            for v, places, inverse_squares in self._views:
                for i, K in self._values(v, inverse_squares, band, rights[v]):
                    b = weights[places.start + i]
                    total = K.mul_(b) if total is None else total.add_(K, alpha=b)
            yield band, total

    def coarse(self) -> TorchTiledStack | None:
        """Nearly the same stack, for a first solution: in float32, where that is fused; or None."""
        fused = self.device.type == "cuda" and HAS_TRITON and self.left is None
        if not fused or self.dtype != torch.float64:
            return None
        # Rows far from the origin are centred before they lose digits.
        views = []
        for v, view in enumerate(self.kernel_set.views):
            kernels = tuple(Rbf(k.width, k.factor) for k in view.kernels if isinstance(k, Rbf))
            rows: Any = view.train - self._centre(v)
            views.append(replace(view, train=rows.float(), kernels=kernels))
        near = replace(self.kernel_set, views=tuple(views))
        return TorchTiledStack(near, self.device, torch.float32, scale=self.scale)

    def landmark_inverse(
        self, index: Indices, ridge: float, row_scale: Array | None = None
    ) -> TorchLandmarks:
        """A function that nearly applies the inverse of rho I + K_b; see `TorchLandmarks`."""
        columns = TorchTiledStack(
            self.kernel_set.take(index), left=self.kernel_set, scale=self.scale, **self.options
        )
        return TorchLandmarks(columns, index, ridge, row_scale)

    def _by_triton(self, v: int, inverse_squares: list[float], V: Any, out: Any) -> None:
        from kernull.operators.triton import rbf_products

        left, right = self._pack(v)
        symmetric = self.left is None
        if V.ndim == 2:
            out.copy_(rbf_products(left, right, inverse_squares, V, symmetric=symmetric))
            return
        for i, c in enumerate(inverse_squares):
            out[i] = rbf_products(left, right, [c], V[i], symmetric=symmetric)[0]

    def _pack(self, v: int) -> tuple[Packed, Packed]:
        """Rows on the left and on the right of one view, as the fused kernel takes them."""
        if v not in self._packed:
            right, pack = self.kernel_set.views[v].train - self._centre(v), Packed.of
            if self.left is None:
                self._packed[v] = (pack(right),) * 2
            else:
                # What is farther from every row than fifteen widths has kernel values of nought.
                widths = [c**-0.5 for c in self._inverse_squares(v)]
                far = float(right.abs().max()) + 15.0 * max(widths)
                left = (self._lefts(v) - self._centre(v)).clamp(-far, far)
                unit = unit_of(left, right)
                self._packed[v] = pack(left, unit), pack(right, unit)
        return self._packed[v]

    def _plain(self, v: int, inverse_squares: list[float], V: Any, out: Any) -> None:
        """Products of one view's kernels, band by band: half of the values where symmetric."""
        symmetric, right = self.left is None, self._right(v)
        for band in self._bands():
            end = band.stop if symmetric else None
            for i, K in self._values(v, inverse_squares, band, right[:end]):
                vectors = V if V.ndim == 2 else V[i]
                out[i, band] += (K @ vectors[:end]).double()
                if symmetric and band.start:
                    out[i, : band.start] += (K[:, : band.start].T @ vectors[band]).double()

    def _bands(self) -> Iterator[slice]:
        room = BAND_BYTES.get(self.device.type, BAND_BYTES["cpu"])
        step = max(1, room // (self.n * self.dtype.itemsize))
        return (slice(i, i + step) for i in range(0, len(self), step))

    def _values(
        self, v: int, inverse_squares: list[float], band: slice, right: Any
    ) -> Iterator[tuple[int, Any]]:
        """Kernels of one view between a band of rows and those on the right; new tensors."""
        x = self._lefts(v)[band] - self._centre(v)
        left = torch.cat([x, _half_norms(x), torch.ones_like(x[:, :1])], dim=1)
        # One kernel alone has its width in the rows already: one sweep over the values less.
        unit = inverse_squares[0] if len(inverse_squares) == 1 else 1.0
        exponents = left.mul_(unit) @ right.T
        for i, c in enumerate(inverse_squares):
            last = i == len(inverse_squares) - 1
            K = exponents if last else exponents.clone()
            yield i, (K if c == unit else K.mul_(c / unit)).exp_()

    def _right(self, v: int) -> Any:
        """The training rows of a view as `_values` takes them, once for all bands."""
        y = self.kernel_set.views[v].train - self._centre(v)
        return torch.cat([y, torch.ones_like(y[:, :1]), _half_norms(y)], dim=1)

    def _centre(self, v: int) -> Any:
        """Where the kernels of one view see its rows from, so that distances keep their digits."""
        if v not in self._centres:
            kernel: Any = self.kernel_set.views[v].kernels[0]
            centre = torch.as_tensor(0.0 if kernel.centre is None else kernel.centre)
            self._centres[v] = centre.to(self.device, self.dtype)
        return self._centres[v]


def _placed(kernel_set: KernelSet, device: Any, dtype: Any) -> KernelSet:
    """A kernel set with its rows as tensors on a device; they are converted there."""
    views = tuple(
        replace(view, train=torch.as_tensor(view.train).to(device).to(dtype))
        for view in kernel_set.views
    )
    return replace(kernel_set, views=views)


def _half_norms(rows: Any) -> Any:
    """-|x|^2 / 2 of each row, of shape (n, 1)."""
    return -0.5 * rows.square().sum(1, keepdim=True)


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
        for band, K in stack._combined_bands(scaled):
            if self.row_scale is not None:
                K = K * self.row_scale[band, None] * self.row_scale[self.index]
            C[band] = K
            core += (K.T @ K).double()
        core += self.ridge * C[self.index].double()
        jitter = CORE_JITTER[stack.dtype] * core.diagonal().sum()
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


def fit_on_device(
    X: Any,
    views: Mapping[str, Indices],
    *,
    widths: Any = 1.0,
    scaling: Any = "standard",
    drop_constant: bool = True,
    dtype: Any = None,
) -> KernelSet:
    """`KernelSet.fit` for rbf kernels, with the same numbers, where a tensor of rows is.

    The rows of the set are tensors on that device, of type ``dtype``. Whitened views and normal
    scores are scaled on the host.
    """
    factors, kept = parse_widths(widths), []
    # Up to the rounding of their values.
    spread = (X.amax(dim=0) - X.amin(dim=0)).double()
    constant = spread <= 10 * np.finfo(float).eps * X.abs().amax(dim=0).double()
    constant = constant.cpu().numpy()
    if drop_constant:
        views = joined(views, constant, [v for v in views if knows_unseen(scaling, v)])
    for name, columns in views.items():
        part = X[:, torch.as_tensor(columns, device=X.device)]
        if not part.is_floating_point() or part.dtype.itemsize < 4:
            part = part.to(dtype or torch.float64)
        if dtype is not None and dtype.itemsize > part.dtype.itemsize:
            part = part.to(dtype)  # scaled in the better of the two types
        largest = float(part.abs().max())
        if largest > LARGEST or 0.0 < largest < 1.0 / LARGEST:
            check_size(name, part.double().cpu().numpy(), columns)
        for scaling_of_view in read_scalings(scaling, name):
            scaler, scaled = _scaled(scaling_of_view, part, constant[columns].any(), name)
            rows, kernels = scaled.to(dtype or scaled.dtype), _rbf_kernels(scaled, factors)
            kept.append(ScaledView(name, columns, scaler, rows, kernels))
    return KernelSet(tuple(kept), names_by_view(kept))


def to_host(kernel_set: KernelSet) -> KernelSet:
    """The same set with its rows on the host, for scoring there and for files."""
    rows: list[Any] = [view.train for view in kernel_set.views]
    pairs = zip(kernel_set.views, rows, strict=True)
    views = tuple(replace(view, train=part.double().cpu().numpy()) for view, part in pairs)
    return replace(kernel_set, views=views)


def _scaled(scaling: Any, part: Any, has_constant: Any, view: str) -> tuple[Any, Any]:
    """A fitted scaling, and the rows of a view as it maps them."""
    if isinstance(scaling, Unscaled) and not has_constant:
        return Unscaled(), part
    if type(scaling) is not Standard or has_constant:
        scaler, scaled = fit_scaling(scaling, part.double().cpu().numpy(), None, view)
        return scaler, torch.as_tensor(scaled, device=part.device)
    mean, scale = _mean_and_scale(part)
    scaler = Standard()
    scaler.mean_, scaler.scale_ = mean.cpu().numpy(), scale.cpu().numpy()
    scaler.constant_ = np.zeros(part.shape[1], dtype=bool)
    return scaler, (part - mean.to(part.dtype)) / scale.to(part.dtype)


def _rbf_kernels(rows: Any, factors: tuple[float | str, ...]) -> tuple[Rbf, ...]:
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
    blocks = [slice(i, i + NEIGHBOUR_BLOCK) for i in range(0, len(rows), NEIGHBOUR_BLOCK)]
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

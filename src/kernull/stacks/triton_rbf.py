r"""Products of rbf kernels with a few vectors, fused into one Triton kernel (CUDA only).

Each program walks along a row of tiles. A tile's exponents come from the matrix units, its
exponential and its products with the vectors stay in registers: no kernel value is ever written.

Accuracy of float32 at the speed of float16: with x = h + l/2048, h and l in float16,

.. math:: x'y \approx h_x'h_y + (h_x'l_y + l_x'h_y) / 2048

leaves out only a term of relative size 2^-22. Sums over tiles are added up in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["MAX_VECTORS", "Packed", "rbf_products"]

#: Vectors that one launch serves; for more, plain torch (which stores tiles) is as fast.
MAX_VECTORS = 8
#: Tile edge, warps and pipeline stages.
LAUNCH = {"BLOCK": 128, "num_warps": 8, "num_stages": 2}
#: Features beyond which a tile's exponents are summed chunk by chunk.
MAX_FEATURES_AT_ONCE = 128
_CHUNK = 64
_LOW = 2048.0
_LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Packed:
    """Rows of one view, split in two float16 parts, padded to whole tiles."""

    high: Any  # (rows padded, features padded), float16
    low: Any
    norms: Any  # -|x|^2/2, float32; -inf-like in the padding, so its kernel values vanish
    n: int
    unit: float  # what features were divided by, so that float16 holds them

    @classmethod
    def of(cls, rows: Any, unit: float | None = None) -> Packed:
        """Pack the centred rows of a view; ``unit`` is that of the rows they will meet."""
        n, d = rows.shape
        block = int(LAUNCH["BLOCK"])
        if unit is None:
            unit = float(rows.abs().max().clamp_min(1e-30))
        padded = (-(-n // block) * block, _padded_features(d))
        x = (rows / unit).to(torch.float32)
        high = torch.zeros(padded, dtype=torch.float16, device=rows.device)
        low = torch.zeros_like(high)
        high[:n, :d] = x
        low[:n, :d] = (x - high[:n, :d].float()) * _LOW
        norms = torch.full((padded[0],), -1e30, dtype=torch.float32, device=rows.device)
        norms[:n] = -0.5 * x.double().square().sum(1)
        return cls(high, low, norms, n, unit)


def _padded_features(d: int) -> int:
    if d > MAX_FEATURES_AT_ONCE:
        return -(-d // _CHUNK) * _CHUNK
    return max(16, 1 << (d - 1).bit_length())


def rbf_products(
    left: Packed, right: Packed, inverse_squares: list[float], V: Any, *, symmetric: bool
) -> Any:
    """exp(-|x - y|^2 / (2 s_w^2)) V for every width s_w: (n, k) -> float64 (W, m, k)."""
    W, (n, k) = len(inverse_squares), V.shape
    block = int(LAUNCH["BLOCK"])
    down, across = len(left.high) // block, len(right.high) // block
    device = V.device
    coefficients = torch.tensor(inverse_squares, device=device, dtype=torch.float64)
    coefficients = (coefficients * (_LOG2_E * right.unit**2)).float()
    vectors = torch.zeros((k, len(right.high)), dtype=torch.float32, device=device)
    vectors[:, :n] = V.T
    out = torch.zeros((W * k, len(left.high)), dtype=torch.float64, device=device)
    # Enough programs to fill the card whatever the shape, few enough to keep sums in registers.
    splits = max(1, min(across, 2048 // max(down, 1)))
    per = -(-across // splits)
    features = left.high.shape[1]
    _walk[(down, splits)](
        left.high,
        left.low,
        left.norms,
        right.high,
        right.low,
        right.norms,
        coefficients,
        vectors,
        out,
        len(left.high),
        len(right.high),
        across,
        per,
        W=W,
        K=k,
        P=1 << (W * k - 1).bit_length(),
        FEATURES=features,
        CHUNK=features if features <= MAX_FEATURES_AT_ONCE else _CHUNK,
        SYMMETRIC=symmetric,
        **LAUNCH,
    )
    return out[:, : left.n].reshape(W, k, left.n).transpose(1, 2)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _walk(  # type: ignore[no-untyped-def]
    XH,
    XL,
    XN,
    YH,
    YL,
    YN,
    C,
    V,
    OUT,
    rows_padded,
    columns_padded,
    across,
    per,
    W: tl.constexpr,
    K: tl.constexpr,
    P: tl.constexpr,
    FEATURES: tl.constexpr,
    CHUNK: tl.constexpr,
    SYMMETRIC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # Long rows of the triangle first, so that the card is busy to the end.
    i = tl.num_programs(0) - 1 - tl.program_id(0)
    first = tl.program_id(1) * per
    last = tl.minimum(first + per, across)
    if SYMMETRIC:
        last = tl.minimum(last, i + 1)
    lanes = tl.arange(0, BLOCK)
    f = tl.arange(0, CHUNK)
    rows = i * BLOCK + lanes
    x_at = rows[:, None].to(tl.int64) * FEATURES + f[None, :]
    xn = tl.load(XN + rows)
    slot = tl.arange(0, P)
    sums = tl.zeros((BLOCK, P), dtype=tl.float32)
    xh = tl.load(XH + x_at)
    xl = tl.load(XL + x_at)
    for t in range(first, last):
        columns = t * BLOCK + lanes
        y_at = columns[:, None].to(tl.int64) * FEATURES + f[None, :]
        yh = tl.load(YH + y_at)
        yl = tl.load(YL + y_at)
        e = tl.dot(xh, tl.trans(yl))
        e = tl.dot(xl, tl.trans(yh), e)
        if FEATURES == CHUNK:
            e = e * (1.0 / 2048.0)
            e = tl.dot(xh, tl.trans(yh), e)
        else:
            for start in range(CHUNK, FEATURES, CHUNK):
                e = tl.dot(tl.load(XH + x_at + start), tl.trans(tl.load(YL + y_at + start)), e)
                e = tl.dot(tl.load(XL + x_at + start), tl.trans(tl.load(YH + y_at + start)), e)
            e = e * (1.0 / 2048.0)
            for start in range(0, FEATURES, CHUNK):
                e = tl.dot(tl.load(XH + x_at + start), tl.trans(tl.load(YH + y_at + start)), e)
        yn = tl.load(YN + columns)
        e = tl.minimum(e + xn[:, None] + yn[None, :], 0.0)
        for w in tl.static_range(W):
            kernel = tl.exp2(e * tl.load(C + w))
            for k in tl.static_range(K):
                vy = tl.load(V + k * columns_padded + columns)
                row_sum = tl.sum(kernel * vy[None, :], axis=1)
                sums += tl.where(slot[None, :] == w * K + k, row_sum[:, None], 0.0)
                if SYMMETRIC and t != i:
                    vx = tl.load(V + k * columns_padded + rows)
                    column_sum = tl.sum(kernel * vx[:, None], axis=0)
                    at = OUT + (w * K + k) * rows_padded + columns
                    tl.atomic_add(at, column_sum.to(tl.float64))
    if first < last:
        at = OUT + slot[None, :].to(tl.int64) * rows_padded + rows[:, None]
        tl.atomic_add(at, sums.to(tl.float64), mask=slot[None, :] < W * K)

r"""Products of rbf kernels with a few vectors, fused into one Triton kernel (CUDA only).

Each program keeps a block of rows and walks along the others, tile by tile. A tile's exponents come
from the matrix units, its exponential and its products with the vectors stay in registers: no
kernel value is ever written, and each serves its row and its column.

Accuracy of float32 at the speed of float16: with x = h + l, h and l in float16,

.. math:: x'y \approx h_x'l_y + l_x'h_y + h_x'h_y

leaves out only a term of relative size 2^-22. Sums over tiles are added up in float64.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from kernull.operators.torch import WHOLE_ROWS, Packed

#: Vectors times widths that one launch serves: two vectors, or two widths of one vector.
SLOTS = 2
#: Rows of a tile, its columns, warps and pipeline stages.
LAUNCH = {"BM": 64, "BN": WHOLE_ROWS, "num_warps": 4, "num_stages": 2}
#: Tiles that one program walks along at most: as many are summed up in float32.
LONGEST = 128
#: Programs that fill the card.
PROGRAMS = 2048
#: Norms, in powers of two, up to which a factor 2^norm can be taken out of a kernel value.
_FOLDED = 100.0
_LOG2_E = 1.4426950408889634


def rbf_products(
    left: Packed, right: Packed, inverse_squares: list[float], V: Any, *, symmetric: bool
) -> Any:
    """exp(-|x - y|^2 / (2 s_w^2)) V for every width s_w: (n, k) -> float64 (W, m, k)."""
    W, k = len(inverse_squares), V.shape[1]
    out = torch.zeros((W, k, len(left.parts)), dtype=torch.float64, device=V.device)
    widths = min(W, SLOTS)
    vectors = SLOTS // widths
    for w in range(0, W, widths):
        for v in range(0, k, vectors):
            target = out[w : w + widths, v : v + vectors]
            part = target if target.is_contiguous() else torch.zeros(target.shape).to(target)
            _launch(left, right, inverse_squares[w : w + widths], V[:, v : v + vectors], part,
                    symmetric)  # fmt: skip
            if part is not target:
                target.copy_(part)
    return out[:, :, : left.n].transpose(1, 2)


def _launch(
    left: Packed, right: Packed, inverse_squares: list[float], V: Any, out: Any, symmetric: bool
) -> None:
    W, (n, k) = len(inverse_squares), V.shape
    device, unit2 = V.device, right.unit**2
    scales = [c * _LOG2_E * unit2 for c in inverse_squares]  # exponents of two
    # The rows that programs keep have their sums in registers; the others walk past.
    kept, passing = (-side.norms * scales[0] for side in (left, right))
    folded = max(scales) * left.largest <= _FOLDED
    vectors = torch.zeros((k, len(right.parts)), dtype=torch.float32, device=device)
    vectors[:, :n] = V.T
    # What the kept rows hold for their partners: 2^norm times their vectors, where that is safe.
    gains = torch.stack([torch.exp2(kept * (c / scales[0])) for c in scales])
    kept_vectors = vectors
    if symmetric and folded:
        kept_vectors = (gains[:, None] * vectors).reshape(W * k, -1).float()
    elif symmetric:
        kept_vectors = vectors.repeat(W, 1)
    coefficients = torch.tensor([scales[0], scales[-1] / scales[0]], device=device).float()
    across, down = len(left.parts) // LAUNCH["BN"], len(right.parts) // LAUNCH["BM"]
    tiles = across * down // (2 if symmetric else 1)
    per = max(1, min(LONGEST, tiles // PROGRAMS))
    pieces = right.pieces
    _walk[(across, -(-down // per))](
        right.parts,
        left.parts,
        passing.clamp_min(-1e30).float(),
        kept.clamp_min(-1e30).float(),
        coefficients,
        vectors,
        kept_vectors,
        gains.float(),
        out,
        len(left.parts),
        len(right.parts),
        down,
        per,
        S=pieces.width,
        P0=pieces.sizes[0],
        P1=pieces.sizes[1],
        P2=pieces.sizes[2],
        REST=pieces.rest,
        CHUNKS=pieces.chunks,
        W=W,
        K=k,
        WARPS=LAUNCH["num_warps"],
        SYMMETRIC=symmetric,
        FOLDED=folded,
        **LAUNCH,
    )


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _block(B, rows, at: tl.constexpr, P: tl.constexpr, S: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(B + rows[:, None].to(tl.int64) * S + (at + tl.arange(0, P))[None, :])


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _down(  # type: ignore[no-untyped-def]
    kernel, V, rows, first_below, WARPS: tl.constexpr
):
    """Sums down the columns, as far as one thread's rows go: no exchange between threads."""
    v = tl.load(V + rows, mask=rows >= first_below, other=0.0)
    part = kernel * v[:, None]
    BM: tl.constexpr = part.shape[0]
    BN: tl.constexpr = part.shape[1]
    part = tl.reshape(part, (BM // (16 * WARPS), WARPS, 2, 8, BN))
    return tl.sum(tl.sum(part, axis=2), axis=0)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _along(kernel, V, columns, OUT, rows):  # type: ignore[no-untyped-def]
    """Sums along the rows, added to those of other programs."""
    v = tl.load(V + columns)
    total = tl.sum(kernel * v[None, :], axis=1)
    tl.atomic_add(OUT + rows, total.to(tl.float64), sem="relaxed")


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _finish(total, G, OUT, columns, FOLDED: tl.constexpr):  # type: ignore[no-untyped-def]
    total = tl.sum(tl.sum(total, axis=0), axis=0).to(tl.float64)
    if FOLDED:
        total = total * tl.load(G + columns)
    tl.atomic_add(OUT + columns, total, sem="relaxed")


@triton.jit(do_not_specialize=["columns_padded", "rows_padded", "down", "per"])  # type: ignore[untyped-decorator,unused-ignore]
def _walk(  # type: ignore[no-untyped-def]
    X,
    Y,
    XN,
    YN,
    C,
    V,
    KEPT,
    G,
    OUT,
    columns_padded,
    rows_padded,
    down,
    per,
    S: tl.constexpr,
    P0: tl.constexpr,
    P1: tl.constexpr,
    P2: tl.constexpr,
    REST: tl.constexpr,
    CHUNKS: tl.constexpr,
    W: tl.constexpr,
    K: tl.constexpr,
    WARPS: tl.constexpr,
    SYMMETRIC: tl.constexpr,
    FOLDED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Rows of Y, the columns of the tiles, are kept; those of X pass.

    In the symmetric case tiles on and below the diagonal are walked. The square on the diagonal is
    summed along its rows alone.
    """
    c = tl.program_id(0)
    first = tl.program_id(1) * per
    last = tl.minimum(first + per, down)
    if SYMMETRIC:
        first = tl.maximum(first, c * (BN // BM))
    below = (c + 1) * BN if SYMMETRIC else 0
    columns = c * BN + tl.arange(0, BN)
    A1: tl.constexpr = 2 * P0
    A2: tl.constexpr = A1 + 2 * P1
    AR: tl.constexpr = A2 + 2 * P2
    if CHUNKS == 0:
        yh0 = _block(Y, columns, 0, P0, S)
        yl0 = _block(Y, columns, P0, P0, S)
        if P1 > 0:
            yh1 = _block(Y, columns, A1, P1, S)
            yl1 = _block(Y, columns, A1 + P1, P1, S)
        if P2 > 0:
            yh2 = _block(Y, columns, A2, P2, S)
            yl2 = _block(Y, columns, A2 + P2, P2, S)
        if REST > 0:
            yr = _block(Y, columns, AR + REST, REST, S)
    yn = tl.load(YN + columns)
    c0 = tl.load(C)
    acc0 = tl.zeros((WARPS, 8, BN), dtype=tl.float32)
    if W * K > 1:
        acc1 = tl.zeros((WARPS, 8, BN), dtype=tl.float32)
    for t in range(first, last):
        rows = t * BM + tl.arange(0, BM)
        if CHUNKS > 0:
            e = tl.zeros((BM, BN), dtype=tl.float32)
            for chunk in range(CHUNKS):
                at = chunk * (2 * P0)
                xh = _block(X + at, rows, 0, P0, S)
                xl = _block(X + at, rows, P0, P0, S)
                yh = _block(Y + at, columns, 0, P0, S)
                yl = _block(Y + at, columns, P0, P0, S)
                e = tl.dot(xh, tl.trans(yl), e)
                e = tl.dot(xl, tl.trans(yh), e)
                e = tl.dot(xh, tl.trans(yh), e)
        else:
            xh0 = _block(X, rows, 0, P0, S)
            xl0 = _block(X, rows, P0, P0, S)
            # What is small is added up first.
            e = tl.dot(xh0, tl.trans(yl0))
            e = tl.dot(xl0, tl.trans(yh0), e)
            if P1 > 0:
                xh1 = _block(X, rows, A1, P1, S)
                xl1 = _block(X, rows, A1 + P1, P1, S)
                e = tl.dot(xh1, tl.trans(yl1), e)
                e = tl.dot(xl1, tl.trans(yh1), e)
            if P2 > 0:
                xh2 = _block(X, rows, A2, P2, S)
                xl2 = _block(X, rows, A2 + P2, P2, S)
                e = tl.dot(xh2, tl.trans(yl2), e)
                e = tl.dot(xl2, tl.trans(yh2), e)
            if REST > 0:
                xr = _block(X, rows, AR, REST, S)
                e = tl.dot(xr, tl.trans(yr), e)
            e = tl.dot(xh0, tl.trans(yh0), e)
            if P1 > 0:
                e = tl.dot(xh1, tl.trans(yh1), e)
            if P2 > 0:
                e = tl.dot(xh2, tl.trans(yh2), e)
        xn = tl.load(XN + rows)
        if FOLDED:
            e = e * c0 + xn[:, None]
        else:
            e = tl.minimum(e * c0 + (xn[:, None] + yn[None, :]), 0.0)
            if SYMMETRIC:  # large norms do not cancel to the last digit
                e = tl.where(rows[:, None] == columns[None, :], 0.0, e)
        kernel = tl.exp2(e)
        acc0 += _down(kernel, V, rows, below, WARPS)
        if SYMMETRIC:
            _along(kernel, KEPT, columns, OUT, rows)
        if W * K > 1:
            if W > 1:  # another width; else another vector
                kernel = tl.exp2(e * tl.load(C + 1))
            acc1 += _down(kernel, V + (K - 1) * rows_padded, rows, below, WARPS)
            if SYMMETRIC:
                _along(kernel, KEPT + columns_padded, columns, OUT + columns_padded, rows)
    if first < last:
        _finish(acc0, G, OUT, columns, FOLDED)
        if W * K > 1:
            at = (W - 1) * columns_padded
            _finish(acc1, G + at, OUT + columns_padded, columns, FOLDED)

"""Rows as the fused rbf kernel takes them: float32 in two float16 parts, in whole blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

#: Rows are padded to a multiple of this.
WHOLE_ROWS = 128
#: Features beyond which a tile's exponents are summed chunk by chunk.
MAX_FEATURES_AT_ONCE = 128
_CHUNK = 64
#: Largest feature after division by the unit: float16 ends at 65504 and is coarse below 2^-14.
_LARGEST = 2.0**15


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

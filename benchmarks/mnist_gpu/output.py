"""Progress on the screen and tables in files."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

START = time.perf_counter()


def say(*words: Any) -> None:
    """Progress with the time since the start."""
    print(f"[{time.perf_counter() - START:6.1f}]", *words, flush=True)


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """All rows so far, under one header."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def averages(rows: list[dict[str, Any]]) -> list[str]:
    """Lines: method, scaling, digits done, mean test AUC."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["method"], row["scaling"]), []).append(100 * row["auc"])
    ordered = sorted(found.items(), key=lambda item: -float(np.mean(item[1])))
    return [f"{m:24s} {s:9s} {len(v):3d} {np.mean(v):7.3f}" for (m, s), v in ordered]

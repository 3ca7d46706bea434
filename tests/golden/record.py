"""Write the record: ``python -m tests.golden.record FOLDER``. Run once, by the code to keep.

``python -m tests.golden.record --changed FOLDER`` writes what now differs to ``record-0.2.npz``,
``python -m tests.golden.record --api FOLDER`` the public interface to ``api.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from tests.golden.api import tree
from tests.golden.cases import fitted, measured


def main(folder: str) -> None:
    home = Path(folder)
    record = {}
    for name, (model, rows, options) in fitted().items():
        for key, values in measured(model, rows, options).items():
            record[f"{name}/{key}"] = np.asarray(values)
    np.savez_compressed(home / "record.npz", **record)
    print(len({key.split("/")[0] for key in record}), "models,", len(record), "arrays")


def changed(folder: str) -> None:
    """Arrays that differ from the record by more than rounding."""
    home = Path(folder)
    old, new = np.load(home / "record.npz"), {}
    for name, (model, rows, options) in fitted().items():
        for key, values in measured(model, rows, options).items():
            place, values = f"{name}/{key}", np.asarray(values)
            if place not in old.files:
                continue
            before = old[place]
            tolerance = 1e-4 if name == "float32" else 1e-9
            scale = np.abs(before.astype(float)).max(initial=1e-300)
            same = before.shape == values.shape and np.allclose(
                values.astype(float), before.astype(float), rtol=0, atol=tolerance * scale
            )
            if not same:
                new[place] = values
    np.savez_compressed(home / "record-0.2.npz", **new)
    print(len({key.split("/")[0] for key in new}), "models,", len(new), "arrays differ")


def interface(folder: str) -> None:
    """Public names, signatures and learned attributes."""
    text = json.dumps(tree(), indent=1, sort_keys=True)
    (Path(folder) / "api.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    {"--changed": changed, "--api": interface}.get(sys.argv[1], main)(sys.argv[-1])

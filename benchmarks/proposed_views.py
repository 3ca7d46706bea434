"""How well ``views="auto"`` agrees with blocks of columns that are known: adjusted Rand indices.

    python -m benchmarks.proposed_views [--seeds 10]

1 is the truth, 0 is chance. Columns have no telling names, so that correlation decides. AUC of the
line's new parts is that of one view, of the proposal and of the true views.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from kernull import Judge, TableViews
from kernull.datasets import make_line

#: Columns of the simulated blocks.
SIZES = (3, 5, 8, 4)


def tables(seeds: int) -> Iterator[tuple[str, list[np.ndarray], list[np.ndarray]]]:
    """Name, tables, and the block of each of their columns."""
    line = make_line()
    block = np.empty(line.good.shape[1], dtype=int)
    for v, columns in enumerate(line.slices.values()):
        block[columns] = v
    yield "the line, 400 x 15, 4 instruments", [np.asarray(line.good)], [block]
    for factors, noise in ((1, 0.3), (1, 1.0), (2, 0.3), (3, 0.5)):
        made = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            parts = [rng.normal(size=(300, factors)) @ rng.normal(size=(factors, s)) for s in SIZES]
            made.append(np.hstack(parts) + noise * rng.normal(size=(300, sum(SIZES))))
        blocks = [np.repeat(np.arange(len(SIZES)), SIZES)] * seeds
        yield f"300 x 20, 4 blocks of {factors} factors, noise {noise}", made, blocks


def agreement(X: np.ndarray, block: np.ndarray) -> float:
    table = TableViews("auto").fit(X)
    views = enumerate(table.view_columns().values())
    found = {name: v for v, names in views for name in names}
    return float(adjusted_rand_score(block, [found[f"x{j}"] for j in range(X.shape[1])]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args(arguments).seeds
    print("| table | agreement, mean | least |\n| --- | --- | --- |")
    for name, made, blocks in tables(seeds):
        found = [agreement(X, block) for X, block in zip(made, blocks, strict=True)]
        print(f"| {name} | {np.mean(found):.2f} | {min(found):.2f} |")
    line = make_line()
    odd = np.asarray(line.verdict) != "ok"
    for name, views in {
        "one view": None,
        "auto": "auto",
        "the instruments": {v: [f"x{j}" for j in np.r_[c]] for v, c in line.slices.items()},
    }.items():
        judge = Judge(views=views).fit(np.asarray(line.good))
        auc = roc_auc_score(odd, -judge.score_samples(np.asarray(line.new)))
        print(f"AUC of the line's new parts, {name}: {100 * auc:.1f}")


if __name__ == "__main__":
    main()

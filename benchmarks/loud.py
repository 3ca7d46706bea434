"""How much a view of noise takes from views that know, by the kind of its columns.

    python -m benchmarks.loud [--seeds 4] [--write docs/results/loud.md]

Protocol, fixed before the first run. Tables, halves and splits of `benchmarks.decisions` (two views
that know: the first and the second half of the columns; the last seeds, which no choice was made
with). Beside them a view of noise: *tf-idf* of texts of 20 words, Zipf-distributed among 100;
*hashed words*, the same in 64 signed columns; *counts*, Poisson with rates from 0.3 to 5, 20
columns; *one-hot*, a category of ten values; *hour*, sine and cosine of a random hour; *shares* of
five parts in a total; and *three views*: tf-idf, hashed words and counts, each a view.

Printed: AUC without noise; points lost by the default model, by five nearest neighbours of the
standardised columns, and, by table, the largest loss of the model. No bound: what is lost is
stated, and how a view can be left out.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks.decisions import protocol
from benchmarks.decisions.measures import auc, fitted, neighbours
from benchmarks.decisions.tables import TABLES, Split, halves, split
from experiments._cells import generator
from experiments._tables import markdown

WORDS, LENGTH, HASHED = 100, 20, 64


def _words(rng, n):
    """How often each word is in each text, (n, WORDS)."""
    share = 1.0 / np.arange(1, WORDS + 1)
    return rng.multinomial(LENGTH, share / share.sum(), size=n).astype(float)


def _tf_idf(rng, n):
    return TfidfTransformer().fit_transform(_words(rng, n)).toarray()


def _hashed(rng, n):
    place, sign = rng.integers(HASHED, size=WORDS), rng.choice([-1.0, 1.0], WORDS)
    return _words(rng, n) @ (np.eye(HASHED)[place] * sign[:, None])


def _counts(rng, n):
    return rng.poisson(rng.uniform(0.3, 5.0, 20), (n, 20)).astype(float)


def _one_hot(rng, n):
    return np.eye(10)[rng.integers(10, size=n)]


def _hour(rng, n):
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.sin(angle), np.cos(angle)])


def _shares(rng, n):
    return rng.dirichlet(np.ones(5), n)


NOISE = {
    "tf-idf": (_tf_idf,), "hashed words": (_hashed,), "counts": (_counts,), "one-hot": (_one_hot,),
    "hour": (_hour,), "shares": (_shares,), "three views": (_tf_idf, _hashed, _counts),
}  # fmt: skip


def with_views(kind, rows, name, seed):
    """The same rows with views of noise behind; and all views."""
    rng, views = generator("loud", kind, name, seed), halves(rows.train.shape[1])
    parts = [rows.train, rows.normal, rows.outliers]
    ends = np.cumsum([len(part) for part in parts])
    for v, make in enumerate(NOISE[kind]):
        noise, d = make(rng, ends[-1]), parts[0].shape[1]
        views[f"noise {v}"] = list(range(d, d + noise.shape[1]))
        parts = [np.hstack([a, b]) for a, b in zip(parts, np.split(noise, ends[:-1]), strict=True)]
    return Split(*parts, rows.spare), views


def quality(rows, views):
    """AUC of the default model, and of five neighbours."""
    model = fitted(rows.train, views)
    ours = auc(model.score_samples(rows.normal), model.score_samples(rows.outliers))
    return np.array([ours, auc(*neighbours(rows.train, rows.normal, rows.outliers))])


def main(seeds=4, write=None):
    """Print a line for each kind, and write the page."""
    warnings.simplefilter("ignore")
    lost = {kind: [] for kind in NOISE}
    plain = []
    for name in TABLES:
        for seed in range(protocol.FIRST_SEED + 26, protocol.FIRST_SEED + 26 + seeds):
            rows = split(name, seed)
            without = quality(rows, halves(rows.train.shape[1]))
            plain.append(without)
            for kind in NOISE:
                lost[kind].append(without - quality(*with_views(kind, rows, name, seed)))
    lines = []
    for kind, found in lost.items():
        mean = np.mean(found, axis=0)
        of_table = np.reshape([f[0] for f in found], (len(TABLES), seeds)).mean(axis=1)
        worst = int(of_table.argmax())
        most = f"{of_table[worst]:.1f} ({TABLES[worst]})"
        lines.append([kind, f"{mean[0]:.1f}", f"{mean[1]:.1f}", most])
        print(*lines[-1], sep="  ", flush=True)
    head = ["view of noise", "AUC points lost", "by five neighbours", "most, of a table"]
    before = np.mean(plain, axis=0)
    text = (
        f"Without noise: AUC {before[0]:.1f}, five neighbours {before[1]:.1f}; eight tables, "
        f"{seeds} seeds."
    )
    print(text)
    if write:
        about = (__doc__ or "").split("\n\n", 2)[2]
        title = "# Views that shout\n\n`python -m benchmarks.loud`"
        Path(write).write_text(f"{title}\n\n{about}\n{text}\n\n{markdown(head, lines)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--write", metavar="FILE")
    main(**vars(parser.parse_args()))

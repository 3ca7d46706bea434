"""Do the thresholds hold, do the discoveries, and do the explanations point at the culprit?

    python -m benchmarks.trust                   # all three
    python -m benchmarks.trust alarms --splits 20
    python -m benchmarks.trust explain

Needs the Delft and Multiple Features files (KERNULL_DATA).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.covariance import LedoitWolf

from experiments.datasets import DELFT, load_delft, load_multiple_features
from kernull import MultiKernelFisherNull, join_views
from kernull.detector.calibration import Calibration, Split

RATE = 0.05
FDR = 0.1
TRAIN_SHARE = 0.7
#: Shares of outliers in the batches that `detect` judges.
MIXES = (0.5, 0.2)
#: Calibration rows of "split": 20k - 1 rows waste nothing at a rate of 5%.
FEW, MANY = 19, 39


@dataclass
class Set:
    """One data set: rows, and the classes to take as target in turn."""

    name: str
    X: np.ndarray
    labels: list[np.ndarray]
    views: object
    options: dict = field(default_factory=dict)


def load_sets(names: list[str] | None = None) -> list[Set]:
    sets = []
    for name in DELFT if names is None else [name for name in names if name != "mfeat"]:
        data = load_delft(name)
        sets.append(Set(name, data.X, [data.y], "features"))
    if names is not None and "mfeat" not in names:
        return sets
    digits = load_multiple_features()
    X, views = join_views(digits.views)
    labels = [digits.one_class(int(d)) for d in np.unique(digits.y)]
    sets.append(Set("mfeat", X, labels, views))
    return sets


def naive_threshold(model: MultiKernelFisherNull, X_train: np.ndarray) -> float:
    """What many packages do: the threshold from scores of the very rows that were fitted."""
    return Calibration.of(model.score_samples(X_train)).threshold(RATE)[0]


def one_split(data: Set, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    y = data.labels[seed % len(data.labels)]
    targets = rng.permutation(np.flatnonzero(y == 1))
    outliers = rng.permutation(np.flatnonzero(y == -1))
    cut = int(TRAIN_SHARE * len(targets))
    train, fresh = data.X[targets[:cut]], data.X[targets[cut:]]
    out: dict[str, float] = {"n": cut}

    model = MultiKernelFisherNull(views=data.views, false_alarm_rate=RATE).fit(train)
    scores = model.score_samples(fresh)
    out["cross"] = float((scores < model.threshold_).mean())
    out["naive"] = float((scores < naive_threshold(model, train)).mean())

    m = MANY if cut >= 2 * MANY else FEW
    split = MultiKernelFisherNull(
        views=data.views,
        false_alarm_rate=RATE,
        calibration=Split(m),
        random_state=seed,
    )
    out["m"] = m
    split.fit(train)
    out["split"] = float((split.predict(fresh) == -1).mean())
    # Discoveries need small p-values, so half of the rows calibrate.
    split.set_params(calibration=Split(0.5)).fit(train)
    for share in MIXES:
        normal = len(fresh)
        odd = round(share / (1 - share) * normal)
        if odd > len(outliers):  # keep the mix: fewer of both
            odd = len(outliers)
            normal = round(odd * (1 - share) / share)
        batch = np.vstack([fresh[:normal], data.X[outliers[:odd]]])
        found = split.detect(batch, fdr=FDR)
        out[f"fdp {share}"] = float(found[:normal].sum() / max(found.sum(), 1))
        out[f"power {share}"] = float(found[normal:].mean())
    return out


def alarms(splits: int, names: list[str] | None = None) -> bool:
    """Print realised false-alarm rates, and false discovery proportions; True if all hold."""
    plain = MultiKernelFisherNull()
    print(f"MultiKernelFisherNull, p={plain.p}, delta={plain.delta}, widths={plain.widths}")
    print(f"Share of fresh targets flagged at a nominal {RATE:.0%}, mean of {splits} splits")
    print("floor = floor(.05(n+1))/(n+1); bounds of split = 5% - 1/(m+1) to 5%, +- 2 s.e.\n")
    header = f"{'set':10} {'n':>4} {'floor':>6} {'cross':>6} {'s.e.':>6} {'naive':>6} | {'m':>3}"
    print(
        f"{header} {'split':>6} {'s.e.':>5} | FDP and power of detect(fdr=0.1), 50% / 20% outliers"
    )
    all_hold = True
    gaps = []
    for data in load_sets(names):
        rows = [one_split(data, seed) for seed in range(splits)]
        mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        floor = float(np.mean([np.floor(RATE * (r["n"] + 1)) / (r["n"] + 1) for r in rows]))
        error, cross_error = (
            float(np.std([row[key] for row in rows], ddof=1) / np.sqrt(splits))
            for key in ("split", "cross")
        )
        low, high = RATE - 1 / (mean["m"] + 1) - 2 * error, RATE + 2 * error
        marks = {
            "cross": abs(mean["cross"] - floor) <= 0.015,
            "split": low <= mean["split"] <= high,
            **{f"fdp {share}": mean[f"fdp {share}"] <= FDR for share in MIXES},
        }
        found = "  ".join(
            f"{mean[f'fdp {s}']:.3f}{'' if marks[f'fdp {s}'] else '!'} {mean[f'power {s}']:.2f}"
            for s in MIXES
        )
        print(
            f"{data.name:10} {mean['n']:4.0f} {floor:6.1%} "
            f"{mean['cross']:6.1%}{' ' if marks['cross'] else '!'}{cross_error:6.1%} "
            f"{mean['naive']:6.1%} | "
            f"{mean['m']:3.0f} {mean['split']:6.1%}{' ' if marks['split'] else '!'}{error:5.1%} | "
            f"{found}",
            flush=True,
        )
        all_hold &= all(marks.values())
        gaps.append(mean["cross"] - floor)
    print(f"\ncross less its floor, mean over the sets: {np.mean(gaps):+.1%}")
    print("all hold" if all_hold else "! marks what does not hold")
    return all_hold


#: How kernels are made: the default, and one kernel a standardised view of the paper's widths.
SETTINGS = {"the default": {}} | {
    f"width {name}": {"scaling": "standard", "widths": width}
    for name, width in {"1/8": 0.125, "1/4": 0.25, "1/2": 0.5, "1": 1.0}.items()
}


def swapped_first(
    kind: str, setting: str, cases: int, seed: int, peer: bool = False
) -> dict[str, float]:
    """Share of rows, one view of which is another digit's, whose first view is that one."""
    digits = load_multiple_features()
    X, views = join_views(digits.views)
    names = list(views)
    rng = np.random.default_rng(seed)
    hits = dict.fromkeys(["surprise", "contribution", "difference", *(["peer"] if peer else [])], 0)
    for digit in range(10):
        targets = rng.permutation(np.flatnonzero(digits.y == digit))
        train, fresh = targets[:140], targets[140:]
        model = MultiKernelFisherNull(views=views, p=2, delta=0.01, **SETTINGS[setting])
        model.fit(X[train])
        owner = np.array(model.kernel_set_.kernel_views)
        weight = np.array([model.weights_[owner == name].sum() for name in names])
        heavy = np.flatnonzero(weight >= 0.5 * weight.mean())
        others = np.flatnonzero(digits.y != digit)
        k = cases // 10
        rows = X[rng.choice(fresh if kind == "fresh" else train, k)]
        swapped = rng.choice(heavy, k)
        for i, v in enumerate(swapped):
            rows[i, views[names[v]]] = X[rng.choice(others), views[names[v]]]
        why = model.explain(rows)
        alone = replace(why, out_of_line=None)  # contributions, whatever the other views say
        firsts = {
            "surprise": why.surprise.argmin(axis=1),
            "contribution": alone.surprise.argmin(axis=1),
            "difference": why.differences.argmin(axis=1),
        }
        if peer:
            firsts["peer"] = mahalanobis_surprise(X[train], rows, views).argmax(axis=1)
        for key, first in firsts.items():
            hits[key] += int((first == swapped).sum())
    return {key: count / cases for key, count in hits.items()}


def explain(cases: int = 200, seeds: int = 10) -> bool:
    """Swap one view of a row for that of another digit: does it rank first?"""
    print(
        f"\nThe view taken from another digit ranks first: mean of {seeds} seeds of {cases} cases "
        "each (lowest), Multiple Features, p = 2, delta = 0.01; asked: 95%\n\n"
        "row       setting       by surprise   by its contribution alone   by difference   "
        "Mahalanobis a view"
    )
    held = True
    for kind in ("training", "fresh"):
        for setting in SETTINGS:
            runs = [
                swapped_first(kind, setting, cases, 10 + seed, peer=setting == "the default")
                for seed in range(seeds)  # those before 10 were used to choose the definition
            ]
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            low = min(run["surprise"] for run in runs)
            reached = mean["surprise"] >= 0.95
            held &= reached
            peer = f"{mean['peer']:.1%}" if "peer" in mean else ""
            mark = " " if reached else "!"
            print(
                f"{kind:9} {setting:11}   {mean['surprise']:5.1%} ({low:.1%}){mark}"
                f"   {mean['contribution']:5.1%} {mean['difference']:35.1%} {peer:>20}",
                flush=True,
            )
    return held


def mahalanobis_surprise(train: np.ndarray, rows: np.ndarray, views: dict) -> np.ndarray:
    """A peer made for this task alone: standardised log distances, view by view."""
    out = np.empty((len(rows), len(views)))
    fold = np.arange(len(train)) % 5
    for v, columns in enumerate(views.values()):
        A, B = train[:, columns], rows[:, columns]
        centre, scale = A.mean(axis=0), A.std(axis=0) + 1e-9
        A, B = (A - centre) / scale, (B - centre) / scale
        usual = np.concatenate(
            [np.log(LedoitWolf().fit(A[fold != f]).mahalanobis(A[fold == f])) for f in range(5)]
        )
        out[:, v] = (np.log(LedoitWolf().fit(A).mahalanobis(B)) - usual.mean()) / usual.std()
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("alarms", "explain"))
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="of alarms; all by default")
    parser.add_argument("--cases", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # constant columns in some splits
    held = True
    if options.what in (None, "alarms"):
        held &= alarms(options.splits, options.sets)
    if options.what in (None, "explain"):
        held &= explain(options.cases)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())

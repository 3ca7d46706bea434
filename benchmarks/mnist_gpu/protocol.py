"""The protocol: rows of each digit, and choices by validation AUC."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

OUTLIERS = 100


def generator(*key: str | int) -> np.random.Generator:
    """The generator of `experiments` (whose package needs more than this machine has)."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype="<u4").astype(np.uint64).tolist())


def aucs(labels: Any, scores: Any) -> Any:
    """AUC of many score vectors at once: (..., m) -> (...)."""
    positive = np.asarray(labels) == 1
    P, N = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores, axis=-1)
    return (ranks[..., positive].sum(axis=-1) - P * (P + 1) / 2) / (P * N)


class Digit:
    """Rows of one digit: training, validation and test, as indices into all 70,000 images."""

    def __init__(self, digit: int, labels: Any, n_train: int, per_digit: int | None) -> None:
        train, test = labels[:n_train], np.arange(n_train, len(labels))
        pools = [
            generator("E8", "train", d).permutation(np.flatnonzero(train == d))[:per_digit]
            for d in range(10)
        ]
        own = pools[digit]
        self.digit = digit
        cut = round(0.9 * len(own))
        others = [pools[d][-OUTLIERS:] for d in range(10) if d != digit]
        self.train = own[:cut]
        self.validation = np.concatenate([own[cut:], *others])
        self.test = test
        self.validation_labels = np.where(train[self.validation] == digit, 1, -1)
        self.test_labels = np.where(labels[n_train:] == digit, 1, -1)

    @property
    def rest(self) -> Any:
        """Rows that are scored: validation, then test."""
        return np.concatenate([self.validation, self.test])


class Judge:
    """Keeps, for every method, the choice with the best validation AUC."""

    def __init__(self, digit: Digit) -> None:
        self.digit = digit
        self.best: dict[str, dict[str, Any]] = {}

    def offer(self, method: str, scores: Any, width: Any, choices: list[str], **more: Any) -> None:
        """Scores (models, rows) of validation and test rows, one row a choice."""
        found = scores.double().cpu().numpy() if torch.is_tensor(scores) else np.asarray(scores)
        m = len(self.digit.validation)
        reached = aucs(self.digit.validation_labels, found[:, :m])
        i = int(np.argmax(reached))
        if method not in self.best or reached[i] > self.best[method]["validation_auc"]:
            self.best[method] = {
                "method": method,
                "auc": float(aucs(self.digit.test_labels, found[i, m:])),
                "validation_auc": float(reached[i]),
                "width": width,
                "choice": choices[i],
                **{k: v[i] for k, v in more.items()},
            }

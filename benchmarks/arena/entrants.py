"""Who competes: our methods with fixed settings, and the peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import kernull
from benchmarks.arena.peers import PEERS, peer
from benchmarks.peers import WIDTHS, get_method
from experiments._cells import fingerprint
from kernull import MultiKernelFisherNull

DEFAULT = "MultiKernelFisherNull()"
SUM = "MultiKernelFisherNull, the sum"
PAPER = "MultiKernelFisherNull(**PAPER)"
#: Methods that fuse kernels by a mean, at the width that all estimators share.
FUSED = ("FN-Average", "GP-Average", "KPCA-Average")
#: Methods that learn weights get several widths per view: with one, a table has nothing to weigh.
LEARNED = ("MK-SVDD", "Slim-MK-SVDD", "MK-OCSVM", "Slim-MK-OCSVM")

#: Everything that the default may decide by itself one day, fixed.
PLAIN = {"scaling": "standard", "widths": 0.5}
MIXED = {"scaling": "standard", "widths": WIDTHS}
#: The default before it decided by evidence.
FORMER = {
    "decision": "sum",
    "scaling": ("standard", "whiten"),
    "widths": "auto",
    "normalize": "none",
    "p": 2.0,
    "delta": 1e-2,
}


@dataclass(frozen=True)
class Entrant:
    """One line of the arena.

    Parameters
    ----------
    name : str
    group : {"default", "kernull", "peer", "views", "rule"}
        "views": one model per view, shown apart.
    make : callable
        From views and a seed to an unfitted estimator.
    settings : mapping
        What it was made with; a cell is looked up under the hash of it.
    """

    name: str
    group: str
    make: Callable[[Any, int], Any] = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self):
        """Name and settings: the method of a cell."""
        return f"{self.name} [{fingerprint(dict(self.settings))[:6]}]"


def fisher(name, group, settings, label=None):
    """An entrant of `MultiKernelFisherNull` with some settings."""
    shown = {key: _plain(value) for key, value in settings.items()}
    return Entrant(
        name, group, lambda views, seed: MultiKernelFisherNull(views=views, **settings), shown
    )


def _plain(value):
    return list(value) if isinstance(value, tuple) else value


def _registered(name, settings):
    shown = {key: _plain(value) for key, value in settings.items()}
    method = get_method(name)
    return Entrant(name, "kernull", lambda views, seed: method.make(views=views, **settings), shown)


def _peer(name):
    settings = {"scoring": "row by row"} if name in ("PyOD ECOD", "PyOD COPOD") else {}
    return Entrant(name, "peer", lambda views, seed: peer(name, seed), settings)


def _default_settings():
    """All parameters of the default estimator: cells of other defaults are not these."""
    return {k: _plain(v) for k, v in MultiKernelFisherNull().get_params().items()}


def entrants():
    """Every entrant by name, the default first."""
    found = [
        Entrant(
            DEFAULT,
            "default",
            lambda views, seed: MultiKernelFisherNull(views=views),
            _default_settings(),
        ),
        fisher(SUM, "kernull", FORMER),
        fisher(PAPER, "kernull", kernull.PAPER),
        *(
            fisher(
                f"lp MK-FN, p = {p}",
                "kernull",
                {**kernull.PAPER, **MIXED, "solver": "auto", "delta": 1e-2, "p": float(p)},
            )
            for p in (1, 2)
        ),
        *(_registered(name, PLAIN) for name in FUSED),
        *(_registered(name, MIXED) for name in LEARNED),
        *(_peer(name) for name in PEERS),
        Entrant(
            "FN by view",
            "views",
            lambda views, seed: get_method("FN-Average").make(views=views, **PLAIN),
            PLAIN,
        ),
        Entrant(
            "default by view",
            "views",
            lambda views, seed: MultiKernelFisherNull(views=views),
            _default_settings(),
        ),
    ]
    return {entrant.name: entrant for entrant in found}

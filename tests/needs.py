"""What a bare machine does not have: each is a marker, and its tests skip with what to do about it.

The markers are the border between the two stages of CI (``.ci/run``): a bare machine runs all other
tests, and a machine that has everything runs these alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Need(NamedTuple):
    """Whether it is there, and what to do where it is not."""

    is_met: Callable[[], bool]
    reason: str


def chromium() -> str | None:
    return os.environ.get("KERNULL_CHROMIUM") or shutil.which("chromium")


def axe() -> Path | None:
    """The script that ``make browser-tools`` installs."""
    installed = ROOT / ".venv/axe/node_modules/axe-core/axe.min.js"
    path = Path(os.environ.get("KERNULL_AXE") or installed)
    return path if path.exists() else None


def has_cuda() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def has_weights(variable: str, folder: str, pattern: str) -> bool:
    """Whether a library's cache of downloads holds a network: tests download nothing."""
    cache = os.environ.get(variable) or Path.home() / ".cache" / folder
    return any(Path(cache).glob(pattern))


NEEDS = {
    "torch": Need(
        lambda: find_spec("torch") is not None,
        "torch is not installed: pip install torch==2.13.0",
    ),
    "cuda": Need(has_cuda, "there is no GPU: needs a CUDA device and a torch built for CUDA"),
    "data": Need(
        lambda: bool(os.environ.get("KERNULL_DATA")),
        "KERNULL_DATA is not set: set it to the folder that holds the data sets",
    ),
    "weights": Need(
        lambda: bool(os.environ.get("KERNULL_WEIGHTS")),
        "KERNULL_WEIGHTS is not set: set it to the folder that holds the image networks",
    ),
    "torchvision": Need(
        lambda: has_weights("TORCH_HOME", "torch", "hub/checkpoints/resnet18-*.pth"),
        "torchvision's resnet18 is not in its cache: pip install torchvision, and load it once",
    ),
    "timm": Need(
        lambda: has_weights("HF_HOME", "huggingface", "hub/models--timm--resnet18.a1_in1k"),
        "timm's resnet18 is not in its cache: pip install timm, and load it once",
    ),
    "browser": Need(
        lambda: chromium() is not None,
        "chromium is not installed: apt install chromium, or set KERNULL_CHROMIUM to its path",
    ),
    "spark": Need(
        lambda: find_spec("pyspark") is not None and shutil.which("java") is not None,
        "Spark needs a JRE and its package: apt install default-jre-headless, pip install pyspark",
    ),
    "axe": Need(
        lambda: axe() is not None,
        "axe-core is not installed: make browser-tools, or set KERNULL_AXE to axe.min.js",
    ),
}

#: A test that asks for the fixture has the need.
FIXTURES = {"delft_home": "data"}

#: Modules that import what they need at their top, so that even their doctests need it.
#: No other module may: see tests/test_needs.py.
MODULES = {
    "src/kernull/operators/torch.py": "torch",
    "src/kernull/operators/triton.py": "cuda",
}

#: For pytest.importorskip in modules that also set ``pytestmark = pytest.mark.torch``.
NO_TORCH = NEEDS["torch"].reason


@cache
def is_met(name: str) -> bool:
    """Asked once per process: tests change the environment."""
    return NEEDS[name].is_met()

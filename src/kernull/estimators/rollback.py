"""All or nothing: a step that fails leaves the model as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["rollback_on_error"]


@contextmanager
def rollback_on_error(estimator: Any) -> Iterator[None]:
    """Put all attributes back when the block raises.

    Attributes must be replaced in the block, never changed in place.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:  # an interrupted update is a failed one
        vars(estimator).clear()
        vars(estimator).update(before)
        raise

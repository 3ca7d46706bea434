"""What an estimator shows of its fitted ``model_``."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from sklearn.exceptions import NotFittedError

from kernull._containers import tensor_on


class Learned:
    """A learned attribute, read from the fitted model; absent where the model has none.

    ``path`` is where it is in ``model_``, such as ``"rule.weights"``; ``tensor`` asks for a tensor
    where the model was fitted on tensors.
    """

    def __init__(self, path: str, *, tensor: bool = False) -> None:
        self.path, self.tensor = path, tensor

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        value: Any = vars(estimator).get("model_")
        if value is None:
            raise NotFittedError(
                f"This {type(estimator).__name__} is not fitted yet, so it has no {self.name!r}; "
                "call fit first."
            )
        device = value.device
        for part in self.path.split("."):
            value = getattr(value, part, None)
        if value is None:
            raise AttributeError(f"{type(estimator).__name__} has no {self.name!r} here.")
        return tensor_on(value, device) if self.tensor and device is not None else value


class LearnedByTask(Learned):
    """A learned attribute that each task has its own of: a dict of name -> value."""

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        read = attrgetter(self.path)
        return {name: read(task) for name, task in estimator._fitted_model.tasks.items()}

"""Looking at models: explanations, and displays in scikit-learn's manner."""

from kernull.estimators._explain import Explanation
from kernull.inspection.boundary import BoundaryDisplay
from kernull.inspection.displays import (
    ContributionsDisplay,
    ConvergenceDisplay,
    ScoresDisplay,
    WeightsDisplay,
)

__all__ = [
    "BoundaryDisplay",
    "ContributionsDisplay",
    "ConvergenceDisplay",
    "Explanation",
    "ScoresDisplay",
    "WeightsDisplay",
]

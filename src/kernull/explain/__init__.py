"""Looking at models: explanations, and displays in scikit-learn's manner."""

from kernull.detector.explanation import Explanation
from kernull.explain.columns import ColumnReason, column_reasons
from kernull.explain.displays import ConvergenceDisplay, ScoresDisplay, WeightsDisplay
from kernull.explain.findings import TableReason, explain_columns, table_reasons

__all__ = [
    "ColumnReason", "ConvergenceDisplay", "Explanation", "ScoresDisplay", "TableReason",
    "WeightsDisplay", "column_reasons", "explain_columns", "table_reasons",
]  # fmt: skip

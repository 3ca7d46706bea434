"""Looking at models: explanations, and displays in scikit-learn's manner."""

from kernull.inspection.columns import ColumnReason, column_reasons
from kernull.inspection.displays import ConvergenceDisplay, ScoresDisplay, WeightsDisplay
from kernull.inspection.findings import TableReason, explain_columns, table_reasons
from kernull.models.explanation import Explanation

__all__ = [
    "ColumnReason", "ConvergenceDisplay", "Explanation", "ScoresDisplay", "TableReason",
    "WeightsDisplay", "column_reasons", "explain_columns", "table_reasons",
]  # fmt: skip

"""What is reported about rows, by view and by column; displays in scikit-learn's manner."""

from kernull.explain.columns import ColumnReason, column_reasons
from kernull.explain.displays import ConvergenceDisplay, ScoresDisplay, WeightsDisplay
from kernull.explain.explanation import Explanation
from kernull.explain.table_columns import TableColumns

__all__ = [
    "ColumnReason", "ConvergenceDisplay", "Explanation", "ScoresDisplay", "TableColumns",
    "WeightsDisplay", "column_reasons",
]  # fmt: skip

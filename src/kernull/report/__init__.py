"""Reports: one self-contained HTML page on a model and the rows it judged."""

from kernull.report._content import gives_reasons
from kernull.report._page import render_report, save_report

__all__ = ["gives_reasons", "render_report", "save_report"]

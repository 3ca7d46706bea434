"""Views: which columns feed which kernel, and how each view is scaled."""

from kernull.views.columns import join_views
from kernull.views.scaling import SCALINGS, ViewScaler, read_scalings, resolve_views

__all__ = ["SCALINGS", "ViewScaler", "join_views", "read_scalings", "resolve_views"]
